//! Parallel sentences: two files line by line, translation memories, and the Universal Declaration.

use super::html::{Event, events};
use super::invalid_utf8;
use super::markup::collapse;
use super::zip::only_member;
use crate::corpus::ParallelPair;

/// Pairs and what could not be used (place, reason, bytes).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// The pairs, in the order of the source.
    pub pairs: Vec<ParallelPair>,
    /// What could not be used: where, why, and its size in bytes.
    pub skipped: Vec<(String, String, u64)>,
}

impl Pairs {
    /// Adds a pair; one with an empty side says nothing and is left out.
    fn add(&mut self, bn: &str, en: &str) {
        let (bn, en) = (collapse(bn), collapse(en));
        if !bn.is_empty() && !en.is_empty() {
            self.pairs.push(ParallelPair { bn, en });
        }
    }
}

/// Line i of one file is the translation of line i of the other.
///
/// # Errors
/// A message when the files have different numbers of lines.
pub fn lines(bn: &[u8], en: &[u8]) -> Result<Pairs, String> {
    let split = |bytes: &[u8]| {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).to_vec();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes).to_vec();
        bytes.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let (bn, en) = (split(bn), split(en));
    if bn.len() != en.len() {
        return Err(format!("{} lines of Bangla and {} of English, expected as many", bn.len(), en.len()));
    }
    let mut result = Pairs::default();
    for (at, (bn, en)) in bn.iter().zip(&en).enumerate() {
        match (std::str::from_utf8(bn), std::str::from_utf8(en)) {
            (Ok(bn), Ok(en)) => result.add(bn, en),
            (Err(e), _) | (_, Err(e)) => {
                result.skipped.push((format!("line {}", at + 1), invalid_utf8(e), (bn.len() + en.len()) as u64));
            }
        }
    }
    Ok(result)
}

/// A zip archive with one translation memory (TMX 1.4).
///
/// # Errors
/// A message for a damaged archive, or a member that has no translation unit in both languages.
pub fn tmx_zip(archive: &[u8]) -> Result<Pairs, String> {
    let (name, content) = only_member(archive)?;
    let mut result = Pairs::default();
    let text = match std::str::from_utf8(&content) {
        Ok(text) => text,
        Err(e) => {
            result.skipped.push((name, invalid_utf8(e), content.len() as u64));
            return Ok(result);
        }
    };
    let (mut bn, mut en) = (String::new(), String::new());
    let (mut language, mut in_segment) = ("", false);
    for event in events(text) {
        match event {
            Event::Open(name, attributes) if name == "tuv" => language = attribute(attributes, "xml:lang"),
            Event::Open(name, _) if name == "seg" => in_segment = true,
            Event::Close(name) if name == "seg" => in_segment = false,
            Event::Text(text) if in_segment && language == "bn" => bn.push_str(&text),
            Event::Text(text) if in_segment && language == "en" => en.push_str(&text),
            Event::Close(name) if name == "tu" => {
                result.add(&bn, &en);
                bn.clear();
                en.clear();
            }
            _ => {}
        }
    }
    if result.pairs.is_empty() {
        return Err(format!("{name} has no <tu> with a segment in both bn and en"));
    }
    Ok(result)
}

/// The value of an attribute in double quotes; empty when there is none.
fn attribute<'a>(attributes: &'a str, name: &str) -> &'a str {
    let value = attributes.split_once(name).and_then(|(_, rest)| rest.trim_start().strip_prefix('='));
    value.and_then(|v| v.trim_start().strip_prefix('"')?.split_once('"')).map_or("", |(value, _)| value)
}

/// Two pages of the Universal Declaration, matched by preamble and article. Inside one, paragraphs
/// are matched when both pages have as many, and joined otherwise.
///
/// # Errors
/// A message when a page is not UTF-8 or the two do not have as many parts.
pub fn declaration(bn: &[u8], en: &[u8]) -> Result<Pairs, String> {
    let (bn, en) = (declaration_parts(bn)?, declaration_parts(en)?);
    if bn.len() != en.len() {
        return Err(format!("{} parts of Bangla and {} of English, expected as many", bn.len(), en.len()));
    }
    let mut result = Pairs::default();
    for (bn, en) in bn.iter().zip(&en) {
        if bn.len() == en.len() {
            bn.iter().zip(en).for_each(|(bn, en)| result.add(bn, en));
        } else {
            result.add(&bn.join(" "), &en.join(" "));
        }
    }
    Ok(result)
}

