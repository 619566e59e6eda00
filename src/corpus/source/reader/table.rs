//! Text in tables: prompts, encyclopedia openings, words with the mark that follows each.

use super::lines::each_line;
use super::markup::{bangla_and_latin, full_stops, without_between};
use super::paragraphs::cut;
use super::{Texts, invalid_utf8};

/// Sentences of a document made from a running text without paragraphs.
const SENTENCES: usize = 20;

/// `id TAB sentence` on each line; a full stop is added where no mark ends the sentence.
pub fn prompts(bytes: &[u8]) -> Texts {
    each_line(bytes, |line| {
        let (_, sentence) = line.split_once('\t')?;
        let sentence = sentence.trim();
        let ends = sentence.ends_with(['।', '?', '!', '.']);
        (!sentence.is_empty()).then(|| format!("{sentence}{}", if ends { "" } else { "।" }))
    })
}

/// The column `context` of a CSV table with a header. Texts with under 40 Bangla letters or marks, or
/// with a tenth of Latin ones, are lists of names more than language, and left out.
///
/// # Errors
/// A message when the table has no such column or a record is broken.
pub fn contexts(bytes: &[u8]) -> Result<Texts, String> {
    let mut result = Texts::default();
    let mut reader = csv::Reader::from_reader(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
    let headers = reader.byte_headers().map_err(|e| e.to_string())?;
    let column = headers.iter().position(|h| h == b"context").ok_or("the CSV header has no column `context`")?;
    for record in reader.byte_records() {
        let record = record.map_err(|e| e.to_string())?;
        let field = record.get(column).unwrap_or_default();
        match std::str::from_utf8(field) {
            Ok(text) if is_language(text) => {
                let text = full_stops(&without_between(text, "{{", "}}"));
                result.texts.extend(cut(&[text.trim().to_owned()]));
            }
            Ok(_) => {}
            Err(e) => {
                let line = record.position().map_or(0, csv::Position::line);
                result.skipped.push((format!("line {line}"), invalid_utf8(e), field.len() as u64));
            }
        }
    }
    Ok(result)
}

fn is_language(text: &str) -> bool {
    let (bangla, latin) = bangla_and_latin(text);
    bangla >= 40 && latin * 10 <= bangla + latin
}

/// `word TAB label` on each line, where the label names the mark after the word. The text has no
/// paragraphs, so a document is a run of [`SENTENCES`] sentences. A line that is not UTF-8 is skipped.
///
/// # Errors
/// A message for a line without a label or with an unknown one.
pub fn labelled_words(bytes: &[u8]) -> Result<Texts, String> {
    let mut result = Texts::default();
    let (mut text, mut sentences) = (String::new(), 0);
    for (at, line) in bytes.split(|&b| b == b'\n').enumerate() {
        let line = match std::str::from_utf8(line) {
            Ok(line) => line.trim_end_matches('\r'),
            Err(e) => {
                result.skipped.push((format!("line {}", at + 1), invalid_utf8(e), line.len() as u64));
                continue;
            }
        };
        if line.trim().is_empty() {
            continue;
        }
        let (word, label) =
            line.rsplit_once('\t').ok_or(format!("line {} has no tab between word and label", at + 1))?;
        let mark = match label.trim() {
            "O" => "",
            "COMMA" => ",",
            "PERIOD" => "।",
            "QUESTION" => "?",
            other => return Err(format!("line {} has the unknown label `{other}`", at + 1)),
        };
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word.trim());
        text.push_str(mark);
        sentences += usize::from(matches!(mark, "।" | "?"));
        if sentences == SENTENCES {
            result.texts.push(std::mem::take(&mut text));
            sentences = 0;
        }
    }
    result.texts.extend((!text.is_empty()).then_some(text));
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_end_with_a_mark() {
        let read = prompts("a_1\tআমি যাই\na_2\tতুমি কে?\nno tab\n\n".as_bytes());
        assert_eq!(read.texts, ["আমি যাই।", "তুমি কে?"]);
    }

    #[test]
    fn contexts_are_found_by_the_header() {
        let good = "পূর্বা দাম একজন ভারতীয় বাঙালি রবীন্দ্রসঙ্গীত শিল্পী,\nছিলেন।";
        let table = format!("term,context\r\nক,\"{good}\"\r\nখ,ছোট\r\nগ,{} and Latin text\r\n", "ক".repeat(45));
        assert_eq!(contexts(table.as_bytes()).unwrap().texts, [good]);
        let broken = [b"context\n\xFF\xFE".as_slice(), "\nক".as_bytes()].concat();
        let read = contexts(&broken).unwrap();
        assert_eq!(read.skipped, [("line 2".to_owned(), "not UTF-8 at byte 0".to_owned(), 2)]);
        assert!(contexts(b"a,b\n1,2\n").is_err());
    }

    #[test]
    fn marks_come_back_after_their_words() {
        let words = "আমি\tO\nযাই\tCOMMA\nতুমি\tO\nকে\tQUESTION\n".repeat(21);
        let read = labelled_words(words.as_bytes()).unwrap();
        assert_eq!(read.texts.len(), 2);
        assert_eq!(read.texts[1], "আমি যাই, তুমি কে?");
        assert!(labelled_words("আমি\tX\n".as_bytes()).unwrap_err().contains("line 1"));
        assert!(labelled_words("আমি\n".as_bytes()).is_err());
    }
}
