//! Tokens per Bangla word against the size of the vocabulary, by pre-tokenizer.

use super::style::{FAINT, GRID, INK, SERIES, anchored, failed, font, page, spread};
use super::{Figure, ReportError};
use crate::tokenizer::study::{Measured, Trained};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "fertility-vocabulary";
const SET: &str = "par-ntrex";
/// The text on which every pre-tokenizer was trained at every vocabulary.
const TEXT: &str = "all";

/// Draws a line for each pre-tokenizer that was trained on the text `all`.
///
/// # Errors
/// [`ReportError::Figure`] when there is none.
pub fn vocabulary(trained: &[Trained]) -> Result<Figure, ReportError> {
    let rows: Vec<(&Trained, &Measured)> = trained
        .iter()
        .filter(|row| row.model == "BPE" && row.text == TEXT)
        .filter_map(|row| Some((row, row.measured.iter().find(|m| m.texts == SET && m.language == "bn")?)))
        .collect();
    let [Some(first), Some(last)] = [rows.first(), rows.last()] else {
        return Err(failed(ID)("there are no tokenizers to draw"));
    };
    let mut names: Vec<&str> = Vec::new();
    for (row, _) in &rows {
        if !names.contains(&row.pre_tokenizer.as_str()) {
            names.push(&row.pre_tokenizer);
        }
    }
    let x = |row: &Trained| (row.vocabulary as f64).log2();
    let (left, right) = (x(first.0), rows.iter().map(|(row, _)| x(row)).fold(x(last.0), f64::max));
    let top = rows.iter().map(|(_, m)| m.fertility.tokens_per_word.high).fold(1.0, f64::max);
    let title = "No vocabulary repairs the pattern: where marks are cut off, a word never takes fewer than its pieces";
    let f = &first.1.fertility;
    let caption = format!(
        "Byte-level BPE trained on the same text; measured on {} sentences and {} words of NTREX; 95 % intervals over sentences.",
        f.texts, f.words
    );
    let svg = page(ID, title, &caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(38)
            .y_label_area_size(52)
            .build_cartesian_2d(left - 0.2..right + 1.3, 0.0..top * 1.05)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .x_desc("tokens in the vocabulary, Bangla and English together")
            .y_desc("tokens per Bangla word")
            .label_style(font(12, &INK))
            .x_labels((right - left) as usize + 2)
            .x_label_formatter(&|x| if *x > right + 0.1 { String::new() } else { format!("{:.0}", x.exp2()) })
            .draw()
            .map_err(failed(ID))?;
        let mut labels = Vec::new();
        for (name, colour) in names.iter().zip(SERIES.iter().cycle()) {
            let own = || rows.iter().filter(|(row, _)| row.pre_tokenizer == *name);
            let points: Vec<(f64, f64)> = own().map(|(row, m)| (x(row), m.fertility.tokens_per_word.value)).collect();
            for (row, m) in own() {
                let interval = m.fertility.tokens_per_word;
                let bar = vec![(x(row), interval.low), (x(row), interval.high)];
                chart.draw_series([PathElement::new(bar, *colour)]).map_err(failed(ID))?;
            }
            chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2))).map_err(failed(ID))?;
            chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.filled()))).map_err(failed(ID))?;
            if let Some((_, height)) = points.last() {
                labels.push((*height, format!("{name} {height:.2}"), *colour));
            }
        }
        spread(&mut labels, 0.05 * top);
        for (height, text, colour) in labels {
            let style = anchored(12, &colour, HPos::Left, VPos::Center);
            chart.draw_series([Text::new(text, (right + 0.1, height), style)]).map_err(failed(ID))?;
        }
        Ok(())
    })?;
    let mut csv = "pre_tokenizer,vocabulary,bangla_tokens_per_word,low,high\n".to_owned();
    for (row, m) in &rows {
        let found = m.fertility.tokens_per_word;
        let _ = writeln!(csv, "{},{},{},{},{}", row.pre_tokenizer, row.vocabulary, found.value, found.low, found.high);
    }
    Ok(Figure { id: ID, svg, csv })
}
