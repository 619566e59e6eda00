//! Plain text of Project Gutenberg: hard-wrapped paragraphs between two marker lines.

use super::markup::without_italics;
use super::paragraphs::cut;

/// The book between the start and the end marker, cut into documents.
///
/// # Errors
/// A message when there is no start marker.
pub fn documents(text: &str) -> Result<Vec<String>, String> {
    let is_start = |line: &str| line.starts_with("*** START OF TH");
    let is_end = |line: &str| {
        line.starts_with("End of Project Gutenberg")
            || line.starts_with("End of the Project Gutenberg")
            || line.starts_with("*** END OF TH")
    };
    let mut lines = text.lines().map(str::trim_end).skip_while(|line| !is_start(line));
    lines.next().ok_or("no line starts with `*** START OF TH`, which opens a Project Gutenberg text")?;
    let lines: Vec<&str> = lines.take_while(|line| !is_end(line)).collect();
    let paragraphs: Vec<String> =
        lines.split(|line| line.is_empty()).map(paragraph).filter(|p| !p.is_empty() && !is_credit(p)).collect();
    Ok(cut(&paragraphs))
}

/// The bytes as ISO-8859-1, in which every byte is a character of the same number.
pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

/// Joins the lines of a paragraph; indented lines (verse, letter heads) keep their breaks.
fn paragraph(lines: &[&str]) -> String {
    let indented = lines.iter().filter(|line| line.starts_with("  ")).count();
    let separator = if indented * 2 > lines.len() { "\n" } else { " " };
    let lines: Vec<String> = lines.iter().map(|line| without_italics(line.trim())).collect();
    without_note_numbers(&lines.join(separator))
}

/// Takes out `[12]`, the number of a footnote.
fn without_note_numbers(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let inside = &rest[at + 1..];
        let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
        let is_number = digits > 0 && inside[digits..].starts_with(']');
        kept.push_str(if is_number { rest[..at].trim_end_matches(' ') } else { &rest[..=at] });
        rest = if is_number { &inside[digits + 1..] } else { inside };
    }
    kept + rest
}

/// Who made the file, and rows of stars or dots between parts.
fn is_credit(paragraph: &str) -> bool {
    let names_the_maker = ["Produced by", "E-text prepared by", "This etext was", "[Illustration"];
    names_the_maker.iter().any(|start| paragraph.starts_with(start)) || !paragraph.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_is_what_lies_between_the_markers() {
        let text = "licence\r\n*** START OF THIS PROJECT GUTENBERG EBOOK A ***\r\n\r\nProduced by B\r\n\r\nIt was\r\nthe \
                    _best_ of [3] a_b [12].\r\n\r\n* * *\r\n\r\n    O\r\n    K\r\n\r\nEnd of the Project Gutenberg EBook\r\nmore\r\n";
        assert_eq!(documents(text).unwrap(), ["It was the best of a_b.\n\nO\nK"]);
        assert!(documents("no marker").is_err());
        assert_eq!(latin1(b"caf\xE9"), "café");
    }
}
