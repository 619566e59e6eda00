//! Accuracy of each multiple-choice task against its line of chance.

use super::style::{DETECTORS, FAINT, GRID, INK, anchored, failed, font, page};
use super::{Figure, ReportError};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "choice";

/// A share with its interval.
pub type Mark = (f64, [f64; 2]);

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceRow {
    /// Its name.
    pub task: String,
    /// Questions asked.
    pub items: usize,
    /// Accuracy of guessing.
    pub chance: f64,
    /// Accuracy of always giving the position that is right most often.
    pub majority: f64,
    /// By the sum of log-probabilities.
    pub by_sum: Mark,
    /// By the sum per character.
    pub by_character: Mark,
    /// Against answers drawn at random.
    pub control: Mark,
}

impl ChoiceRow {
    fn marks(&self) -> [(&'static str, Mark, RGBColor); 3] {
        [
            ("sum of log-probabilities", self.by_sum, DETECTORS[0]),
            ("per character", self.by_character, DETECTORS[1]),
            ("control: answers drawn at random", self.control, FAINT),
        ]
    }
}

/// Draws three marks a task, in the order given, with a tick at chance.
///
/// # Errors
/// [`ReportError::Figure`] when there is no task.
pub fn choice(tasks: &[ChoiceRow], caption: &str) -> Result<Figure, ReportError> {
    if tasks.is_empty() {
        return Err(failed(ID)("there are no tasks to draw"));
    }
    let rows = tasks.len() as f64;
    let most = tasks.iter().flat_map(|t| t.marks().map(|(_, (_, [_, high]), _)| high)).fold(0.0, f64::max);
    let right = (most + 0.08).min(1.04);
    let svg = page(ID, "English multiple choice: accuracy against chance (the dashed ticks)", caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(150)
            .margin_top(22)
            .x_label_area_size(38)
            .build_cartesian_2d(0.0..right, 0.0..rows)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .x_desc("accuracy")
            .x_label_formatter(&|x| format!("{:.0} %", 100.0 * x))
            .label_style(font(12, &INK))
            .draw()
            .map_err(failed(ID))?;
        for (i, (name, _, colour)) in tasks[0].marks().into_iter().enumerate() {
            let style = anchored(13, &colour, HPos::Left, VPos::Bottom);
            let at = (right * [0.0, 0.34, 0.52][i], rows);
            chart.draw_series([EmptyElement::at(at) + Text::new(name, (0, -4), style)]).map_err(failed(ID))?;
        }
        for (i, task) in tasks.iter().enumerate() {
            let top = rows - i as f64;
            let name = anchored(13, &INK, HPos::Right, VPos::Center);
            let label = format!("{} ({})", task.task, task.items);
            let at = EmptyElement::at((0.0, top - 0.5));
            chart.draw_series([at + Text::new(label, (-10, 0), name)]).map_err(failed(ID))?;
            let tick = [(task.chance, top - 0.95), (task.chance, top - 0.05)];
            chart.draw_series(DashedLineSeries::new(tick, 4, 3, INK.stroke_width(1))).map_err(failed(ID))?;
            for (j, (_, (share, [low, high]), colour)) in task.marks().into_iter().enumerate() {
                let y = top - 0.24 - 0.26 * j as f64;
                let line = PathElement::new(vec![(low, y), (high, y)], colour.stroke_width(2));
                chart.draw_series([line]).map_err(failed(ID))?;
                let fill = if j == 2 { WHITE.filled() } else { colour.filled() };
                chart.draw_series([Circle::new((share, y), 4, fill)]).map_err(failed(ID))?;
                chart.draw_series([Circle::new((share, y), 4, colour.stroke_width(1))]).map_err(failed(ID))?;
            }
        }
        Ok(())
    })?;
    let mut csv = "task,items,chance,majority,scoring,accuracy,low,high\n".to_owned();
    for task in tasks {
        for ((_, (share, [low, high]), _), name) in task.marks().into_iter().zip(["sum", "per-character", "control"]) {
            let ChoiceRow { task, items, chance, majority, .. } = task;
            let _ = writeln!(csv, "{task},{items},{chance},{majority},{name},{share},{low},{high}");
        }
    }
    Ok(Figure { id: ID, svg, csv })
}
