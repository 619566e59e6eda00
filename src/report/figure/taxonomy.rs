//! Kinds of defect, and what gives them away: the loss curve, a presence check, the arbiter's questions.

use super::style::{DETECTORS, FAINT, GRID, INK, anchored, failed, page};
use super::{Figure, ReportError};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "defects";

/// The defects of one kind, and how many of them each check gives away.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// The kind of defect.
    pub kind: String,
    /// Defects of it.
    pub entries: usize,
    /// The loss curve gives it away on its own.
    pub curve: usize,
    /// Only beside the curves of healthy runs.
    pub beside: usize,
    /// A gradient is missing.
    pub presence: usize,
    /// The arbiter's further questions.
    pub questions: Vec<(&'static str, usize)>,
    /// Any of its questions, or it refuses the model.
    pub arbiter: usize,
}

impl Tally {
    /// (check, colour, defects it gives away), in the order they are drawn.
    fn columns(&self) -> Vec<(String, RGBColor, usize)> {
        let [arbiter, presence, curve] = DETECTORS;
        let mut columns = vec![
            ("curve alone".to_owned(), curve, self.curve),
            ("and beside".to_owned(), curve, self.beside),
            ("present".to_owned(), presence, self.presence),
        ];
        columns.extend(self.questions.iter().map(|(name, count)| ((*name).to_owned(), arbiter, *count)));
        columns.push(("any question".to_owned(), arbiter, self.arbiter));
        columns
    }
}

/// Draws a disc a kind and check, its area the share that the check gives away.
///
/// # Errors
/// [`ReportError::Figure`] when there is nothing to draw.
pub fn taxonomy(tallies: &[Tally], caption: &str) -> Result<Figure, ReportError> {
    if tallies.is_empty() {
        return Err(failed(ID)("there are no defects to draw"));
    }
    let (rows, columns) = (tallies.len() as f64, tallies[0].columns().len() as f64);
    let title = "Defects by kind, and what gives them away (area: share of the kind)";
    let svg = page(ID, title, caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(150)
            .margin_top(24)
            .build_cartesian_2d(0.0..columns, 0.0..rows)
            .map_err(failed(ID))?;
        for (i, tally) in tallies.iter().enumerate() {
            let y = rows - i as f64 - 0.5;
            chart.draw_series(LineSeries::new([(0.0, y), (columns, y)], GRID)).map_err(failed(ID))?;
            let name = Text::new(
                format!("{} ({})", tally.kind, tally.entries),
                (-10, 0),
                anchored(13, &INK, HPos::Right, VPos::Center),
            );
            chart.draw_series([EmptyElement::at((0.0, y)) + name]).map_err(failed(ID))?;
            for (j, (check, colour, count)) in tally.columns().into_iter().enumerate() {
                let x = j as f64 + 0.5;
                if i == 0 {
                    let head = Text::new(check, (0, -8), anchored(11, &colour, HPos::Center, VPos::Bottom));
                    chart.draw_series([EmptyElement::at((x, rows)) + head]).map_err(failed(ID))?;
                }
                let share = count as f64 / tally.entries as f64;
                let radius = (11.0 * share.sqrt()).round() as i32;
                let (disc, ink) = if count == 0 { (WHITE, FAINT) } else { (colour, WHITE) };
                let text = Text::new(count.to_string(), (0, 0), anchored(11, &ink, HPos::Center, VPos::Center));
                let disc = Circle::new((0, 0), radius.max(7), disc.filled());
                chart.draw_series([EmptyElement::at((x, y)) + disc + text]).map_err(failed(ID))?;
            }
        }
        Ok(())
    })?;
    let mut csv = "kind,entries,check,given_away\n".to_owned();
    for tally in tallies {
        for (check, _, count) in tally.columns() {
            let _ = writeln!(csv, "{},{},{check},{count}", tally.kind, tally.entries);
        }
    }
    Ok(Figure { id: ID, svg, csv })
}
