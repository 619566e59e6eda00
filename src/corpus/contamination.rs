//! Keeping text that will be measured on out of training.
//!
//! Words are the word tokens of Unicode (UAX #29), lower-cased. A training document that shares one
//! window of a given number of words (13 in the recipes) with protected text is dropped. Protected
//! text with fewer words than a window has none and protects nothing.

use super::Document;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use unicode_segmentation::UnicodeSegmentation;

/// The windows no training document may contain, as 64-bit hashes.
#[derive(Debug, Clone)]
pub struct Protected {
    window: usize,
    /// In order, each once: a fraction of the memory of a hash set.
    hashes: Vec<u64>,
    /// Whether any protected text has a Bangla character.
    has_bangla: bool,
}

/// What the scan dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContaminationReport {
    /// Words in a window.
    pub window: usize,
    /// Different windows in the protected text.
    pub protected_windows: u64,
    /// Training documents dropped, by source.
    pub dropped: BTreeMap<String, u64>,
    /// The first document dropped and the first window it shares.
    pub example: Option<Example>,
}

/// A training document that held protected text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// Id of the training document.
    pub document: String,
    /// The words it shares with protected text.
    pub window: String,
}

impl Protected {
    /// The windows of `window` words (at least 1) of all `texts`.
    pub fn new<'a>(texts: impl Iterator<Item = &'a str>, window: usize) -> Self {
        let mut protected = Protected::empty(window);
        texts.for_each(|text| protected.add(text));
        protected.seal();
        protected
    }

    /// Nothing is protected yet.
    pub(super) fn empty(window: usize) -> Self {
        Protected { window: window.max(1), hashes: Vec::new(), has_bangla: false }
    }

    /// Adds a text; its windows are found once the whole is [sealed](Protected::seal).
    pub(super) fn add(&mut self, text: &str) {
        self.has_bangla |= text.chars().any(is_bangla);
        self.hashes.extend(windows(&words(text), self.window));
    }

    /// Puts the windows in order.
    pub(super) fn seal(&mut self) {
        self.hashes.par_sort_unstable();
        self.hashes.dedup();
    }

    /// Whether it is worth looking for a window in `text`: one in another script needs a stretch without Bangla that
    /// is long enough for its words. Finding words is slow, and most Bangla pages have no such stretch.
    pub fn may_be_in(&self, text: &str) -> bool {
        let needed = 2 * self.window - 1;
        !self.hashes.is_empty() && (self.has_bangla || text.split(is_bangla).any(|part| part.len() >= needed))
    }

    /// The first window `text` shares with the protected texts, as words.
    pub fn find(&self, text: &str) -> Option<String> {
        let words = words(text);
        let at = windows(&words, self.window).into_iter().position(|hash| self.hashes.binary_search(&hash).is_ok())?;
        Some(words[at..at + self.window].join(" "))
    }

    /// For each document the window it shares with protected text, if any, and the report on them.
    pub fn scan(&self, documents: &[Document]) -> (Vec<bool>, ContaminationReport) {
        let mut report = self.report();
        (self.scan_into(documents, &mut report), report)
    }

    /// The report on no documents.
    pub(super) fn report(&self) -> ContaminationReport {
        let protected_windows = self.hashes.len() as u64;
        ContaminationReport { window: self.window, protected_windows, ..Default::default() }
    }

    /// As [`Protected::scan`], adding to the report on the documents before these.
    pub(super) fn scan_into(&self, documents: &[Document], report: &mut ContaminationReport) -> Vec<bool> {
        let found: Vec<Option<String>> = documents.par_iter().map(|d| self.find(&d.text)).collect();
        for (document, window) in documents.iter().zip(&found) {
            if let Some(window) = window {
                *report.dropped.entry(document.source.clone()).or_default() += 1;
                let example = || Example { document: document.id.clone(), window: window.clone() };
                report.example.get_or_insert_with(example);
            }
        }
        found.into_iter().map(|window| window.is_some()).collect()
    }
}

fn words(text: &str) -> Vec<String> {
    text.unicode_words().map(str::to_lowercase).collect()
}

fn is_bangla(c: char) -> bool {
    ('\u{980}'..='\u{9ff}').contains(&c)
}

/// A 64-bit hash of each window: FNV-1a over its words with a separator.
fn windows(words: &[String], window: usize) -> Vec<u64> {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    let hash = |part: &[String]| {
        part.iter().fold(0xCBF2_9CE4_8422_2325, |hash, word| step(word.bytes().fold(hash, step), 0xFF))
    };
    words.windows(window).map(hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANGLA: &str = "আমার সোনার বাংলা আমি তোমায় ভালোবাসি চিরদিন তোমার আকাশ তোমার বাতাস আমার প্রাণে বাজায় বাঁশি";

    fn document(source: &str, text: &str) -> Document {
        Document {
            id: format!("{source}/{}", text.len()),
            source: source.to_owned(),
            language: "bn".to_owned(),
            domain: "test".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_shared_window_is_found_whatever_stands_around_it() {
        let protected = Protected::new([BANGLA].into_iter(), 13);
        let inside = format!("শুরু। {}, শেষ", BANGLA.replace(' ', "  ").replace("ভালোবাসি", "ভালোবাসি,"));
        assert!(protected.find(&inside).unwrap().starts_with("আমার সোনার বাংলা"));
        let twelve: Vec<&str> = BANGLA.split(' ').take(12).collect();
        assert_eq!(protected.find(&twelve.join(" ")), None);
    }

    #[test]
    fn case_and_punctuation_do_not_hide_it() {
        let protected = Protected::new(["One two THREE four"].into_iter(), 3);
        assert_eq!(protected.find("zero, two; three ... Four!").unwrap(), "two three four");
        assert_eq!(protected.find("two threefour"), None);
        assert_eq!(Protected::new(["a b"].into_iter(), 3).find("a b"), None);
    }

    #[test]
    fn the_report_counts_by_source_and_shows_the_first() {
        let protected = Protected::new(["a b c d"].into_iter(), 3);
        let documents =
            [document("x", "nothing"), document("y", "z B c d"), document("x", "a b c"), document("y", "a b c d")];
        let (dropped, report) = protected.scan(&documents);
        assert_eq!(dropped, [false, true, true, true]);
        assert_eq!(report.dropped, BTreeMap::from([("x".to_owned(), 1), ("y".to_owned(), 2)]));
        assert_eq!((report.window, report.protected_windows), (3, 2));
        assert_eq!(report.example.unwrap(), Example { document: "y/7".to_owned(), window: "b c d".to_owned() });
    }
}
