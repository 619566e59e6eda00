//! Why a tokenizer was refused.

use crate::error::FileError;
use std::path::PathBuf;

/// Why a tokenizer could not be trained, loaded or used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is no tokenizer of the kind this program trains and reads.
    #[error("{}: not a usable tokenizer.json: {message}; train it again or give another file", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A user's own tokenizer cannot be used.
    #[error("{}: cannot use it as {kind}: {message}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        kind: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// A text file is not UTF-8.
    #[error("{}: line {line}, byte {byte} is not UTF-8 text; convert the file first", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The byte in the line, from 1.
        byte: usize,
    },
    /// A text file has no words.
    #[error("{}: there are no words in it to measure", _0.display())]
    NoText(PathBuf),
    /// No pre-tokenizer of that name.
    #[error(
        "there is no pre-tokenizer called `{0}`: use `gpt2`, `cl100k`, `o200k`, `marks`, `marks-stop` or `grapheme`"
    )]
    PreTokenizer(String),
    /// There is no text to train on.
    #[error("there is no text to train a tokenizer on; check the manifest and the corpus report")]
    Empty,
    /// The trained vocabulary lacks something it must have.
    #[error("training a tokenizer failed: {0}")]
    Train(String),
    /// Encoding or decoding failed.
    #[error("cannot {action} with this tokenizer: {message}")]
    Use {
        /// `encode` or `decode`.
        action: &'static str,
        /// The library's words.
        message: String,
    },
}
