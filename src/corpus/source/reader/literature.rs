//! Literature in Markdown: prose that is hard-wrapped and verse whose layout counts.

use super::markup::{is_mostly_bangla, without_comments, without_front_matter, without_tags};
use super::paragraphs::Sections;

/// Chapters and poems, cut into documents.
pub fn documents(text: &str) -> Vec<String> {
    let text = without_comments(without_front_matter(text)).replace("<br/>", "\\\n");
    let text = without_tags(&text);
    let mut reader = Literature::default();
    text.lines().for_each(|line| reader.line(line));
    reader.end_paragraph();
    reader.sections.documents()
}

#[derive(Default)]
struct Literature {
    sections: Sections,
    paragraph: String,
    in_verse: bool,
    /// Whether the last line of the paragraph ended with a backslash: a line break to keep.
    hard_break: bool,
}

impl Literature {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            self.end_paragraph();
            self.in_verse = !self.in_verse;
        } else if trimmed.is_empty() || is_rule(trimmed) {
            self.end_paragraph();
        } else if self.in_verse {
            self.paragraph.push_str(line.trim_end_matches(['\\', ' ', '\r']));
            self.paragraph.push('\n');
        } else if let Some(heading) = heading(trimmed) {
            self.end_paragraph();
            self.sections.heading(heading);
        } else {
            self.prose(trimmed);
        }
    }

    /// Joins a hard-wrapped line to its paragraph.
    fn prose(&mut self, line: &str) {
        if !self.paragraph.is_empty() {
            self.paragraph.push(if self.hard_break { '\n' } else { ' ' });
        }
        self.hard_break = line.ends_with('\\');
        self.paragraph.push_str(line.trim_end_matches('\\').trim_end());
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        // Notes of the makers are in English.
        if is_mostly_bangla(&paragraph) {
            self.sections.paragraph(&paragraph);
        }
        self.hard_break = false;
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim())
}

/// `* * *`, `---` alone and the like.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '*' | '-' | '_' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_joined_and_verse_is_kept() {
        let text = "---\ntitle: ক\n---\n\n<!--\nছাপা\n-->\n# ঘাটের কথা\n\nপাষাণে ঘটনা যদি---\n   অঙ্কিত হইত।\\\nতবে\n\n* * * *\n\n\
                    ## খিচুড়ি\n<img src=\"a.svg\" />\nMore remain: see [here](x)\n````\nহাঁস ছিল,\n        সজারু \\\n\nবক কহে\n````\n";
        assert_eq!(
            documents(text),
            ["ঘাটের কথা\n\nপাষাণে ঘটনা যদি--- অঙ্কিত হইত।\nতবে", "খিচুড়ি\n\nহাঁস ছিল,\n        সজারু\n\nবক কহে"]
        );
    }
}