/// The paragraphs of the title, of the preamble and of each article of a page of the declaration.
///
/// # Errors
/// A message when the page is not UTF-8 or has no article.
pub fn declaration_parts(page: &[u8]) -> Result<Vec<Vec<String>>, String> {
    let page = std::str::from_utf8(page).map_err(invalid_utf8)?;
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    let mut text: Option<String> = None;
    for event in events(page) {
        match event {
            Event::Open(name, _) if name == "header" || name == "article" => parts.push(Vec::new()),
            Event::Open(name, _) if is_text(&name) => text = Some(String::new()),
            Event::Text(more) => {
                if let Some(text) = &mut text {
                    text.push_str(&more);
                }
            }
            Event::Close(name) if is_text(&name) => {
                let text = collapse(&text.take().unwrap_or_default());
                if let (Some(part), false) = (parts.last_mut(), text.is_empty()) {
                    part.push(text);
                }
            }
            _ => {}
        }
    }
    if parts.len() < 2 {
        return Err("the page has no <article> and no <header>".to_owned());
    }
    Ok(parts)
}

fn is_text(name: &str) -> bool {
    ["h1", "h2", "p", "li"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(bn: &str, en: &str) -> ParallelPair {
        ParallelPair { bn: bn.to_owned(), en: en.to_owned() }
    }

    #[test]
    fn lines_are_matched_by_number() {
        let read = lines("এক\r\nদুই\r\n\r\n".as_bytes(), b"one\r\ntwo\r\nthree\r\n").unwrap();
        assert_eq!(read.pairs, [pair("এক", "one"), pair("দুই", "two")]);
        assert!(lines("এক\n".as_bytes(), b"one\ntwo\n").unwrap_err().contains("1 lines of Bangla and 2"));
        let read = lines(b"\xE0\nk\n", b"one\ntwo\n").unwrap();
        assert_eq!((read.pairs.len(), read.skipped[0].0.as_str()), (1, "line 1"));
    }

    #[test]
    fn a_translation_memory_is_read_from_its_archive() {
        let tmx = "<tmx><tu><prop>x</prop><tuv xml:lang=\"en\"><seg>a &amp; b</seg></tuv><tuv xml:lang=\"bn\"><seg>ক ও খ</seg>\
                   </tuv></tu><tu><tuv xml:lang=\"en\"><seg>alone</seg></tuv></tu></tmx>";
        let archive = super::super::zip::tests::archive("a.tmx", tmx.as_bytes());
        assert_eq!(tmx_zip(&archive).unwrap().pairs, [pair("ক ও খ", "a & b")]);
        assert!(tmx_zip(&super::super::zip::tests::archive("a", b"<tmx></tmx>")).is_err());
        assert!(tmx_zip(b"no archive").is_err());
    }

    #[test]
    fn the_declaration_is_matched_by_article() {
        let page = |title: &str, preamble: &str, article: &str| {
            format!(
                "<title>x</title><h1>{title}</h1><header><h2>p</h2><p>{preamble}</p></header><article>{article}</article>"
            )
        };
        let bn = page("ঘোষণা", "মুখবন্ধ", "<h2>১</h2><p>ক</p><p>খ</p>");
        let en = page("Declaration", "Preamble", "<h2>1</h2><p>a b</p>");
        let read = declaration(bn.as_bytes(), en.as_bytes()).unwrap();
        let expected = [pair("ঘোষণা", "Declaration"), pair("p", "p"), pair("মুখবন্ধ", "Preamble"), pair("১ ক খ", "1 a b")];
        assert_eq!(read.pairs, expected);
        assert!(declaration(b"<p>x</p>", en.as_bytes()).is_err());
    }
}
