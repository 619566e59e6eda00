//! A reader for each format: from the bytes of a file to texts, or to parallel sentences.

mod gutenberg;
mod html;
mod law;
mod lines;
mod literature;
mod markup;
mod mdx;
mod paragraphs;
mod table;
mod zip;

use super::Role;
use serde::{Deserialize, Serialize};

/// How the files of a source become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// One unrelated sentence on each line; each is a document.
    Lines,
    /// Markdown with prose that is hard-wrapped and verse in fences.
    Literature,
    /// MDX documentation; the paragraphs with more Bangla than Latin letters.
    MdxBangla,
    /// Tab-separated utterance id and sentence.
    Prompts,
    /// CSV with a column `context`.
    ContextCsv,
    /// A word and the name of the mark after it on each line.
    LabelledWords,
    /// A page of the laws of Bangladesh.
    LawHtml,
    /// Project Gutenberg plain text in UTF-8.
    Gutenberg,
    /// Project Gutenberg plain text in ISO-8859-1.
    GutenbergLatin1,
}

/// What a reader made of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// The texts, in the order of the file.
    pub texts: Vec<String>,
    /// What could not be used: where in the file (empty for all of it), why, and its size in bytes.
    pub skipped: Vec<(String, String, u64)>,
}

impl Reader {
    /// The role of the sources it can be used for.
    pub fn role(self) -> Role {
        Role::Train
    }

    /// Its name in a manifest.
    pub fn name(self) -> String {
        // An enum of plain names serialises to a string.
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Reads one file of a training source.
    ///
    /// # Errors
    /// A message saying what is wrong with the format of the file.
    pub fn texts(self, bytes: &[u8]) -> Result<Texts, String> {
        match self {
            Reader::Lines => Ok(lines::sentences(bytes)),
            Reader::Literature => Ok(whole(bytes, literature::documents)),
            Reader::MdxBangla => Ok(whole(bytes, mdx::documents)),
            Reader::Prompts => Ok(table::prompts(bytes)),
            Reader::ContextCsv => table::contexts(bytes),
            Reader::LabelledWords => table::labelled_words(bytes),
            Reader::LawHtml => try_whole(bytes, law::documents),
            Reader::Gutenberg => try_whole(bytes, gutenberg::documents),
            Reader::GutenbergLatin1 => Ok(Texts::from(gutenberg::documents(&gutenberg::latin1(bytes))?)),
        }
    }
}

impl From<Vec<String>> for Texts {
    fn from(texts: Vec<String>) -> Self {
        Texts { texts, skipped: Vec::new() }
    }
}

/// Documents of a file that is one text; it is skipped when a byte of it is not UTF-8.
fn try_whole(bytes: &[u8], documents: impl Fn(&str) -> Result<Vec<String>, String>) -> Result<Texts, String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => documents(text).map(Texts::from),
        Err(e) => Ok(Texts { texts: Vec::new(), skipped: vec![(String::new(), invalid_utf8(e), bytes.len() as u64)] }),
    }
}

/// As [`try_whole`], for formats in which nothing can be wrong.
fn whole(bytes: &[u8], documents: impl Fn(&str) -> Vec<String>) -> Texts {
    try_whole(bytes, |text| Ok(documents(text))).unwrap_or_default()
}

/// The place of the first byte that is not UTF-8, in words.
fn invalid_utf8(error: std::str::Utf8Error) -> String {
    format!("not UTF-8 at byte {}", error.valid_up_to())
}
