//! How fast a linear layer goes forward and backward, as a share of the fastest GEMM of the same process.

use super::style::{Area, FAINT, GRID, INK, SERIES, anchored, failed, font, page_of, spread};
use super::{Figure, ReportError};
use crate::defects::meter::{Efficiency, LayerShape, Speed};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "backward-efficiency";
const HEIGHT: u32 = 400;

/// A way of computing the layer with its share of the peak, in per cent, by the place of the shape.
type Line = (String, RGBColor, Vec<(f64, f64)>);

/// Draws two panels, forward and backward: a line a way, over the shapes that were swept.
///
/// # Errors
/// [`ReportError::Figure`] when there is nothing to draw.
pub fn efficiency(run: &Efficiency, caption: &str) -> Result<Figure, ReportError> {
    let mut shapes: Vec<LayerShape> = run.speeds.iter().map(|speed| speed.shape).collect();
    shapes.dedup();
    if shapes.is_empty() {
        return Err(failed(ID)("there are no speeds to draw"));
    }
    let title = "A linear layer's forward and backward pass, share of the fastest GEMM";
    let svg = page_of(ID, HEIGHT, title, caption, |area| {
        let (left, right) = area.split_horizontally(270);
        draw(&left, "forward", &shapes, &lines(run, &shapes, |speed| speed.forward), false)?;
        draw(&right, "backward", &shapes, &lines(run, &shapes, |speed| speed.backward), true)
    })?;
    Ok(Figure { id: ID, svg, csv: csv(run) })
}

/// Who and how, in one name.
pub(in crate::report) fn name(speed: &Speed) -> String {
    match speed.framework.as_str() {
        "Candle" => "Candle, composed".to_owned(),
        "ours" => "ours".to_owned(),
        framework => format!("{framework}, {}", speed.way.trim_start_matches("nn::Linear, ")),
    }
}

fn lines(run: &Efficiency, shapes: &[LayerShape], of: fn(&Speed) -> f64) -> Vec<Line> {
    let first = run.speeds.iter().filter(|speed| speed.shape == shapes[0]);
    let line = |(i, one): (usize, &Speed)| {
        let own = run.speeds.iter().filter(|s| (&s.framework, &s.way) == (&one.framework, &one.way));
        let place = |speed: &Speed| shapes.iter().position(|shape| *shape == speed.shape).unwrap_or(0) as f64;
        let points = own.map(|speed| (place(speed), 100.0 * run.share(of(speed)))).collect();
        (name(one), SERIES[i % SERIES.len()], points)
    };
    first.enumerate().map(line).collect()
}

fn draw(area: &Area, what: &str, shapes: &[LayerShape], lines: &[Line], named: bool) -> Result<(), ReportError> {
    let last = (shapes.len() - 1) as f64;
    let top = lines.iter().flat_map(|(_, _, points)| points).map(|p| p.1).fold(100.0, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .margin_right(if named { 190 } else { 6 })
        .x_label_area_size(36)
        .y_label_area_size(46)
        .build_cartesian_2d(-0.2..last + 0.2, 0.0..top)
        .map_err(failed(ID))?;
    let shape = |x: &f64| {
        let at = shapes.get(x.round() as usize).filter(|_| x.fract().abs() < 1e-9 && *x >= 0.0);
        at.map_or(String::new(), |shape| format!("{}×{}", shape.batch, shape.time))
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(FAINT)
        .x_desc(format!("{what}: sequences × tokens"))
        .y_desc(if named { "" } else { "% of the GEMM" })
        .label_style(font(12, &INK))
        .x_labels(shapes.len() + 1)
        .x_label_formatter(&shape)
        .y_labels(6)
        .draw()
        .map_err(failed(ID))?;
    let mut labels = Vec::new();
    for (name, colour, points) in lines {
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2))).map_err(failed(ID))?;
        chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.filled()))).map_err(failed(ID))?;
        if let Some((_, height)) = points.last().filter(|_| named) {
            labels.push((*height, format!("{name} {height:.0} %"), *colour));
        }
    }
    spread(&mut labels, 0.06 * top);
    for (height, text, colour) in labels {
        let label = Text::new(text, (14, 0), anchored(12, &colour, HPos::Left, VPos::Center));
        chart.draw_series([EmptyElement::at((last + 0.1, height)) + label]).map_err(failed(ID))?;
    }
    Ok(())
}

fn csv(run: &Efficiency) -> String {
    let mut csv = "framework,way,batch,time,width,forward_gflops,backward_gflops,gemm_peak_gflops,forward_share,\
                   backward_share\n"
        .to_owned();
    for speed in &run.speeds {
        let LayerShape { batch, time, width } = speed.shape;
        let [forward, backward] = [speed.forward, speed.backward].map(|of| run.share(of));
        let _ = writeln!(
            csv,
            "{},\"{}\",{batch},{time},{width},{},{},{},{forward:.4},{backward:.4}",
            speed.framework, speed.way, speed.forward, speed.backward, run.gemm_peak
        );
    }
    csv
}
