//! Files with one sentence on each line.

use super::{Texts, invalid_utf8};
use std::io::{BufRead, Read};

/// Bytes of a line that are taken for one text; what is longer is no sentence, and is cut at white space, so
/// that a file of one line needs no more memory than any other.
const LONGEST: usize = 1 << 20;

/// One text of a file, or what could not be used of it: where, why, and its size in bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A text.
    Text(String),
    /// What is no text.
    Skipped(String, String, u64),
}

/// Every line that is not blank, without white space at its ends. A line that is not UTF-8 is skipped.
pub fn sentences(bytes: &[u8]) -> Texts {
    let mut result = Texts::default();
    for piece in pieces(bytes) {
        match piece {
            Ok(Piece::Text(text)) => result.texts.push(text),
            Ok(Piece::Skipped(place, reason, size)) => result.skipped.push((place, reason, size)),
            Err(e) => unreachable!("a slice is read without error: {e}"),
        }
    }
    result
}

/// As [`sentences`], one after the other, of a file that may be larger than the memory.
pub fn pieces<R: BufRead>(input: R) -> Pieces<R> {
    Pieces { input, line: 0, starts_line: true, buffer: Vec::new(), is_done: false }
}

/// The iterator behind [`pieces`].
pub struct Pieces<R> {
    input: R,
    line: usize,
    starts_line: bool,
    buffer: Vec<u8>,
    is_done: bool,
}

impl<R: BufRead> Pieces<R> {
    /// The next line, or as much of it as is taken at a time; `None` at the end.
    fn line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        if self.is_done {
            return Ok(None);
        }
        let wanted = LONGEST - self.buffer.len();
        let read = (&mut self.input).take(wanted as u64).read_until(b'\n', &mut self.buffer)?;
        self.line += usize::from(self.starts_line);
        let mut line = std::mem::take(&mut self.buffer);
        self.starts_line = line.last() == Some(&b'\n');
        if self.starts_line {
            line.pop();
        } else if read < wanted {
            self.is_done = true;
        } else {
            self.buffer = line.split_off(cut(&line));
        }
        Ok(Some(line))
    }
}

/// Where to cut a line that is too long: after its last white space, or else before a character that may not be whole.
fn cut(line: &[u8]) -> usize {
    let space = line.iter().rposition(u8::is_ascii_whitespace).map(|at| at + 1);
    let is_start = |byte: &u8| byte & 0xC0 != 0x80;
    let character = line[line.len() - 4..].iter().rposition(is_start).map(|at| line.len() - 4 + at);
    space.or(character).unwrap_or(line.len())
}

impl<R: BufRead> Iterator for Pieces<R> {
    type Item = std::io::Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let is_first = self.line == 0;
            let line = match self.line() {
                Ok(line) => line?,
                Err(error) => return Some(Err(error)),
            };
            let bytes = if is_first { without_mark(&line) } else { &line };
            match std::str::from_utf8(bytes).map(str::trim) {
                Ok("") => {}
                Ok(text) => return Some(Ok(Piece::Text(text.to_owned()))),
                Err(e) => {
                    let place = format!("line {}", self.line);
                    return Some(Ok(Piece::Skipped(place, invalid_utf8(e), bytes.len() as u64)));
                }
            }
        }
    }
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

/// What `text` makes of every line that is not blank.
pub fn each_line(bytes: &[u8], text: impl Fn(&str) -> Option<String>) -> Texts {
    let mut result = Texts::default();
    for (at, line) in without_mark(bytes).split(|&b| b == b'\n').enumerate() {
        match std::str::from_utf8(line) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => result.texts.extend(text(line.trim())),
            Err(e) => result.skipped.push((format!("line {}", at + 1), invalid_utf8(e), line.len() as u64)),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_whole_file() {
        for file in ["", "\n", "a", "a\n", "\u{feff} a \r\n\n  \nb\u{a0}\nc", "\u{feff}"] {
            let expected = each_line(file.as_bytes(), |line| Some(line.to_owned()));
            assert_eq!(sentences(file.as_bytes()), expected, "{file:?}");
        }
        let broken = b"ok\n\xff\xfe\nok";
        assert_eq!(sentences(broken), each_line(broken, |line| Some(line.to_owned())));
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_words_and_characters() {
        let words = "আমি ভাত ".repeat(200_000);
        let texts = sentences(format!("{words}\nend").as_bytes()).texts;
        assert_eq!(texts.len(), words.len() / LONGEST + 2);
        assert!(texts.iter().all(|text| text.len() <= LONGEST && !text.contains('\u{fffd}')));
        assert_eq!(texts.join(" "), format!("{words}end"));
        let solid = "ক".repeat(1_000_000);
        let read = sentences(solid.as_bytes());
        assert!(read.skipped.is_empty() && read.texts.len() == 3);
        assert_eq!(read.texts.concat(), solid);
    }
}
