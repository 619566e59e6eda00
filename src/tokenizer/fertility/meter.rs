//! Measuring text that comes in batches, in bounded memory.

use super::count::{Counts, count};
use super::{Fertility, Part, renyi};
use crate::statistics::{Interval, ratio_interval};
use crate::tokenizer::{Encoder, TokenizerError};
use fancy_regex::Regex;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Resamples of the bootstrap of a ratio.
const RESAMPLES: usize = 1000;

/// At most this many blocks are resampled: beyond it, each two neighbouring blocks become one.
const BLOCKS: usize = 4096;

/// A letter and its mark.
static MARKED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{L}\p{M}").unwrap_or_else(|e| unreachable!("the pattern is constant: {e}")));

/// Collects what a tokenizer does to texts.
pub struct Meter<'a> {
    encoder: &'a dyn Encoder,
    /// For each id whether it is a lone byte of a longer character.
    lone: Vec<bool>,
    /// Texts are brought to NFC.
    compose: bool,
    blocks: Vec<Counts>,
    /// Texts of a full block.
    block: u64,
    /// The parts so far of a text whose last part has not come.
    begun: Counts,
}

/// A token that ends inside a grapheme cluster.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Splitter {
    /// Its id.
    pub id: u32,
    /// Its text; bytes that are no character are written `<0x..>`.
    pub token: String,
    /// How often it ended inside a cluster.
    pub count: u64,
}

impl<'a> Meter<'a> {
    /// An empty meter.
    pub fn new(encoder: &'a dyn Encoder) -> Self {
        let lone_byte = |id| matches!(encoder.bytes_of(id).as_deref(), Some([byte]) if *byte >= 0x80);
        let lone = (0..encoder.vocabulary_size() as u32).map(lone_byte).collect();
        Meter { encoder, lone, compose: true, blocks: Vec::new(), block: 1, begun: Counts::default() }
    }

    /// An empty meter that takes texts as they are written.
    pub fn as_written(encoder: &'a dyn Encoder) -> Self {
        Meter { compose: false, ..Meter::new(encoder) }
    }

    /// Adds texts; those without any word are passed over.
    ///
    /// # Errors
    /// [`TokenizerError::Use`] when encoding fails.
    pub fn add(&mut self, texts: &[&str]) -> Result<(), TokenizerError> {
        let one = |text: &&str| count(self.encoder, &self.lone, text, true, self.compose);
        let counts = texts.par_iter().map(one).collect::<Result<Vec<_>, _>>()?;
        counts.into_iter().for_each(|counts| self.push(counts, true));
        Ok(())
    }

    /// Adds texts that may come in several parts, in their order.
    ///
    /// # Errors
    /// [`TokenizerError::Use`] when encoding fails.
    pub fn add_parts(&mut self, parts: &[Part]) -> Result<(), TokenizerError> {
        let one = |part: &Part| count(self.encoder, &self.lone, &part.text, part.first, self.compose);
        let counts = parts.par_iter().map(one).collect::<Result<Vec<_>, _>>()?;
        counts.into_iter().zip(parts).for_each(|(counts, part)| self.push(counts, part.last));
        Ok(())
    }

