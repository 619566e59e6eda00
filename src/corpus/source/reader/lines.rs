//! Files with one sentence on each line.

use super::{Texts, invalid_utf8};

/// Every line that is not blank, without white space at its ends. A line that is not UTF-8 is skipped.
pub fn sentences(bytes: &[u8]) -> Texts {
    each_line(bytes, |line| Some(line.to_owned()))
}

/// What `text` makes of every line that is not blank.
pub fn each_line(bytes: &[u8], text: impl Fn(&str) -> Option<String>) -> Texts {
    let mut result = Texts::default();
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    for (at, line) in bytes.split(|&b| b == b'\n').enumerate() {
        match std::str::from_utf8(line) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => result.texts.extend(text(line.trim())),
            Err(e) => result.skipped.push((format!("line {}", at + 1), invalid_utf8(e), line.len() as u64)),
        }
    }
    result
}
