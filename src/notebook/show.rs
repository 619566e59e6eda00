//! Figures and tables that show themselves when they end a cell.
//!
//! The Rust kernel calls `evcxr_display` on the value of a cell's last expression and takes what stands between two
//! marks of its standard output as one block of a type. One block a type is kept, so each type is written once.

use crate::report::Table;
use crate::report::figure::Figure;
use std::fmt::Write;

/// Rows of a figure's numbers in its text form.
const NUMBERS: usize = 8;
/// Columns of a table in its text form.
const WIDTH: usize = 118;

/// One block of the kernel's protocol.
fn block(mime: &str, content: &str) -> String {
    format!("EVCXR_BEGIN_CONTENT {mime}\n{}\nEVCXR_END_CONTENT\n", content.trim_end())
}

impl Figure {
    /// Writes the figure for a notebook: the drawing, and a summary in text for readers and programs without pictures.
    /// The drawing has a white page of its own, so that it reads on a dark background too. There is no bitmap: the fonts
    /// of the machine would decide its bytes, and two machines could not compare their outputs.
    pub fn evcxr_display(&self) {
        print!("{}", self.blocks());
    }

    fn blocks(&self) -> String {
        block("image/svg+xml", &self.svg) + &block("text/plain", &self.summary())
    }

    /// Title, caption and the first of the numbers.
    pub fn summary(&self) -> String {
        let words = self.words();
        let mut text = format!("{}\n{}\n", words.title, words.caption);
        let rows = self.csv.lines().count().saturating_sub(1);
        for line in self.csv.lines().take(NUMBERS + 1) {
            let cells: Vec<String> = line.split(',').map(rounded).collect();
            let _ = writeln!(text, "  {}", cells.join(","));
        }
        if rows > NUMBERS {
            let _ = writeln!(text, "  … {} rows more", rows - NUMBERS);
        }
        text
    }
}

/// A number with more digits after the point than a reader wants, with four of them; anything else as it is.
fn rounded(cell: &str) -> String {
    let long = cell.split_once('.').is_some_and(|(_, digits)| digits.len() > 4);
    match cell.parse::<f64>() {
        Ok(number) if long && number.abs() >= 1e-3 => format!("{number:.4}"),
        Ok(number) if long => format!("{number:.1e}"),
        _ => cell.to_owned(),
    }
}

impl Table {
    /// Writes the table for a notebook, as HTML and as aligned text.
    pub fn evcxr_display(&self) {
        print!("{}", self.blocks());
    }

    fn blocks(&self) -> String {
        block("text/html", &self.to_html()) + &block("text/plain", &self.to_text(WIDTH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figure::{Series, lines};

    #[test]
    fn a_figure_is_a_drawing_on_white_and_a_text() {
        let points: Vec<(f64, f64)> = (0..20).map(|i| (f64::from(i), f64::from(i * i))).collect();
        let figure = lines("Squares", "20 points.", ["x", "y"], &[Series::line("x²", points)]).unwrap();
        let blocks = figure.blocks();
        assert_eq!(blocks.matches("EVCXR_BEGIN_CONTENT").count(), 2);
        assert!(blocks.starts_with("EVCXR_BEGIN_CONTENT image/svg+xml\n<svg "), "{blocks}");
        assert!(blocks.contains("fill=\"#FFFFFF\""), "the page is white");
        let text = blocks.split("EVCXR_BEGIN_CONTENT text/plain\n").nth(1).unwrap();
        assert!(text.starts_with("Squares\n20 points.\n  series,x,y\n  x²,0,0\n"), "{text}");
        assert!(text.ends_with("  … 12 rows more\nEVCXR_END_CONTENT\n"), "{text}");
    }

    #[test]
    fn long_numbers_are_cut_and_nothing_else() {
        let cells = ["0.4375081", "0.25", "1024", "rms-norm", "0.00001234", "a.bcdefgh", "-2.718281828"];
        assert_eq!(cells.map(rounded), ["0.4375", "0.25", "1024", "rms-norm", "1.2e-5", "a.bcdefgh", "-2.7183"]);
    }

    #[test]
    fn a_table_is_html_and_text() {
        let mut table = Table::new("t", &["name", "value"]);
        table.push(vec!["a".to_owned(), "1".to_owned()]);
        let blocks = table.blocks();
        assert!(blocks.starts_with("EVCXR_BEGIN_CONTENT text/html\n<table>") && blocks.contains("<td>1</td>"));
        assert!(blocks.ends_with("name  value\n────  ─────\na     1\nEVCXR_END_CONTENT\n"), "{blocks}");
    }
}
