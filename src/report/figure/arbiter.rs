//! What three checks flag of each kind of fault, and of healthy models.

use super::style::{DETECTORS, FAINT, GRID, INK, anchored, failed, page};
use super::{Figure, ReportError};
use crate::statistics::wilson;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "arbiter";

/// The shares of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectorBar {
    /// The kind of fault.
    pub kind: String,
    /// Cases of it.
    pub cases: usize,
    /// Cases times seeds.
    pub trials: usize,
    /// Trials that the arbiter flagged.
    pub arbiter: usize,
    /// Trials that the presence check flagged.
    pub presence: usize,
    /// Trials whose loss curve looked ill.
    pub curve: usize,
}

impl DetectorBar {
    fn detectors(&self) -> [(&'static str, usize); 3] {
        [("arbiter", self.arbiter), ("presence only", self.presence), ("loss curve", self.curve)]
    }

    fn share(&self, hits: usize) -> f64 {
        hits as f64 / self.trials.max(1) as f64
    }
}

/// Draws three bars a kind, from the left.
///
/// # Errors
/// [`ReportError::Figure`] when there is nothing to draw.
pub fn arbiter(bars: &[DetectorBar], caption: &str) -> Result<Figure, ReportError> {
    if bars.is_empty() {
        return Err(failed(ID)("there are no kinds of fault to draw"));
    }
    let rows = bars.len() as f64;
    let title = "What each check flags: planted faults by kind, and healthy models below";
    let svg = page(ID, title, caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(170)
            .margin_right(60)
            .margin_top(20)
            .build_cartesian_2d(0.0..1.0, 0.0..rows)
            .map_err(failed(ID))?;
        for tick in [0.0, 0.5, 1.0] {
            chart.draw_series(LineSeries::new([(tick, 0.0), (tick, rows)], GRID)).map_err(failed(ID))?;
        }
        for (i, (name, _)) in bars[0].detectors().iter().enumerate() {
            let style = anchored(13, &DETECTORS[i], HPos::Left, VPos::Bottom);
            let at = [(0.0, rows); 1].map(|(_, y)| (0.02 + 0.28 * i as f64, y));
            chart.draw_series([EmptyElement::at(at[0]) + Text::new(*name, (0, -4), style)]).map_err(failed(ID))?;
        }
        for (i, bar) in bars.iter().enumerate() {
            let top = rows - i as f64 - 0.12;
            let name = anchored(13, &INK, HPos::Right, VPos::Center);
            let label = format!("{} ({})", bar.kind, bar.cases);
            chart
                .draw_series([EmptyElement::at((0.0, top - 0.38)) + Text::new(label, (-10, 0), name)])
                .map_err(failed(ID))?;
            for (j, (_, hits)) in bar.detectors().into_iter().enumerate() {
                let (share, [least, most]) = (bar.share(hits), wilson(hits, bar.trials));
                let (high, low) = (top - 0.26 * j as f64, top - 0.26 * (j + 1) as f64 + 0.03);
                let colour = DETECTORS[j].filled();
                chart.draw_series([Rectangle::new([(0.0, low), (share, high)], colour)]).map_err(failed(ID))?;
                let middle = (high + low) / 2.0;
                chart.draw_series(LineSeries::new([(least, middle), (most, middle)], INK)).map_err(failed(ID))?;
                let text = anchored(10, &FAINT, HPos::Left, VPos::Center);
                let percent = format!("{:.0} %", 100.0 * share);
                let at = EmptyElement::at((most, middle));
                chart.draw_series([at + Text::new(percent, (4, 0), text)]).map_err(failed(ID))?;
            }
        }
        Ok(())
    })?;
    let mut csv = "kind,cases,trials,check,flagged,share,low,high\n".to_owned();
    for bar in bars {
        let DetectorBar { kind, cases, trials, .. } = bar;
        for (name, hits) in bar.detectors() {
            let [low, high] = wilson(hits, *trials);
            let _ = writeln!(csv, "{kind},{cases},{trials},{name},{hits},{},{low},{high}", bar.share(hits));
        }
    }
    Ok(Figure { id: ID, svg, csv })
}
