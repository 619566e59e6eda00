//! Any curves and points, for notebooks: the page, the palette and the direct labels of the report's figures.

use super::style::{FAINT, GRID, INK, SERIES, anchored, failed, font, language_colour, page, spread};
use super::{Figure, ReportError};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "lines";
/// The order in which the palette is used: neighbours far apart.
const ORDER: [usize; 5] = [3, 0, 4, 2, 1];

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Line,
    Dashed,
    Points,
}

/// A named series of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    mark: Mark,
}

impl Series {
    /// Points joined by a line.
    pub fn line(name: &str, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.to_owned(), points, mark: Mark::Line }
    }

    /// Points joined by a faint dashed line: a formula, chance, a limit.
    pub fn dashed(name: &str, points: Vec<(f64, f64)>) -> Self {
        Series { mark: Mark::Dashed, ..Series::line(name, points) }
    }

    /// Points alone.
    pub fn points(name: &str, points: Vec<(f64, f64)>) -> Self {
        Series { mark: Mark::Points, ..Series::line(name, points) }
    }

    fn colour(&self, place: usize) -> RGBColor {
        match (self.mark, self.name.as_str()) {
            (Mark::Dashed, _) => FAINT,
            (_, name) if name.starts_with("Bangla") => language_colour("bn"),
            (_, name) if name.starts_with("English") => language_colour("en"),
            _ => SERIES[ORDER[place % ORDER.len()]],
        }
    }
}

/// The smallest and the largest of `values`, with `room` of their distance on both sides.
fn range(values: impl Iterator<Item = f64> + Clone, room: f64) -> std::ops::Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let reach = if high > low { room * (high - low) } else { 1.0 };
    low - reach..high + reach
}

/// Draws `series`, each named at the end of its line; `axes` names x and y. Points that are not finite are left out.
///
/// # Errors
/// [`ReportError::Figure`] when there is no point.
pub fn lines(title: &str, caption: &str, axes: [&str; 2], series: &[Series]) -> Result<Figure, ReportError> {
    let finite = |s: &Series| s.points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let series: Vec<Series> = series.iter().map(|s| Series { points: finite(s), ..s.clone() }).collect();
    let all = || series.iter().flat_map(|s| &s.points);
    if all().next().is_none() {
        return Err(failed(ID)("there are no points to draw"));
    }
    let (x, y) = (range(all().map(|p| p.0), 0.03), range(all().map(|p| p.1), 0.06));
    let (right, wide) = (x.end, x.start..x.end + 0.24 * (x.end - x.start));
    let height = y.end - y.start;
    let svg = page(ID, title, caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(38)
            .y_label_area_size(56)
            .build_cartesian_2d(wide, y)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .x_desc(axes[0])
            .y_desc(axes[1])
            .label_style(font(12, &INK))
            .x_label_formatter(&|x| if *x > right { String::new() } else { short(*x) })
            .y_label_formatter(&|y| short(*y))
            .draw()
            .map_err(failed(ID))?;
        let mut labels = Vec::new();
        for (i, one) in series.iter().enumerate() {
            let (colour, points) = (one.colour(i), one.points.iter().copied());
            match one.mark {
                Mark::Line => chart.draw_series(LineSeries::new(points, colour.stroke_width(2))).map(drop),
                Mark::Dashed => chart.draw_series(DashedLineSeries::new(points, 5, 4, colour.into())).map(drop),
                Mark::Points => chart.draw_series(points.map(|p| Circle::new(p, 4, colour.filled()))).map(drop),
            }
            .map_err(failed(ID))?;
            let rightmost = one.points.iter().max_by(|a, b| a.0.total_cmp(&b.0));
            labels.extend(rightmost.map(|p| (p.1, one.name.clone(), colour)));
        }
        spread(&mut labels, 0.05 * height);
        for (y, text, colour) in labels {
            let style = anchored(12, &colour, HPos::Left, VPos::Center);
            chart.draw_series([Text::new(text, (right, y), style)]).map_err(failed(ID))?;
        }
        Ok(())
    })?;
    let quoted = |text: &str| if text.contains(',') { format!("\"{text}\"") } else { text.to_owned() };
    let mut csv = format!("series,{},{}\n", quoted(axes[0]), quoted(axes[1]));
    for one in &series {
        for (x, y) in &one.points {
            let _ = writeln!(csv, "{},{},{}", quoted(&one.name), short(*x), short(*y));
        }
    }
    Ok(Figure { id: ID, svg, csv })
}

/// At most four digits after the point, and none that say nothing.
fn short(x: f64) -> String {
    let text = format!("{x:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_named_and_its_finite_points_are_kept() {
        let loss = Series::line("loss", vec![(0.0, 2.0), (1.0, f64::NAN), (2.0, 1.0)]);
        let chance = Series::dashed("chance, ln(V)", vec![(0.0, 2.5), (2.0, 2.5)]);
        let figure = lines("Title", "Caption.", ["step", "nats"], &[loss, chance]).unwrap();
        for text in ["Title", "Caption.", "step", "nats", "loss", "chance, ln(V)"] {
            assert!(figure.svg.contains(text), "{text}");
        }
        assert_eq!(
            figure.csv,
            "series,step,nats\nloss,0,2\nloss,2,1\n\"chance, ln(V)\",0,2.5\n\"chance, ln(V)\",2,2.5\n"
        );
        assert!(lines("", "", ["", ""], &[Series::points("none", vec![])]).is_err());
        assert!(lines("", "", ["", ""], &[Series::points("one", vec![(1.0, 1.0)])]).is_ok());
    }
}
