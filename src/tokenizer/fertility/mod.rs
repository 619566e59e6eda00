//! Fertility: how many tokens a text costs, per word, character, byte and parallel sentence, and what
//! the tokens do to the letters a reader sees.

mod count;
mod lines;
mod meter;
mod renyi;
mod report;

pub use lines::{Part, for_each_batch};
pub(super) use meter::spelling;
pub use meter::{Meter, Splitter};
pub use renyi::{ALPHA, efficiency};
pub use report::{FileReport, advice, measure_file};

use super::{Encoder, TokenizerError};
use crate::statistics::Interval;
use serde::{Deserialize, Serialize};

/// What a tokenizer does to a set of texts, with 95 % bootstrap intervals over the texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fertility {
    /// Texts measured: sentences, lines or documents.
    pub texts: usize,
    /// Unicode characters (code points) in NFC.
    pub characters: u64,
    /// UTF-8 bytes in NFC.
    pub bytes: u64,
    /// Words, cut at white space.
    pub words: u64,
    /// Tokens.
    pub tokens: u64,
    /// Characters per token.
    pub characters_per_token: Interval,
    /// Bytes per token.
    pub bytes_per_token: Interval,
    /// Tokens per word.
    pub tokens_per_word: Interval,
    /// Tokens per text: the fair comparison between languages on parallel sentences.
    pub tokens_per_text: Interval,
    /// Share of the tokens that end inside a grapheme cluster, a character as a reader sees it.
    pub ends_inside_cluster: Interval,
    /// Share of the tokens that end inside a code point.
    pub ends_inside_character: Interval,
    /// Share of the tokens that are a lone byte of a longer code point (byte fallback).
    pub byte_fallback: Interval,
    /// Share of the words kept whole: of the maximal runs of letters with their marks and joiners,
    /// those that exactly one token covers, alone or with the space before it. `None` without words.
    pub whole_words: Option<Interval>,
    /// Rényi efficiency of the token distribution, see [`efficiency`].
    pub renyi_efficiency: Interval,
    /// Texts that did not come back as they were, compared in NFC.
    pub round_trip_failures: usize,
    /// Their share of the texts.
    pub round_trip_failure_share: Interval,
}

/// Measures `encoder` on `texts`; each is brought to NFC first.
///
/// # Errors
/// [`TokenizerError::Empty`] without any token to count, [`TokenizerError::Use`] when encoding fails.
pub fn measure(encoder: &dyn Encoder, texts: &[&str]) -> Result<Fertility, TokenizerError> {
    let mut meter = Meter::new(encoder);
    meter.add(texts)?;
    meter.fertility()
}

/// Measures `encoder` on `texts` as they are written: what a tokenizer that does not compose text makes
/// of mixed spellings.
///
/// # Errors
/// As [`measure`].
pub fn measure_as_written(encoder: &dyn Encoder, texts: &[&str]) -> Result<Fertility, TokenizerError> {
    let mut meter = Meter::as_written(encoder);
    meter.add(texts)?;
    meter.fertility()
}
