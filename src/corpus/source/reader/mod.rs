//! A reader for each format: from the bytes of a file to texts, or to parallel sentences.

mod lines;

use super::Role;
use serde::{Deserialize, Serialize};

/// How the files of a source become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// One unrelated sentence on each line; each is a document.
    Lines,
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
            Reader::Lines => Role::Train,
        }
    }

    /// Its name in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Reader::Lines => "lines",
        }
    }

    /// Reads one file of a training source.
    ///
    /// # Errors
    /// A message saying what is wrong with the format of the file.
    pub fn texts(self, bytes: &[u8]) -> Result<Texts, String> {
        match self {
            Reader::Lines => Ok(lines::sentences(bytes)),
        }
    }
}

/// The place of the first byte that is not UTF-8, in words.
fn invalid_utf8(error: std::str::Utf8Error) -> String {
    format!("not UTF-8 at byte {}", error.valid_up_to())
}
