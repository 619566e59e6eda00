//! What the readers give and everything after them works on.

use serde::{Deserialize, Serialize};

/// One piece of text with where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Unique name: source, file and position in it.
    pub id: String,
    /// Id of the manifest source.
    pub source: String,
    /// Language code: `bn` or `en`.
    pub language: String,
    /// Kind of text: `literature`, `news`, `encyclopedia` …
    pub domain: String,
    /// The text, UTF-8.
    pub text: String,
}

/// The same sentence in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParallelPair {
    /// Bangla.
    pub bn: String,
    /// English.
    pub en: String,
}

/// A set of parallel sentences: the fair ground for comparing tokenizers across languages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParallelSet {
    /// Id of the manifest source.
    pub id: String,
    /// The pairs, in the order of the source.
    pub pairs: Vec<ParallelPair>,
}
