//! The share of each language in one text, counted in different units.

use super::style::{FAINT, INK, anchored, failed, language_colour, language_name, page};
use super::{Figure, ReportError};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "balance";

/// The shares of one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// What is counted: `characters`, `tokens, gpt2` …
    pub unit: String,
    /// (language, share from 0 to 1), summing to 1.
    pub shares: Vec<(String, f64)>,
}

/// Draws one bar a unit, from the left, with a line at one half.
///
/// # Errors
/// [`ReportError::Figure`] when there is nothing to draw.
pub fn balance(units: &[Share], caption: &str) -> Result<Figure, ReportError> {
    if units.is_empty() {
        return Err(failed(ID)("there are no shares to draw"));
    }
    let rows = units.len() as f64;
    let title = "Language balance: the tokenizer decides what share of the training a language costs";
    let svg = page(ID, title, caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(130)
            .margin_right(8)
            .margin_bottom(22)
            .build_cartesian_2d(0.0..1.0, 0.0..rows)
            .map_err(failed(ID))?;
        for (i, unit) in units.iter().enumerate() {
            let (low, middle, high) = (rows - i as f64 - 0.82, rows - i as f64 - 0.5, rows - i as f64 - 0.18);
            let name = anchored(13, &INK, HPos::Right, VPos::Center);
            chart
                .draw_series([EmptyElement::at((0.0, middle)) + Text::new(unit.unit.clone(), (-10, 0), name)])
                .map_err(failed(ID))?;
            let mut start = 0.0;
            for (language, share) in &unit.shares {
                let colour = language_colour(language);
                let end = start + share;
                chart
                    .draw_series([Rectangle::new([(start, low), (end, high)], colour.mix(0.85).filled())])
                    .map_err(failed(ID))?;
                let text = format!("{} {:.0} %", language_name(language), 100.0 * share);
                let style = anchored(13, &WHITE, HPos::Center, VPos::Center);
                chart.draw_series([Text::new(text, ((start + end) / 2.0, middle), style)]).map_err(failed(ID))?;
                start = end;
            }
        }
        let half = DashedLineSeries::new([(0.5, 0.0), (0.5, rows)], 5, 4, INK.stroke_width(1));
        chart.draw_series(half).map_err(failed(ID))?;
        let style = anchored(12, &FAINT, HPos::Center, VPos::Top);
        chart.draw_series([Text::new("one half".to_owned(), (0.5, -0.02 * rows), style)]).map_err(failed(ID))?;
        Ok(())
    })?;
    let mut csv = "unit,language,share\n".to_owned();
    for unit in units {
        for (language, share) in &unit.shares {
            let _ = writeln!(csv, "\"{}\",{language},{share}", unit.unit);
        }
    }
    Ok(Figure { id: ID, svg, csv })
}
