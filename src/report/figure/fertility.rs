//! Characters per token, by language and pre-tokenizer.

use super::style::{FAINT, GRID, INK, anchored, failed, font, language_colour, language_name, page};
use super::{Figure, ReportError};
use crate::report::claims::number;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "fertility";

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Language code.
    pub language: String,
    /// Name of the pre-tokenizer.
    pub pre_tokenizer: String,
    /// Characters per token.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
}

/// Draws the bars in the order given.
///
/// # Errors
/// [`ReportError::Figure`] when there is no bar.
pub fn fertility(bars: &[Bar], caption: &str) -> Result<Figure, ReportError> {
    if bars.is_empty() {
        return Err(failed(ID)("there are no tokenizers to draw"));
    }
    let top = bars.iter().map(|b| b.interval[1]).fold(1.0, f64::max) * 1.18;
    let title = "Fertility: GPT-2's pattern cuts Bangla at every mark; keeping marks with their letters cures it";
    let svg = page(ID, title, caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(30)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..bars.len() as f64, 0.0..top)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .y_desc("characters per token")
            .label_style(font(12, &INK))
            .draw()
            .map_err(failed(ID))?;
        for (i, bar) in bars.iter().enumerate() {
            let (left, middle, right) = (i as f64 + 0.18, i as f64 + 0.5, i as f64 + 0.82);
            let colour = language_colour(&bar.language);
            let [low, high] = bar.interval;
            let name = format!("{}, {}", language_name(&bar.language), bar.pre_tokenizer);
            let below = anchored(12, &INK, HPos::Center, VPos::Top);
            let above = anchored(13, &INK, HPos::Center, VPos::Bottom);
            chart
                .draw_series([Rectangle::new([(left, 0.0), (right, bar.value)], colour.mix(0.85).filled())])
                .map_err(failed(ID))?;
            chart.draw_series([PathElement::new(vec![(middle, low), (middle, high)], INK)]).map_err(failed(ID))?;
            chart
                .draw_series([
                    Text::new(number(bar.value), (middle, high + 0.02 * top), above),
                    Text::new(name, (middle, -0.02 * top), below),
                ])
                .map_err(failed(ID))?;
        }
        Ok(())
    })?;
    let mut csv = "language,pre_tokenizer,characters_per_token,low,high\n".to_owned();
    for bar in bars {
        let [low, high] = bar.interval;
        let _ = writeln!(csv, "{},{},{},{low},{high}", bar.language, bar.pre_tokenizer, bar.value);
    }
    Ok(Figure { id: ID, svg, csv })
}
