//! The tokenizer that is released: what it must reach, the mixes that were tried, and what its pattern costs.

use super::{Measured, Usage};
use crate::artifact::Hash;
use crate::tokenizer::{Encoder, PreTokenizer};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Tokens in its vocabulary.
pub const VOCABULARY: usize = 65_536;

/// Its pattern.
pub const PATTERN: PreTokenizer = PreTokenizer::MarksStop;

/// Shares of Bangla in the training characters that are tried with its pattern.
pub const SHARES: [f64; 5] = [0.50, 0.54, 0.56, 0.58, 0.62];

/// The share that the patterns beside it are trained with.
pub const SIDE_SHARE: f64 = 0.56;

/// The set that decides.
pub const SET: &str = "par-ntrex";

/// Tokens per Bangla word on [`SET`], at most.
pub const TOKENS_PER_WORD: f64 = 1.46;

/// Characters per English token on [`SET`], at least.
pub const CHARACTERS_PER_TOKEN: f64 = 4.2;

/// A tokenizer that was trained to choose from, or to compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Name of the pre-tokenizer.
    pub pre_tokenizer: String,
    /// Share of Bangla in the characters it was trained on.
    pub share: f64,
    /// Bangla characters it was trained on.
    pub bangla: u64,
    /// English characters it was trained on.
    pub english: u64,
    /// Tokens in the vocabulary: fewer than asked for when the text has no more pairs to merge.
    pub vocabulary: usize,
    /// What its pattern costs.
    pub doubles: Doubles,
    /// What was measured, in the order of the sets.
    pub measured: Vec<Measured>,
}

impl Candidate {
    /// How far it is inside the nearer of the two targets, as a share of it; below 0 where one is missed, `None`
    /// where it was not measured.
    pub fn margin(&self) -> Option<f64> {
        let found = |language: &str| self.measured.iter().find(|m| m.texts == SET && m.language == language);
        let (bangla, english) = (found("bn")?.fertility.tokens_per_word, found("en")?.fertility.characters_per_token);
        Some((1.0 - bangla.value / TOKENS_PER_WORD).min(english.value / CHARACTERS_PER_TOKEN - 1.0))
    }
}

/// Tokens that are another token with an ending: two ids for one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Doubles {
    /// Tokens of the vocabulary.
    pub vocabulary: usize,
    /// Words with a full stop, danda or comma that are tokens without it too.
    pub stops: usize,
    /// Words with an English contraction that are tokens without it too.
    pub contractions: usize,
}

impl Doubles {
    /// Counts them in a vocabulary.
    pub fn of(encoder: &dyn Encoder) -> Self {
        let vocabulary = encoder.vocabulary_size();
        let spelt = (0..vocabulary as u32).filter_map(|id| String::from_utf8(encoder.bytes_of(id)?).ok());
        let tokens: HashSet<String> = spelt.collect();
        let is_double = |token: &str, ends: &[&str]| {
            let mut bare = ends.iter().filter_map(|end| token.strip_suffix(end));
            bare.any(|bare| bare.contains(char::is_alphabetic) && tokens.contains(bare))
        };
        let count = |ends: &[&str]| tokens.iter().filter(|token| is_double(token, ends)).count();
        let endings = ["s", "d", "m", "t", "ll", "ve", "re"].iter().flat_map(|e| ["'", "’"].map(|a| format!("{a}{e}")));
        let endings: Vec<String> = endings.collect();
        let endings: Vec<&str> = endings.iter().map(String::as_str).collect();
        Doubles { vocabulary, stops: count(&["।", ",", "."]), contractions: count(&endings) }
    }

    /// Their share of the vocabulary.
    pub fn share(&self) -> f64 {
        (self.stops + self.contractions) as f64 / self.vocabulary.max(1) as f64
    }
}

/// The released tokenizer: what was tried, what was chosen, and its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Tried: [`PATTERN`] at each of [`SHARES`], then others for comparison.
    pub candidates: Vec<Candidate>,
    /// The one that is released.
    pub chosen: usize,
    /// How it uses its vocabulary on the text it was trained on.
    pub usage: Usage,
    /// Size of `tokenizer.json`.
    pub bytes: u64,
    /// Digest of `tokenizer.json`.
    pub file: Hash,
    /// What shards and checkpoints name it by: the digest of the same content as this program writes it by default.
    pub identity: Hash,
    /// Digest of the manifest of the training text.
    pub manifest: Hash,
}

/// The candidate of [`PATTERN`] that is farthest inside both targets; `None` when none was measured.
pub fn choose(candidates: &[Candidate]) -> Option<usize> {
    let margin = |i: &usize| candidates[*i].margin().unwrap_or(f64::NEG_INFINITY);
    let released = (0..candidates.len()).filter(|i| candidates[*i].pre_tokenizer == PATTERN.name());
    released.filter(|i| margin(i).is_finite()).max_by(|a, b| margin(a).total_cmp(&margin(b)).then(b.cmp(a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::study::{TextSet, measure_set};
    use crate::tokenizer::{Tokenizer, Training};

    #[test]
    fn doubles_are_words_that_are_tokens_without_their_ending_too() {
        let text = "গান গান গান। গান। it it it's it's no, no, a.b a.b".repeat(3);
        let train = |pre_tokenizer| {
            let training = Training { pre_tokenizer, vocabulary: 400, compose: true };
            Doubles::of(&Tokenizer::train_as(&[&text], &training).unwrap())
        };
        let found = train(PreTokenizer::MarksStop);
        // ` গান।`, ` no,`; ` it's`. The first word of the text has no space before it and is doubled by nothing.
        assert_eq!((found.stops, found.contractions), (2, 1), "{found:?}");
        assert!((found.share() - 3.0 / found.vocabulary as f64).abs() < 1e-12);
        assert_eq!(train(PreTokenizer::Marks).stops, 0);
        assert_eq!(Doubles::default().share(), 0.0);
    }

    #[test]
    fn the_candidate_farthest_inside_both_targets_is_chosen() {
        let tokenizer =
            Tokenizer::train_as(&["গান গান a a"], &Training { pre_tokenizer: PATTERN, vocabulary: 300, compose: true })
                .unwrap();
        let sets = [("en", "a"), ("bn", "গান")].map(|(language, text)| TextSet {
            name: SET.to_owned(),
            language: language.to_owned(),
            texts: vec![text],
        });
        let measured = measure_set(&tokenizer, &sets, true).unwrap();
        let candidate = |words: f64, english: f64, pattern: PreTokenizer| {
            let mut measured = measured.clone();
            measured[0].fertility.characters_per_token.value = english;
            measured[1].fertility.tokens_per_word.value = words;
            let (pre_tokenizer, doubles) = (pattern.name().to_owned(), Doubles::default());
            Candidate { pre_tokenizer, share: 0.5, bangla: 1, english: 1, vocabulary: 300, doubles, measured }
        };
        let stop = |words, english| candidate(words, english, PATTERN);
        let mut all = vec![stop(1.47, 4.3), stop(1.45, 4.23), stop(1.44, 4.21)];
        all.push(candidate(1.0, 9.0, PreTokenizer::Marks));
        assert_eq!(choose(&all), Some(1));
        assert!((all[0].margin().unwrap() - (1.0 - 1.47 / 1.46)).abs() < 1e-12);
        all[1].measured.clear();
        assert_eq!((choose(&all), all[1].margin()), (Some(2), None));
        assert_eq!(choose(&all[3..]), None);
    }
}
