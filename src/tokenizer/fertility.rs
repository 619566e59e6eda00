//! Fertility: how many tokens a text costs, per word, character, byte and parallel sentence.

use super::{Tokenizer, TokenizerError};
use crate::statistics::{Interval, ratio_interval};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation;

/// What a tokenizer does to a set of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fertility {
    /// Texts measured.
    pub texts: usize,
    /// Unicode characters (code points).
    pub characters: u64,
    /// UTF-8 bytes.
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
    pub ends_inside_cluster: f64,
    /// Share of the tokens that end inside a code point.
    pub ends_inside_character: f64,
    /// Share of the words that are one token.
    pub whole_words: f64,
    /// Texts that did not come back as they were (after NFC).
    pub round_trip_failures: usize,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    characters: u64,
    bytes: u64,
    words: u64,
    tokens: u64,
    inside_cluster: u64,
    inside_character: u64,
    whole_words: u64,
    failed: bool,
}

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;

/// Measures `tokenizer` on `texts`, which should be NFC.
///
/// # Errors
/// [`TokenizerError::Empty`] without any token to count, [`TokenizerError::Use`] when encoding fails.
pub fn measure(tokenizer: &Tokenizer, texts: &[&str]) -> Result<Fertility, TokenizerError> {
    let counts = texts.par_iter().map(|text| count(tokenizer, text)).collect::<Result<Vec<_>, _>>()?;
    let sum = |f: fn(&Counts) -> u64| counts.iter().map(f).sum::<u64>();
    let (tokens, words) = (sum(|c| c.tokens), sum(|c| c.words));
    if tokens == 0 || words == 0 {
        return Err(TokenizerError::Empty);
    }
    let share = |part: u64, whole: u64| part as f64 / whole as f64;
    Ok(Fertility {
        texts: texts.len(),
        characters: sum(|c| c.characters),
        bytes: sum(|c| c.bytes),
        words,
        tokens,
        characters_per_token: ratio(&counts, |c| c.characters, |c| c.tokens),
        bytes_per_token: ratio(&counts, |c| c.bytes, |c| c.tokens),
        tokens_per_word: ratio(&counts, |c| c.tokens, |c| c.words),
        tokens_per_text: ratio(&counts, |c| c.tokens, |_| 1),
        ends_inside_cluster: share(sum(|c| c.inside_cluster), tokens),
        ends_inside_character: share(sum(|c| c.inside_character), tokens),
        whole_words: share(sum(|c| c.whole_words), words),
        round_trip_failures: counts.iter().filter(|c| c.failed).count(),
    })
}

fn count(tokenizer: &Tokenizer, text: &str) -> Result<Counts, TokenizerError> {
    let ids = tokenizer.encode(text)?;
    let mut counts = Counts {
        characters: text.chars().count() as u64,
        bytes: text.len() as u64,
        words: text.split_whitespace().count() as u64,
        tokens: ids.len() as u64,
        ..Counts::default()
    };
    let decoded = tokenizer.decode(&ids)?;
    counts.failed = decoded != text;
    let mut clusters: Vec<usize> = decoded.grapheme_indices(true).map(|(at, _)| at).collect();
    clusters.push(decoded.len());
    let mut end = 0;
    let mut ends = Vec::with_capacity(ids.len());
    for id in &ids {
        end += tokenizer.token_bytes(*id).map_or(0, |bytes| bytes.len());
        counts.inside_character += u64::from(!decoded.is_char_boundary(end));
        counts.inside_cluster += u64::from(clusters.binary_search(&end).is_err());
        ends.push(end);
    }
    counts.whole_words = whole_words(&decoded, &ends);
    Ok(counts)
}

/// Words of `text` that no token boundary cuts, and that share no token with another word.
fn whole_words(text: &str, ends: &[usize]) -> u64 {
    let base = text.as_ptr() as usize;
    let intact = |word: &&str| {
        let start = word.as_ptr() as usize - base;
        let first = ends.partition_point(|end| *end <= start);
        let last = ends.partition_point(|end| *end < start + word.len());
        first == last
    };
    text.split_whitespace().filter(intact).count() as u64
}

fn ratio(counts: &[Counts], over: fn(&Counts) -> u64, under: fn(&Counts) -> u64) -> Interval {
    let column = |f: fn(&Counts) -> u64| counts.iter().map(|c| f(c) as f64).collect::<Vec<f64>>();
    ratio_interval(&column(over), &column(under), RESAMPLES, 0)
}
