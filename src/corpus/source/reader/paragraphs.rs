//! Long texts are cut at paragraph ends, so that documents have about the same size.

/// A document is closed when another paragraph would make it longer than this, in characters.
const LONGEST: usize = 4000;
/// A paragraph longer than this is cut at sentence ends first, in characters.
const LONGEST_PARAGRAPH: usize = 6000;

/// A text in sections (chapters, poems, acts), each a list of paragraphs.
#[derive(Debug, Default)]
pub struct Sections {
    sections: Vec<Section>,
}

#[derive(Debug, Default)]
struct Section {
    has_heading: bool,
    paragraphs: Vec<String>,
}

impl Sections {
    /// Starts a section with its heading.
    pub fn heading(&mut self, text: &str) {
        self.sections.push(Section { has_heading: !text.trim().is_empty(), paragraphs: Vec::new() });
        self.paragraph(text);
    }

    /// Adds a paragraph to the last section; blank ones are left out.
    pub fn paragraph(&mut self, text: &str) {
        let text = text.trim_matches('\n').trim_end();
        if text.trim().is_empty() {
            return;
        }
        if self.sections.is_empty() {
            self.sections.push(Section::default());
        }
        if let Some(section) = self.sections.last_mut() {
            section.paragraphs.push(text.to_owned());
        }
    }

    /// The documents: no section shares one with another. A section that is only its heading is left out.
    pub fn documents(self) -> Vec<String> {
        let with_text = |s: &&Section| s.paragraphs.len() > usize::from(s.has_heading);
        self.sections.iter().filter(with_text).flat_map(|s| cut(&s.paragraphs)).collect()
    }
}

/// Joins paragraphs with blank lines into documents of at most about [`LONGEST`] characters.
pub fn cut(paragraphs: &[String]) -> Vec<String> {
    let mut documents: Vec<String> = Vec::new();
    let mut length = LONGEST;
    for piece in paragraphs.iter().flat_map(|p| sentences(p)) {
        let more = piece.chars().count();
        match documents.last_mut() {
            Some(last) if length + more <= LONGEST => {
                last.push_str("\n\n");
                last.push_str(piece);
                length += more;
            }
            _ => {
                documents.push(piece.to_owned());
                length = more;
            }
        }
    }
    documents
}

/// The paragraph itself, or, when it is too long, pieces that end with a sentence.
fn sentences(paragraph: &str) -> Vec<&str> {
    if paragraph.chars().count() <= LONGEST_PARAGRAPH {
        return vec![paragraph];
    }
    let mut pieces = Vec::new();
    let (mut start, mut length) = (0, 0);
    for sentence in paragraph.split_inclusive(['।', '?', '!', ';', '\n']) {
        length += sentence.chars().count();
        let end = sentence.as_ptr() as usize - paragraph.as_ptr() as usize + sentence.len();
        if length >= LONGEST / 2 {
            pieces.push(paragraph[start..end].trim());
            (start, length) = (end, 0);
        }
    }
    pieces.push(paragraph[start..].trim());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_neither_long_nor_torn() {
        let paragraphs: Vec<String> = (0..9).map(|n| format!("{n}").repeat(1500)).collect();
        let documents = cut(&paragraphs);
        assert_eq!(documents.iter().map(|d| d.chars().count()).collect::<Vec<_>>(), [3002, 3002, 3002, 3002, 1500]);
        let long = "আমি যাই। ".repeat(1000);
        let documents = cut(std::slice::from_ref(&long));
        assert!(documents.iter().all(|d| d.chars().count() <= LONGEST && d.ends_with('।')));
        assert_eq!(documents.join(" ").split_whitespace().count(), long.split_whitespace().count());
    }

    #[test]
    fn sections_do_not_mix_and_bare_headings_go() {
        let mut sections = Sections::default();
        sections.heading("empty");
        sections.heading("one");
        sections.paragraph("text\n");
        sections.heading("two");
        sections.paragraph("  verse");
        assert_eq!(sections.documents(), ["one\n\ntext", "two\n\n  verse"]);
    }
}
