//! The share of combining marks in a language's text against what GPT-2's pattern loses on it.

use super::style::{FAINT, GRID, INK, anchored, failed, font, language_colour, page};
use super::{Figure, ReportError};
use crate::tokenizer::study::Cause;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::fmt::Write;

const ID: &str = "fertility-cause";

/// Languages with a label: the ends, the middle and what does not lie on the line. Code, name, whether the
/// name stands to the left of the point, and how much higher.
const LABELS: [(&str, &str, bool, f64); 13] = [
    ("ben", "Bangla", true, 0.035),
    ("eng", "English, and others without marks", false, -0.008),
    ("tam", "Tamil", true, 0.0),
    ("mal", "Malayalam", false, 0.0),
    ("mya", "Burmese", true, 0.0),
    ("shn", "Shan", true, 0.0),
    ("div", "Dhivehi", false, 0.0),
    ("tha", "Thai", true, 0.0),
    ("lao", "Lao", false, 0.0),
    ("bod", "Tibetan", false, 0.0),
    ("yor", "Yoruba", false, 0.0),
    ("sin", "Sinhala", true, 0.0),
    ("ccp", "Chakma", false, 0.0),
];

/// Draws a point for every language, with its interval.
///
/// # Errors
/// [`ReportError::Figure`] when there is no language.
pub fn cause(cause: &Cause) -> Result<Figure, ReportError> {
    if cause.languages.is_empty() {
        return Err(failed(ID)("there are no languages to draw"));
    }
    let x = cause.languages.iter().map(|l| l.marks).fold(0.1, f64::max) * 1.1;
    let y = cause.languages.iter().map(|l| l.loss.high).fold(0.1, f64::max) * 1.1;
    let low = cause.languages.iter().map(|l| l.loss.low).fold(0.0, f64::min) - 0.02;
    let title = "The cause: the more combining marks a script writes, the more GPT-2's pattern loses on it";
    let r = cause.correlation;
    let caption = format!(
        "{} UDHR translations; {} tokens trained on half the paragraphs, tested on the other; 95 % intervals; r = {:.2} [{:.2}, {:.2}].",
        cause.languages.len(),
        cause.vocabulary,
        r.value,
        r.low,
        r.high
    );
    let svg = page(ID, title, &caption, |area| {
        let mut chart = ChartBuilder::on(area)
            .x_label_area_size(38)
            .y_label_area_size(58)
            .build_cartesian_2d(-0.012..x, low..y)
            .map_err(failed(ID))?;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(FAINT)
            .x_desc("combining marks among the characters")
            .y_desc("characters per token lost with `gpt2`")
            .label_style(font(12, &INK))
            .x_label_formatter(&|x| format!("{:.0} %", 100.0 * x))
            .y_label_formatter(&|y| format!("{:.0} %", 100.0 * y))
            .draw()
            .map_err(failed(ID))?;
        for language in &cause.languages {
            let (at, colour) = ((language.marks, language.loss.value), language_colour(code(&language.language)));
            let bar = [(at.0, language.loss.low), (at.0, language.loss.high)];
            chart.draw_series([PathElement::new(bar.to_vec(), colour.mix(0.4))]).map_err(failed(ID))?;
            chart.draw_series([Circle::new(at, 4, colour.mix(0.85).filled())]).map_err(failed(ID))?;
            if let Some((_, name, left, up)) = LABELS.iter().find(|(code, ..)| *code == language.language) {
                let (side, shift) = if *left { (HPos::Right, -0.006) } else { (HPos::Left, 0.006) };
                let style = anchored(12, &colour, side, VPos::Center);
                chart
                    .draw_series([Text::new((*name).to_owned(), (at.0 + shift * x / 0.65, at.1 + up), style)])
                    .map_err(failed(ID))?;
            }
        }
        Ok(())
    })?;
    let mut csv =
        "language,characters,marks,gpt2_characters_per_token,marks_characters_per_token,loss,low,high\n".to_owned();
    for l in &cause.languages {
        let (gpt2, kept, loss) = (l.gpt2.value, l.kept.value, l.loss);
        let _ = writeln!(
            csv,
            "{},{},{},{gpt2},{kept},{},{},{}",
            l.language, l.characters, l.marks, loss.value, loss.low, loss.high
        );
    }
    Ok(Figure { id: ID, svg, csv })
}

/// The two languages of the project in their colours.
fn code(language: &str) -> &str {
    match language {
        "ben" => "bn",
        "eng" => "en",
        other => other,
    }
}
