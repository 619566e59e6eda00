//! How the time of a step and the peak memory grow with length, width, vocabulary and batch.

use super::super::cost::megabytes;
use super::style::{Area, FAINT, GRID, INK, SERIES, TRAIN, anchored, failed, font, page_of, spread};
use super::{Figure, ReportError};
use crate::train::cost::CostPoint;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "cost";
const HEIGHT: u32 = 560;

/// A curve: what it is of, its colour, and each size with how many times the smallest it takes.
type Growth = (&'static str, RGBColor, Vec<(f64, f64)>);

/// Draws a panel a dimension, each relative to its smallest size, beside the line of "twice as large,
/// twice as much".
///
/// # Errors
/// [`ReportError::Figure`] when there is nothing to draw.
pub fn cost(points: &[CostPoint], caption: &str) -> Result<Figure, ReportError> {
    let mut dimensions: Vec<&str> = points.iter().map(|p| p.dimension.as_str()).collect();
    dimensions.dedup();
    if dimensions.is_empty() {
        return Err(failed(ID)("there are no points to draw"));
    }
    let title = "What a step costs when one size grows, beside a line that grows as fast as the size";
    let svg = page_of(ID, HEIGHT, title, caption, |area| {
        let panels = area.split_evenly((dimensions.len().div_ceil(2), 2));
        for (panel, dimension) in panels.iter().zip(&dimensions) {
            let own: Vec<&CostPoint> = points.iter().filter(|p| p.dimension == *dimension).collect();
            draw(panel, dimension, &own)?;
        }
        Ok(())
    })?;
    Ok(Figure { id: ID, svg, csv: csv(points) })
}

fn growth(own: &[&CostPoint]) -> Vec<Growth> {
    let relative = |of: &dyn Fn(&CostPoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let first = own.first().and_then(|p| of(p));
        own.iter().filter_map(|p| Some(((p.size as f64).log2(), (of(p)? / first?).log2()))).collect()
    };
    vec![("time", TRAIN, relative(&|p| Some(p.seconds()))), ("memory", SERIES[0], relative(&|p| megabytes(p)))]
}

fn draw(panel: &Area, dimension: &str, own: &[&CostPoint]) -> Result<(), ReportError> {
    let curves = growth(own);
    let [left, right] = [own[0], own[own.len() - 1]].map(|p| (p.size as f64).log2());
    let top = curves.iter().flat_map(|(_, _, points)| points).map(|p| p.1).fold(right - left, f64::max);
    let mut chart = ChartBuilder::on(panel)
        .margin(6)
        .x_label_area_size(36)
        .y_label_area_size(46)
        .build_cartesian_2d(left - 0.15..right + 0.95, -0.15..top + 0.25)
        .map_err(failed(ID))?;
    let what = match dimension {
        "length" => "tokens in a window",
        "width" => "width of the residual stream",
        "vocabulary" => "tokens in the vocabulary",
        _ => "windows in a batch",
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(FAINT)
        .x_desc(what)
        .y_desc("times the smallest")
        .label_style(font(12, &INK))
        .x_labels(own.len() + 1)
        .y_labels(top as usize + 2)
        .x_label_formatter(&|x| if *x > right + 0.05 { String::new() } else { format!("{:.0}", x.exp2()) })
        .y_label_formatter(&|y| if y.fract().abs() < 1e-9 { format!("{:.0}", y.exp2()) } else { String::new() })
        .draw()
        .map_err(failed(ID))?;
    let linear = [(left, 0.0), (right, right - left)];
    chart.draw_series(DashedLineSeries::new(linear, 4, 4, FAINT.into())).map_err(failed(ID))?;
    let mut labels = vec![(right - left, "as large".to_owned(), FAINT)];
    for (name, colour, points) in &curves {
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2))).map_err(failed(ID))?;
        chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.filled()))).map_err(failed(ID))?;
        if let Some((_, height)) = points.last() {
            labels.push((*height, format!("{name} {:.1}", height.exp2()), *colour));
        }
    }
    spread(&mut labels, 0.09 * (top + 0.4));
    for (height, text, colour) in labels {
        let style = anchored(12, &colour, HPos::Left, VPos::Center);
        chart.draw_series([Text::new(text, (right + 0.08, height), style)]).map_err(failed(ID))?;
    }
    Ok(())
}

fn csv(points: &[CostPoint]) -> String {
    let mut csv = "dimension,size,parameters,tokens_per_step,seconds_per_step,memory_bytes\n".to_owned();
    for p in points {
        let memory = p.result.memory_bytes.map_or(String::new(), |bytes| bytes.to_string());
        let _ =
            writeln!(csv, "{},{},{},{},{},{memory}", p.dimension, p.size, p.result.parameters, p.tokens, p.seconds());
    }
    csv
}
