//! Users' own tokenizers: `tokenizer.json` of any kind, SentencePiece models, tiktoken rank files.

mod any;
mod hugging_face;
mod merges;
mod protobuf;
mod sentencepiece;
mod tiktoken;

pub use any::AnyTokenizer;
pub(super) use merges::check as check_merges;

use super::{PreTokenizer, Tokenizer, TokenizerError};
use crate::error::FileError;
use std::path::Path;

/// The kinds of file that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A `tokenizer.json`.
    TokenizerJson,
    /// A SentencePiece `.model`.
    SentencePiece,
    /// A tiktoken rank file: a token in base64 and its rank a line.
    Tiktoken,
}

impl Kind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::TokenizerJson => "a tokenizer.json",
            Kind::SentencePiece => "a SentencePiece model",
            Kind::Tiktoken => "a tiktoken rank file",
        }
    }

    /// The kind a file seems to be of, from its first bytes.
    fn of(bytes: &[u8]) -> Kind {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match first {
            None | Some(b'{' | b'[' | b'"') => Kind::TokenizerJson,
            // Field 1 of a protocol buffer is how a SentencePiece model begins: that byte is a line feed.
            _ if bytes.first() == Some(&0x0A) => Kind::SentencePiece,
            _ => Kind::Tiktoken,
        }
    }
}

/// Opens a tokenizer file of any kind; `pattern` cuts the text for a tiktoken rank file, which does not
/// hold one. When it is `None` the file's name decides (`cl100k_base.tiktoken`).
///
/// # Errors
/// [`TokenizerError::File`] when it cannot be read, [`TokenizerError::Foreign`] when it is broken, of
/// another kind, or needs a pattern.
pub fn open(path: &Path, pattern: Option<PreTokenizer>) -> Result<AnyTokenizer, TokenizerError> {
    let bytes = std::fs::read(path).map_err(FileError::at("read", path))?;
    parse(&bytes, path, pattern)
}

/// As [`open`], for the bytes of a file; `path` is its name.
pub(super) fn parse(bytes: &[u8], path: &Path, pattern: Option<PreTokenizer>) -> Result<AnyTokenizer, TokenizerError> {
    let kind = Kind::of(bytes);
    let refuse = |message: String| TokenizerError::Foreign { path: path.to_path_buf(), kind: kind.name(), message };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(refuse("the file is empty".to_owned()));
    }
    let stem = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let inner = match kind {
        Kind::TokenizerJson => hugging_face::read(bytes),
        Kind::SentencePiece => sentencepiece::read(bytes),
        Kind::Tiktoken => tiktoken::read(bytes, pattern.or_else(|| tiktoken::pattern_of(&stem))),
    };
    let any = inner.and_then(|inner| AnyTokenizer::new(inner, kind)).map_err(refuse)?;
    // What is not in the layout that is trained here stays with the library.
    let own = if kind == Kind::TokenizerJson { Tokenizer::parse(bytes, path).ok() } else { None };
    Ok(match own.filter(Tokenizer::is_fast) {
        Some(own) => any.with_own(own),
        None => any,
    })
}
