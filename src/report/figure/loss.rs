//! Held-out loss per character of the trained model, its twin and the unigram model, by language.

use super::style::{FAINT, GRID, INK, anchored, failed, font, language_colour, language_name, page};
use super::{Figure, ReportError};
use crate::report::claims::number;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "loss";

/// One model on one language.
#[derive(Debug, Clone, PartialEq)]
pub struct LossPoint {
    /// Language code.
    pub language: String,
    /// `trained`, `twin`, `unigram` or `chance`.
    pub model: String,
    /// Nats per character.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
}

/// Draws one row a point, in the order given.
///
/// # Errors
/// [`ReportError::Figure`] when there is no point.
pub fn loss(points: &[LossPoint], caption: &str) -> Result<Figure, ReportError> {
    if points.is_empty() {
        return Err(failed(ID)("there are no losses to draw"));
    }
    let rows = points.len() as f64;
    let right = points.iter().map(|p| p.interval[1]).fold(0.0, f64::max) * 1.12;
    let title = "Held-out loss: the trained model against what knows less (compare within a language only)";
    let svg = page(ID, title, caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(130)
            .x_label_area_size(38)
            .build_cartesian_2d(0.0..right, 0.0..rows)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .x_desc("nats per character")
            .label_style(font(12, &INK))
            .draw()
            .map_err(failed(ID))?;
        for (i, point) in points.iter().enumerate() {
            let y = rows - i as f64 - 0.5;
            let colour = language_colour(&point.language);
            let [low, high] = point.interval;
            let name = format!("{}, {}", language_name(&point.language), point.model);
            let left = anchored(13, &INK, HPos::Right, VPos::Center);
            let beside = anchored(12, &INK, HPos::Left, VPos::Center);
            let line = PathElement::new(vec![(low, y), (high, y)], colour.stroke_width(3));
            chart.draw_series([line]).map_err(failed(ID))?;
            let fill = if point.model == "trained" { colour.filled() } else { colour.mix(0.45).filled() };
            chart.draw_series([Circle::new((point.value, y), 6, fill)]).map_err(failed(ID))?;
            chart.draw_series([EmptyElement::at((0.0, y)) + Text::new(name, (-10, 0), left)]).map_err(failed(ID))?;
            chart
                .draw_series([Text::new(number(point.value), (high + 0.015 * right, y), beside)])
                .map_err(failed(ID))?;
        }
        Ok(())
    })?;
    let mut csv = "language,model,nats_per_character,low,high\n".to_owned();
    for point in points {
        let [low, high] = point.interval;
        let _ = writeln!(csv, "{},{},{},{low},{high}", point.language, point.model, point.value);
    }
    Ok(Figure { id: ID, svg, csv })
}
