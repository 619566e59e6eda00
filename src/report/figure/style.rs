//! The visual language: a palette that colour-blind readers can tell apart (M. Okabe, K. Ito 2008), a
//! title that says what is seen, a caption that says on what, direct labels in place of legends.

use super::super::ReportError;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) const WIDTH: u32 = 760;
pub(super) const HEIGHT: u32 = 430;
/// Height of the strip above the plot that holds the title alone, and of the one below that holds the caption.
pub(super) const TOP: u32 = 34;
pub(super) const BELOW: u32 = 24;
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
pub(super) const FAINT: RGBColor = RGBColor(110, 110, 110);
pub(super) const GRID: RGBColor = RGBColor(226, 226, 226);
const BLUE: RGBColor = RGBColor(0, 114, 178);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const GREEN: RGBColor = RGBColor(0, 120, 90);
const PURPLE: RGBColor = RGBColor(170, 80, 130);

/// The colour of a language: the same in every figure.
pub(super) fn language_colour(language: &str) -> RGBColor {
    match language {
        "bn" => BLUE,
        "en" => VERMILION,
        _ => GREEN,
    }
}

/// The colours of three checks side by side: the arbiter, presence only, the loss curve.
pub(super) const DETECTORS: [RGBColor; 3] = [BLUE, VERMILION, PURPLE];

/// The colours of up to five lines of no language.
pub(super) const SERIES: [RGBColor; 5] = [VERMILION, RGBColor(170, 120, 0), PURPLE, BLUE, GREEN];

/// The colour of the training loss, of no language.
pub(super) const TRAIN: RGBColor = PURPLE;

/// The name of a language for a reader.
pub(super) fn language_name(language: &str) -> &str {
    match language {
        "bn" => "Bangla",
        "en" => "English",
        other => other,
    }
}

pub(super) fn font(size: u32, colour: &RGBColor) -> TextStyle<'static> {
    ("sans-serif", size as i32).into_font().color(colour)
}

pub(super) fn anchored(size: u32, colour: &RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    font(size, colour).pos(Pos::new(h, v))
}

/// Any drawing error, as the figure's.
pub(super) fn failed<E: std::fmt::Display>(id: &'static str) -> impl Fn(E) -> ReportError {
    move |e| ReportError::Figure { id: id.to_owned(), message: e.to_string() }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws title and caption around what `draw` puts on the area between them, and gives the SVG.
pub(super) fn page(
    id: &'static str,
    title: &str,
    caption: &str,
    draw: impl FnOnce(&Area) -> Result<(), ReportError>,
) -> Result<String, ReportError> {
    page_of(id, HEIGHT, title, caption, draw)
}

/// [`page`] of another height.
pub(super) fn page_of(
    id: &'static str,
    height: u32,
    title: &str,
    caption: &str,
    draw: impl FnOnce(&Area) -> Result<(), ReportError>,
) -> Result<String, ReportError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed(id))?;
        root.draw(&Text::new(title.to_owned(), (18, 14), font(17, &INK))).map_err(failed(id))?;
        root.draw(&Text::new(caption.to_owned(), (18, height as i32 - 22), font(12, &FAINT))).map_err(failed(id))?;
        draw(&root.margin(44, 30, 12, 18))?;
        root.present().map_err(failed(id))?;
    }
    Ok(svg)
}

/// Moves labels apart until no two are closer than `gap`.
pub(super) fn spread(labels: &mut [(f64, String, RGBColor)], gap: f64) {
    labels.sort_by(|a, b| b.0.total_cmp(&a.0));
    for i in 1..labels.len() {
        labels[i].0 = labels[i].0.min(labels[i - 1].0 - gap);
    }
}
