//! The text of evaluation tasks, without its structure: enough to keep it out of training.

use super::html::{Event, events};
use super::invalid_utf8;
use bzip2_rs::DecoderReader;
use serde_json::Value;
use std::io::Read;

/// A packed task must not be larger than this when unpacked.
const LARGEST: u64 = 64 << 20;

/// A task's file as text, unpacked where its name ends in `.bz2`, and its name without that.
///
/// # Errors
/// A message for a file that cannot be unpacked, is too large, or is not UTF-8.
pub fn text(path: &str, bytes: &[u8]) -> Result<(String, String), String> {
    if let Some(path) = path.strip_suffix(".bz2") {
        let mut content = Vec::new();
        let read = DecoderReader::new(bytes).take(LARGEST + 1).read_to_end(&mut content);
        read.map_err(|e| format!("cannot be unpacked: {e}"))?;
        if content.len() as u64 > LARGEST {
            return Err(format!("unpacks to more than {LARGEST} bytes"));
        }
        return text(path, &content);
    }
    let content = std::str::from_utf8(bytes).map_err(invalid_utf8)?;
    Ok((path.to_owned(), content.to_owned()))
}

/// Every string of a task's file: of JSON, JSON lines, XML, or lines of text (also packed by bzip2).
///
/// # Errors
/// A message for a file that is not what its name says.
pub fn texts(path: &str, bytes: &[u8]) -> Result<Vec<String>, String> {
    let (path, text) = text(path, bytes)?;
    let text = text.as_str();
    let mut strings = Vec::new();
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "json" => add_strings(&parse(text)?, &mut strings),
        "jsonl" => {
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                add_strings(&parse(line)?, &mut strings);
            }
        }
        "xml" => strings.extend(events(text).into_iter().filter_map(|event| match event {
            Event::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => None,
        })),
        _ => strings.extend(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned)),
    }
    Ok(strings)
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))
}

fn add_strings(value: &Value, strings: &mut Vec<String>) {
    match value {
        Value::String(text) => strings.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| add_strings(value, strings)),
        Value::Object(fields) => fields.values().for_each(|value| add_strings(value, strings)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_out_of_every_kind_of_file() {
        assert_eq!(texts("a/b.json", br#"[{"c": "one", "q": ["two", 3]}]"#).unwrap(), ["one", "two"]);
        assert_eq!(texts("b.jsonl", b"{\"q\": \"one\"}\n\n{\"q\": \"two\"}\n").unwrap(), ["one", "two"]);
        assert_eq!(texts("c.xml", b"<i n=\"1\">\n<p>one</p><p>t&amp;o</p></i>").unwrap(), ["one", "t&o"]);
        assert_eq!(texts("d.lst", b"0\n1\n").unwrap(), ["0", "1"]);
        for (path, bytes) in [("a.json", b"{".as_slice()), ("a.txt", b"\xFF"), ("a.txt.bz2", b"BZh9 no")] {
            assert!(texts(path, bytes).is_err(), "{path}");
        }
    }
}
