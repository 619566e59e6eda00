//! The lines of a text file, in batches of bounded size.

use super::count::cut;
use crate::error::FileError;
use crate::tokenizer::TokenizerError;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Longer lines are cut into texts of about this many bytes.
const LONGEST_LINE: usize = 1 << 20;

/// Bytes of a batch, about.
const BATCH: usize = 1 << 24;

/// A text, or a part of one that is too long to be held whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its characters.
    pub text: String,
    /// The text begins with it.
    pub first: bool,
    /// The text ends with it.
    pub last: bool,
}

/// Calls `each` with the lines of the file at `path`, a few megabytes at a time, without their ends.
/// A line of more than a mebibyte comes in parts, cut at white space where there is any.
///
/// # Errors
/// [`TokenizerError::File`] when it cannot be read, [`TokenizerError::Text`] when it is not UTF-8, and
/// what `each` gives.
pub fn for_each_batch(
    path: &Path,
    each: &mut dyn FnMut(&[Part]) -> Result<(), TokenizerError>,
) -> Result<(), TokenizerError> {
    let file = File::open(path).map_err(FileError::at("read", path))?;
    let mut lines = Lines { reader: BufReader::new(file), path, pending: Vec::new(), line: 1, first: true };
    let (mut batch, mut size) = (Vec::new(), 0);
    while let Some(part) = lines.next()? {
        size += part.text.len();
        batch.push(part);
        if size >= BATCH {
            each(&batch)?;
            batch.clear();
            size = 0;
        }
    }
    each(&batch)
}

struct Lines<'a> {
    reader: BufReader<File>,
    path: &'a Path,
    pending: Vec<u8>,
    line: u64,
    first: bool,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<Part>, TokenizerError> {
        let room = (LONGEST_LINE - self.pending.len()) as u64;
        let mut limited = (&mut self.reader).take(room);
        let read = limited.read_until(b'\n', &mut self.pending).map_err(FileError::at("read", self.path))?;
        if self.pending.is_empty() {
            return Ok(None);
        }
        let whole = self.pending.ends_with(b"\n") || (read as u64) < room;
        let line = self.line;
        let refuse = |at: usize| TokenizerError::Text { path: self.path.to_path_buf(), line, byte: at + 1 };
        let text = match std::str::from_utf8(&self.pending) {
            Ok(text) => text,
            // The limit may have cut a character: its rest comes with the next part.
            Err(e) if !whole && e.error_len().is_none() => {
                std::str::from_utf8(&self.pending[..e.valid_up_to()]).unwrap_or_default()
            }
            Err(e) => return Err(refuse(e.valid_up_to())),
        };
        let end = if whole { text.len() } else { cut(text, text.len().saturating_sub(1)) };
        let ends: &[char] = if whole { &['\n', '\r'] } else { &[] };
        let text = text[..end].trim_start_matches('\u{feff}').trim_end_matches(ends).to_owned();
        self.pending.drain(..end);
        self.line += u64::from(whole);
        let first = std::mem::replace(&mut self.first, whole);
        Ok(Some(Part { text, first, last: whole }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(bytes: &[u8]) -> Result<Vec<Part>, TokenizerError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text.txt");
        std::fs::write(&path, bytes).unwrap();
        let mut lines = Vec::new();
        for_each_batch(&path, &mut |batch| {
            lines.extend_from_slice(batch);
            Ok(())
        })?;
        Ok(lines)
    }

    fn read(bytes: &[u8]) -> Result<Vec<String>, TokenizerError> {
        Ok(parts(bytes)?.into_iter().map(|part| part.text).collect())
    }

    #[test]
    fn lines_come_without_their_ends_and_long_ones_in_parts() {
        assert_eq!(read("\u{feff}ক\r\n\nখ".as_bytes()).unwrap(), ["ক", "", "খ"]);
        assert_eq!(read(b"").unwrap(), Vec::<String>::new());
        for unit in ["কি", "কি খ ", "a"] {
            let long = unit.repeat(3_000_000 / unit.len());
            let found = parts(format!("{long}\nend\n").as_bytes()).unwrap();
            let places: Vec<(bool, bool)> = found.iter().map(|part| (part.first, part.last)).collect();
            let (last, middle) = (places.len() - 2, (false, false));
            assert_eq!(
                (places[0], places[1], places[last], places[last + 1]),
                ((true, false), middle, (false, true), (true, true))
            );
            let parts: Vec<String> = found.into_iter().map(|part| part.text).collect();
            assert!(parts.len() >= 4 && parts.iter().all(|part| part.len() <= LONGEST_LINE));
            assert_eq!(parts.last().unwrap(), "end");
            assert_eq!(parts[..parts.len() - 1].concat(), long);
            assert!(parts.iter().all(|part| !part.starts_with('\u{9bf}')), "no cut inside a cluster");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_named_with_their_line() {
        let message = read(b"ok\nab\xFFcd\n").unwrap_err().to_string();
        assert!(message.contains("text.txt") && message.contains("line 2, byte 3"), "{message}");
        assert!(read(b"ok\n\xE0\xA6").unwrap_err().to_string().contains("line 2, byte 1"));
    }
}
