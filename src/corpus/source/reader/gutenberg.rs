//! Plain text of Project Gutenberg: hard-wrapped paragraphs between two marker lines.

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
    lines.join(separator)
}

/// `_word_` marks italics; an underscore inside a word stays.
fn without_italics(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    let is_letter = |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric());
    let kept = characters
        .iter()
        .enumerate()
        .filter(|&(at, &c)| c != '_' || (is_letter(at.checked_sub(1)) && is_letter(Some(at + 1))));
    kept.map(|(_, c)| c).collect()
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
                    _best_ of a_b.\r\n\r\n* * *\r\n\r\n    O\r\n    K\r\n\r\nEnd of the Project Gutenberg EBook\r\nmore\r\n";
        assert_eq!(documents(text).unwrap(), ["It was the best of a_b.\n\nO\nK"]);
        assert!(documents("no marker").is_err());
        assert_eq!(latin1(b"caf\xE9"), "café");
    }
}
