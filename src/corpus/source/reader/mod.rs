//! A reader for each format: from the bytes of a file to texts, or to parallel sentences.

mod gutenberg;
pub mod html;
mod law;
mod lines;
mod literature;
mod markup;
mod mdx;
mod paragraphs;
mod parallel;
mod table;
mod task;
mod zip;

use super::{File, Role};
use serde::{Deserialize, Serialize};

pub use lines::{Piece, pieces};
pub use parallel::Pairs;

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
    /// Two files, of language `bn` and `en`, with translations on lines of the same number.
    ParallelLines,
    /// A zip archive with one translation memory.
    TmxZip,
    /// Pages of the Universal Declaration in `bn` and `en`, matched by article.
    Declaration,
    /// Pages of the Universal Declaration in many languages, each of its own script.
    DeclarationScripts,
    /// Apache Parquet with a column `text`, a document a row; streamed.
    ParquetText,
    /// A task that the evaluation reads in its own way.
    Task,
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
        match self {
            Reader::ParallelLines | Reader::TmxZip | Reader::Declaration | Reader::DeclarationScripts => Role::Parallel,
            Reader::Task => Role::Eval,
            _ => Role::Train,
        }
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
            Reader::ParquetText => Err("Parquet is streamed, not read as a whole".to_owned()),
            _ => Err(format!("reader `{}` does not read training text", self.name())),
        }
    }

    /// Reads the files of a parallel source.
    ///
    /// # Errors
    /// A message saying what is wrong with the files.
    pub fn pairs(self, files: &[(&File, Vec<u8>)]) -> Result<Pairs, String> {
        let of = |language: &str| {
            let file = files.iter().find(|(file, _)| file.language.as_deref() == Some(language));
            file.map(|(_, bytes)| bytes.as_slice()).ok_or(format!("no file has `language = \"{language}\"`"))
        };
        match self {
            Reader::ParallelLines => parallel::lines(of("bn")?, of("en")?),
            Reader::Declaration => parallel::declaration(of("bn")?, of("en")?),
            Reader::TmxZip => match files {
                [(_, bytes)] => parallel::tmx_zip(bytes),
                _ => Err(format!("{} files, expected one archive", files.len())),
            },
            _ => Err(format!("reader `{}` does not read sentence pairs", self.name())),
        }
    }

    /// A task's file as text, unpacked where its name ends in `.bz2`, and its name without that.
    ///
    /// # Errors
    /// A message for a file that cannot be unpacked or is not UTF-8.
    pub fn task_text(path: &str, bytes: &[u8]) -> Result<(String, String), String> {
        task::text(path, bytes)
    }

    /// Every string of a task's file, for keeping it out of training.
    ///
    /// # Errors
    /// A message for a file that is not what its name says.
    pub fn task_texts(path: &str, bytes: &[u8]) -> Result<Vec<String>, String> {
        task::texts(path, bytes)
    }

    /// Reads a page of the Universal Declaration as running text, a paragraph on each line.
    ///
    /// # Errors
    /// A message when the page is another one.
    pub fn declaration(bytes: &[u8]) -> Result<String, String> {
        Ok(parallel::declaration_parts(bytes)?.concat().join("\n"))
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
