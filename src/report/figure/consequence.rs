//! Held-out loss per character of small models that differ in their tokenizer alone.

use super::style::{FAINT, GRID, INK, anchored, failed, font, language_colour, language_name, page};
use super::{Figure, ReportError};
use crate::report::consequence::{Arm, ArmLanguage, Consequence};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "fertility-consequence";

/// Draws a row for each language and tokenizer, Bangla first: every seed, their mean and its interval.
///
/// # Errors
/// [`ReportError::Figure`] when there is no model.
pub fn consequence(consequence: &Consequence) -> Result<Figure, ReportError> {
    let mut rows: Vec<(&Arm, &ArmLanguage)> =
        consequence.arms.iter().flat_map(|arm| arm.languages.iter().map(move |row| (arm, row))).collect();
    rows.sort_by_key(|(_, row)| row.balance.language.clone());
    if rows.is_empty() {
        return Err(failed(ID)("there are no models to draw"));
    }
    let ends = |end: fn(&ArmLanguage) -> f64| rows.iter().map(move |(_, row)| end(row));
    let (low, high) = (
        ends(|row| row.nats_per_character.low).fold(f64::INFINITY, f64::min),
        ends(|row| row.nats_per_character.high).fold(0.0, f64::max),
    );
    let (left, right) = (low - 0.08 * (high - low), high + 0.16 * (high - low));
    let count = rows.len() as f64;
    let title = "The consequence: what the tokenizer alone does to a small model (lower is better)";
    let caption = format!("{}; bars: 95 %.", consequence.scale());
    let svg = page(ID, title, &caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_left(170)
            .x_label_area_size(38)
            .build_cartesian_2d(left..right, 0.0..count)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .x_desc("nats per character of held-out text (compare within a language only)")
            .label_style(font(12, &INK))
            .x_label_formatter(&|x| format!("{x:.2}"))
            .draw()
            .map_err(failed(ID))?;
        for (i, (arm, row)) in rows.iter().enumerate() {
            let y = count - i as f64 - 0.5;
            let language = &row.balance.language;
            let (found, colour) = (row.nats_per_character, language_colour(language));
            let name = format!("{}, {}", language_name(language), arm.name);
            let beside = anchored(12, &INK, HPos::Left, VPos::Center);
            let before = anchored(13, &INK, HPos::Right, VPos::Center);
            let bar = PathElement::new(vec![(found.low, y), (found.high, y)], colour.stroke_width(3));
            chart.draw_series([bar]).map_err(failed(ID))?;
            let seeds = row.by_seed.iter().map(|x| Circle::new((*x, y + 0.22), 2, colour.mix(0.6).filled()));
            chart.draw_series(seeds).map_err(failed(ID))?;
            chart.draw_series([Circle::new((found.value, y), 5, colour.filled())]).map_err(failed(ID))?;
            chart
                .draw_series([
                    EmptyElement::at((found.high, y)) + Text::new(format!("{:.3}", found.value), (8, 0), beside),
                    EmptyElement::at((left, y)) + Text::new(name, (-10, 0), before),
                ])
                .map_err(failed(ID))?;
        }
        Ok(())
    })?;
    Ok(Figure { id: ID, svg, csv: csv(&rows) })
}

fn csv(rows: &[(&Arm, &ArmLanguage)]) -> String {
    let mut csv = "language,tokenizer,seed,nats_per_character,low,high\n".to_owned();
    for (arm, row) in rows {
        let (language, found) = (&row.balance.language, row.nats_per_character);
        let _ = writeln!(csv, "{language},\"{}\",mean,{},{},{}", arm.name, found.value, found.low, found.high);
        for (i, loss) in row.by_seed.iter().enumerate() {
            let _ = writeln!(csv, "{language},\"{}\",{i},{loss},,", arm.name);
        }
    }
    csv
}
