//! What can be wrong with text and what is made of it.

use crate::artifact::Hash;
use crate::error::FileError;
use std::path::PathBuf;

/// Why a corpus, a document file, a token shard or a loader was refused.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A manifest or one of its sources is not usable.
    #[error(transparent)]
    Source(#[from] super::source::SourceError),
    /// A line of a document file is no document.
    #[error("{}, line {line}: {message}; make the file again with `shikha corpus`", path.display())]
    Line {
        /// The document file.
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Nothing to train on.
    #[error("the corpus is empty: {read} documents were read, {kept} are left for training; {advice}")]
    Empty {
        /// Documents read.
        read: u64,
        /// Documents left.
        kept: u64,
        /// What to do.
        advice: &'static str,
    },
    /// The mix names a language the corpus lacks.
    #[error(
        "the mix asks for language `{language}`, but the corpus has no {part} document in it (it has: {present}); \
         add a source to the manifest or take the language out of `[mix]`"
    )]
    MissingLanguage {
        /// The language asked for.
        language: String,
        /// `training` or `held-out`.
        part: &'static str,
        /// The languages there are.
        present: String,
    },
    /// The file is something else.
    #[error("{} is not a token shard (its first bytes are not `SHIKHATK`); give the file `shikha tokenizer` made", path.display())]
    NotAShard {
        /// The file.
        path: PathBuf,
    },
    /// The file is a shard that cannot be trusted.
    #[error("token shard {} is damaged or unusable: {message}; delete it and run again", path.display())]
    Shard {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        message: String,
    },
    /// The shard was made with another tokenizer.
    #[error(
        "token shard {} was made with tokenizer {}, not with {}; delete the shard and run again, or use its tokenizer",
        path.display(), found.short(), expected.short()
    )]
    OtherVocabulary {
        /// The file.
        path: PathBuf,
        /// Hash of the tokenizer that made it.
        found: Hash,
        /// Hash of the tokenizer in use.
        expected: Hash,
    },
    /// A token that the vocabulary does not have.
    #[error("token {id} is outside the vocabulary of {vocabulary}: the documents were encoded with another tokenizer")]
    TokenOutOfRange {
        /// The token.
        id: u32,
        /// Tokens in the vocabulary.
        vocabulary: usize,
    },
    /// Too few tokens for a single window.
    #[error(
        "the `{language}` shard has {tokens} tokens, fewer than the {needed} of one window (context + 1); \
         add text in that language or make `model.context` smaller"
    )]
    ShortShard {
        /// Language of the shard.
        language: String,
        /// Tokens it has.
        tokens: u64,
        /// Tokens it needs.
        needed: u64,
    },
    /// A Parquet file that cannot be read.
    #[error("{}: {message}; is it the Parquet file that the manifest means?", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Text could not be encoded while it was streamed.
    #[error("encoding streamed text: {0}")]
    Encode(String),
    /// Streaming stopped before the tokens that were asked for were there.
    #[error("streaming `{language}` stopped: {message}")]
    Stream {
        /// Language of the text.
        language: String,
        /// Why.
        message: String,
    },
    /// Shards and mix that do not fit each other.
    #[error("the loader cannot start: {message}")]
    Loader {
        /// What was found and what was expected.
        message: String,
    },
}