    fn push(&mut self, counts: Counts, last: bool) {
        self.begun += counts;
        if !last {
            return;
        }
        let mut text = std::mem::take(&mut self.begun);
        if text.words == 0 {
            return;
        }
        text.texts = 1;
        text.failures = text.failures.min(1);
        match self.blocks.last_mut().filter(|last| last.texts < self.block) {
            Some(last) => *last += text,
            None => self.blocks.push(text),
        }
        if self.blocks.len() > BLOCKS {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.block *= 2;
        let mut merged: Vec<Counts> = Vec::with_capacity(BLOCKS);
        for counts in self.blocks.drain(..) {
            match merged.last_mut().filter(|last| last.texts < self.block) {
                Some(last) => *last += counts,
                None => merged.push(counts),
            }
        }
        self.blocks = merged;
    }

    fn sum(&self, of: fn(&Counts) -> u64) -> u64 {
        self.blocks.iter().map(of).sum()
    }

    fn ratio(&self, over: fn(&Counts) -> u64, under: fn(&Counts) -> u64) -> Interval {
        // Blocks without what is divided by say nothing, and a resample of them alone would be 0/0.
        let pairs = self.blocks.iter().map(|c| (over(c) as f64, under(c) as f64)).filter(|(_, under)| *under > 0.0);
        let (over, under): (Vec<f64>, Vec<f64>) = pairs.unzip();
        ratio_interval(&over, &under, RESAMPLES, 0)
    }

    /// What was measured so far.
    ///
    /// # Errors
    /// [`TokenizerError::Empty`] when no text held a word and a token.
    pub fn fertility(&self) -> Result<Fertility, TokenizerError> {
        let (tokens, words) = (self.sum(|c| c.tokens), self.sum(|c| c.words));
        if tokens == 0 || words == 0 {
            return Err(TokenizerError::Empty);
        }
        let whole = |_| self.ratio(|c| c.whole_words, |c| c.letter_words);
        Ok(Fertility {
            texts: self.sum(|c| c.texts) as usize,
            characters: self.sum(|c| c.characters),
            bytes: self.sum(|c| c.bytes),
            words,
            tokens,
            characters_per_token: self.ratio(|c| c.characters, |c| c.tokens),
            bytes_per_token: self.ratio(|c| c.bytes, |c| c.tokens),
            tokens_per_word: self.ratio(|c| c.tokens, |c| c.words),
            tokens_per_text: self.ratio(|c| c.tokens, |c| c.texts),
            ends_inside_cluster: self.ratio(|c| c.inside_cluster, |c| c.tokens),
            ends_inside_character: self.ratio(|c| c.inside_character, |c| c.tokens),
            byte_fallback: self.ratio(|c| c.lone_bytes, |c| c.tokens),
            whole_words: Some(self.sum(|c| c.letter_words)).filter(|words| *words > 0).map(whole),
            renyi_efficiency: renyi::interval(&self.blocks, self.encoder.vocabulary_size()),
            round_trip_failures: self.sum(|c| c.failures) as usize,
            round_trip_failure_share: self.ratio(|c| c.failures, |c| c.texts),
        })
    }

    /// The `n` tokens that most often end inside a grapheme cluster, the most frequent first.
    pub fn splitters(&self, n: usize) -> Vec<Splitter> {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for (id, count) in self.blocks.iter().flat_map(|block| &block.splitting) {
            *counts.entry(*id).or_default() += count;
        }
        let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(id, count)| (std::cmp::Reverse(*count), *id));
        let splitter = |(id, count)| Splitter { id, token: self.spelling(id), count };
        counts.into_iter().take(n).map(splitter).collect()
    }

    /// Whether any token that was used holds a letter with a combining mark after it: none does when the
    /// pre-tokenizer cuts at marks.
    pub fn keeps_marks(&self) -> bool {
        let ids: BTreeSet<u32> = self.blocks.iter().flat_map(|block| block.of_token.keys().copied()).collect();
        let mut texts = ids.into_iter().filter_map(|id| String::from_utf8(self.encoder.bytes_of(id)?).ok());
        texts.any(|text| MARKED.is_match(&text).unwrap_or(false))
    }

    fn spelling(&self, id: u32) -> String {
        spelling(&self.encoder.bytes_of(id).unwrap_or_default())
    }
}

/// The text of a token's bytes; those that are no character are written `<0x..>`.
pub(in crate::tokenizer) fn spelling(bytes: &[u8]) -> String {
    let chunk = |chunk: std::str::Utf8Chunk| {
        let invalid: String = chunk.invalid().iter().map(|byte| format!("<0x{byte:02X}>")).collect();
        format!("{}{invalid}", chunk.valid())
    };
    bytes.utf8_chunks().map(chunk).collect()
}
