//! A figure taken apart for a page whose lines wrap: its title, its caption, and the plot between them.

use super::Figure;
use super::style::{BELOW, TOP};

/// A figure in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// What is seen, plain text.
    pub title: String,
    /// On what it was measured, plain text.
    pub caption: String,
    /// The SVG without the two, as wide as its frame.
    pub plot: String,
}

impl Figure {
    /// The figure in parts: the title and the caption are the first two texts that are drawn. An SVG without them is
    /// all plot.
    pub fn words(&self) -> Words {
        let whole = || Words { title: String::new(), caption: String::new(), plot: self.svg.clone() };
        let parts = || {
            let (title, rest) = first_text(&self.svg)?;
            let (caption, plot) = first_text(&rest)?;
            Some(Words { title, caption, plot: cropped(&plot)? })
        };
        parts().unwrap_or_else(whole)
    }
}

/// The first text of an SVG, and the SVG without it.
fn first_text(svg: &str) -> Option<(String, String)> {
    let (before, rest) = svg.split_once("<text")?;
    let (element, after) = rest.split_once("</text>\n")?;
    let text = element.split_once('>')?.1.trim();
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let text = entities.iter().fold(text.to_owned(), |text, (entity, c)| text.replace(entity, c));
    Some((text, format!("{before}{after}")))
}

/// The SVG without the strips that title and caption stood on, and without a size of its own.
fn cropped(svg: &str) -> Option<String> {
    let (open, rest) = svg.split_once('>')?;
    let attribute = |name: &str| {
        let (_, value) = open.split_once(&format!(" {name}=\""))?;
        value.split('"').next()?.parse::<u32>().ok()
    };
    let (width, height) = (attribute("width")?, attribute("height")?);
    let view = format!("0 {TOP} {width} {}", height.checked_sub(TOP + BELOW)?);
    Some(format!("<svg viewBox=\"{view}\" xmlns=\"http://www.w3.org/2000/svg\">{rest}"))
}

#[cfg(test)]
mod tests {
    use super::super::{Bar, fertility};
    use super::*;

    #[test]
    fn title_and_caption_leave_the_plot_and_nothing_else_does() {
        let (language, pre_tokenizer) = ("bn".to_owned(), "marks".to_owned());
        let bar = Bar { language, pre_tokenizer, value: 3.35, interval: [3.2, 3.5] };
        let figure = fertility(&[bar], "3 < 4 'texts' & more.").unwrap();
        let words = figure.words();
        assert_eq!(words.caption, "3 < 4 'texts' & more.");
        assert!(words.title.starts_with("Fertility: GPT-2's pattern"), "{}", words.title);
        assert!(words.plot.starts_with("<svg viewBox=\"0 34 760 372\" xmlns="), "{}", words.plot);
        assert_eq!(words.plot.matches("<text").count() + 2, figure.svg.matches("<text").count());
        assert!(words.plot.contains("3.35") && !words.plot.contains("Fertility"));
    }

    #[test]
    fn an_svg_without_words_is_all_plot() {
        let figure = Figure { id: "x", svg: "<svg width=\"1\">\n</svg>\n".to_owned(), csv: String::new() };
        assert_eq!(figure.words(), Words { title: String::new(), caption: String::new(), plot: figure.svg.clone() });
    }
}
