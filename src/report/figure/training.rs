//! Loss against tokens seen, with the validation loss of each language and the line of chance.

use super::style::{FAINT, GRID, INK, TRAIN, anchored, failed, font, language_colour, language_name, page, spread};
use super::{Figure, ReportError};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::collections::BTreeMap;
use std::fmt::Write;

const ID: &str = "training";

/// A training run: points of (tokens, nats per token).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Training loss of every step.
    pub training: Vec<(f64, f64)>,
    /// Validation loss by language.
    pub validation: BTreeMap<String, Vec<(f64, f64)>>,
    /// ln(vocabulary).
    pub chance: f64,
    /// Scale, sample and seed.
    pub caption: String,
}

/// Draws the curve.
///
/// # Errors
/// [`ReportError::Figure`] when there is no point.
pub fn training(curve: &Curve) -> Result<Figure, ReportError> {
    let every = || curve.training.iter().chain(curve.validation.values().flatten());
    let Some(last) = curve.training.last() else {
        return Err(failed(ID)("there are no steps to draw"));
    };
    let low = every().map(|p| p.1).fold(curve.chance, f64::min);
    let x = last.0 * 1.14; // room for the labels at the end of the lines
    let y = (low - 0.4).max(0.0)..curve.chance + 0.6;
    let title = "Training: loss falls from the line of chance";
    let svg = page(ID, title, &curve.caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(38)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..x, y)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .x_desc("training tokens")
            .y_desc("nats per token")
            .label_style(font(12, &INK))
            .x_label_formatter(&|x| count(*x, last.0))
            .draw()
            .map_err(failed(ID))?;
        let chance = [(0.0, curve.chance), (last.0, curve.chance)];
        chart.draw_series(DashedLineSeries::new(chance, 5, 4, FAINT.stroke_width(1))).map_err(failed(ID))?;
        chart.draw_series(LineSeries::new(curve.training.iter().copied(), TRAIN.mix(0.55))).map_err(failed(ID))?;
        let mut labels =
            vec![(curve.chance, "ln(vocabulary)".to_owned(), FAINT), (last.1, "training".to_owned(), TRAIN)];
        for (language, points) in &curve.validation {
            let colour = language_colour(language);
            chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2))).map_err(failed(ID))?;
            chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.filled()))).map_err(failed(ID))?;
            labels.push((points.last().map_or(low, |p| p.1), language_name(language).to_owned(), colour));
        }
        spread(&mut labels, 0.045 * (curve.chance + 1.0 - low));
        for (height, text, colour) in labels {
            let style = anchored(12, &colour, HPos::Left, VPos::Center);
            chart.draw_series([Text::new(text, (last.0 * 1.012, height), style)]).map_err(failed(ID))?;
        }
        Ok(())
    })?;
    Ok(Figure { id: ID, svg, csv: csv(curve) })
}

/// A count in the unit of the largest on its axis.
fn count(x: f64, largest: f64) -> String {
    let units = [(1e9, " B"), (1e6, " M"), (1e3, " k")];
    match units.iter().find(|(unit, _)| largest >= *unit) {
        Some((unit, name)) => format!("{}{name}", (x / unit * 100.0).round() / 100.0),
        None => x.to_string(),
    }
}

fn csv(curve: &Curve) -> String {
    let mut text = "series,tokens,nats_per_token\n".to_owned();
    let named = curve.validation.iter().map(|(language, points)| (format!("validation-{language}"), points));
    for (series, points) in [("training".to_owned(), &curve.training)].into_iter().chain(named) {
        for (tokens, loss) in points {
            let _ = writeln!(text, "{series},{tokens},{loss}");
        }
    }
    let _ = writeln!(text, "chance,0,{}", curve.chance);
    text
}
