//! In which published versions each defect is present.

use super::style::{DETECTORS, FAINT, GRID, INK, anchored, failed, page_of};
use super::{Figure, ReportError};
use crate::defects::{Found, Matrix};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "defect-versions";
/// Height of a row in the figure.
const ROW: u32 = 15;

/// Draws a mark an entry and version: filled where the defect is present, open where it is absent, a word elsewhere.
/// The rows are in the order of `entries`.
///
/// # Errors
/// [`ReportError::Figure`] when there is nothing to draw.
pub fn versions(matrix: &Matrix, entries: &[&str], caption: &str) -> Result<Figure, ReportError> {
    let names = matrix.names();
    if names.is_empty() || entries.is_empty() {
        return Err(failed(ID)("there are no versions to draw"));
    }
    let (rows, columns) = (entries.len() as f64, names.len() as f64);
    let title = "Which version of Candle has which defect (filled: present, open: absent)";
    let height = 44 + 30 + 30 + ROW * entries.len() as u32;
    let svg = page_of(ID, height, title, caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(230)
            .margin_top(20)
            .build_cartesian_2d(0.0..columns, 0.0..rows)
            .map_err(failed(ID))?;
        for (j, name) in names.iter().enumerate() {
            let head = Text::new((*name).to_owned(), (0, -6), anchored(13, &INK, HPos::Center, VPos::Bottom));
            chart.draw_series([EmptyElement::at((j as f64 + 0.5, rows)) + head]).map_err(failed(ID))?;
        }
        for (i, entry) in entries.iter().enumerate() {
            let y = rows - i as f64 - 0.5;
            chart.draw_series(LineSeries::new([(0.0, y), (columns, y)], GRID)).map_err(failed(ID))?;
            let text = entry.trim_start_matches("candle-").to_owned();
            let name = Text::new(text, (-10, 0), anchored(12, &INK, HPos::Right, VPos::Center));
            chart.draw_series([EmptyElement::at((0.0, y)) + name]).map_err(failed(ID))?;
            for (j, version) in names.iter().enumerate() {
                let at = EmptyElement::at((j as f64 + 0.5, y));
                let found = matrix.found(entry, version);
                let word = Text::new(found.name(), (0, 0), anchored(10, &FAINT, HPos::Center, VPos::Center));
                let backed = |colour: RGBColor| Circle::new((0, 0), 5, colour.filled());
                match found {
                    Found::Present => chart.draw_series([at + backed(DETECTORS[1])]).map(|_| ()),
                    Found::Absent => {
                        let ring = Circle::new((0, 0), 5, DETECTORS[0].stroke_width(2));
                        chart.draw_series([at + backed(WHITE) + ring]).map(|_| ())
                    }
                    _ => {
                        let gap = Rectangle::new([(-36, -6), (36, 6)], WHITE.filled());
                        chart.draw_series([at + gap + word]).map(|_| ())
                    }
                }
                .map_err(failed(ID))?;
            }
        }
        Ok(())
    })?;
    let mut csv = "entry,version,found\n".to_owned();
    for entry in entries {
        for version in &names {
            let _ = writeln!(csv, "{entry},{version},{}", matrix.found(entry, version).name());
        }
    }
    Ok(Figure { id: ID, svg, csv })
}
