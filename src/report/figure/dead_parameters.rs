//! Loss curves that fall although some parameters get no gradient, each beside healthy runs.

use super::style::{DETECTORS, FAINT, GRID, INK, anchored, failed, font, page};
use super::{Figure, ReportError};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "dead-parameters";
/// Panels side by side.
const ACROSS: usize = 4;

/// The runs of one defect.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePair {
    /// The defect.
    pub name: String,
    /// Losses without it, a seed a row.
    pub healthy: Vec<Vec<f64>>,
    /// Losses with it; NaN where not finite.
    pub defective: Vec<Vec<f64>>,
}

/// Lowest, mean and highest loss of a step over the seeds.
fn spread(curves: &[Vec<f64>]) -> Vec<[f64; 3]> {
    let steps = curves.iter().map(Vec::len).min().unwrap_or(0);
    let of = |step: usize| {
        let losses = curves.iter().map(|curve| curve[step]);
        let mean = losses.clone().sum::<f64>() / curves.len() as f64;
        [losses.clone().fold(f64::INFINITY, f64::min), mean, losses.fold(f64::NEG_INFINITY, f64::max)]
    };
    (0..steps).map(of).collect()
}

/// Draws a panel a defect: the mean over the seeds as a line, all seeds as a band.
///
/// # Errors
/// [`ReportError::Figure`] when there is nothing to draw.
pub fn dead_parameters(pairs: &[CurvePair], caption: &str) -> Result<Figure, ReportError> {
    if pairs.is_empty() {
        return Err(failed(ID)("there are no curves to draw"));
    }
    let title = "Every curve falls: training with parameters that get no gradient, and without the defect";
    let svg = page(ID, title, caption, |area| {
        let panels = area.split_evenly((pairs.len().div_ceil(ACROSS), ACROSS.min(pairs.len())));
        for (i, (pair, panel)) in pairs.iter().zip(&panels).enumerate() {
            draw(pair, panel, i == 0)?;
        }
        Ok(())
    })?;
    Ok(Figure { id: ID, svg, csv: csv(pairs) })
}

fn draw(pair: &CurvePair, panel: &super::style::Area, labelled: bool) -> Result<(), ReportError> {
    let [healthy, defective] = [&pair.healthy, &pair.defective].map(|curves| spread(curves));
    let steps = healthy.len().max(2) as f64;
    let highest = healthy.iter().chain(&defective).map(|s| s[2]).filter(|x| x.is_finite()).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(panel)
        .margin(6)
        .margin_top(18)
        .x_label_area_size(18)
        .y_label_area_size(26)
        .build_cartesian_2d(1.0..steps, 0.0..highest.max(1e-9))
        .map_err(failed(ID))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(FAINT)
        .x_labels(3)
        .y_labels(4)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .label_style(font(10, &FAINT))
        .draw()
        .map_err(failed(ID))?;
    for (spread, colour) in [(&healthy, DETECTORS[0]), (&defective, DETECTORS[1])] {
        let at = |i: usize, part: usize| (1.0 + i as f64, spread[i][part]);
        let outline = (0..spread.len()).map(|i| at(i, 2)).chain((0..spread.len()).rev().map(|i| at(i, 0)));
        let band = Polygon::new(outline.collect::<Vec<_>>(), colour.mix(0.18).filled());
        chart.draw_series([band]).map_err(failed(ID))?;
        let line = LineSeries::new((0..spread.len()).map(|i| at(i, 1)), colour.stroke_width(2));
        chart.draw_series(line).map_err(failed(ID))?;
    }
    let name = anchored(12, &INK, HPos::Left, VPos::Top);
    panel.draw(&Text::new(pair.name.clone(), (32, 2), name)).map_err(failed(ID))?;
    if labelled {
        for (i, text) in ["without", "with the defect"].iter().enumerate() {
            let style = anchored(11, &DETECTORS[i], HPos::Left, VPos::Bottom);
            let label = Text::new(*text, (6, -4 - 13 * (1 - i as i32)), style);
            chart.draw_series([EmptyElement::at((1.0, 0.0)) + label]).map_err(failed(ID))?;
        }
    }
    Ok(())
}

fn csv(pairs: &[CurvePair]) -> String {
    let mut text = "defect,run,step,lowest,mean,highest\n".to_owned();
    for pair in pairs {
        for (run, curves) in [("healthy", &pair.healthy), ("defective", &pair.defective)] {
            for (i, [low, mean, high]) in spread(curves).into_iter().enumerate() {
                let _ = writeln!(text, "{},{run},{},{low},{mean},{high}", pair.name, i + 1);
            }
        }
    }
    text
}
