//! The fertility study: the same text, each pre-tokenizer at each vocabulary, measured on the same sets.

use super::fertility::{self, Fertility};
use super::{PreTokenizer, Tokenizer, TokenizerError};
use crate::artifact::Hash;
use crate::recipe::TokenizerRecipe;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Which tokenizers to train.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where merges may never cross.
    pub pre_tokenizers: Vec<PreTokenizer>,
    /// Tokens in the vocabulary, at most.
    pub vocabularies: Vec<usize>,
}

impl Default for Settings {
    /// All pre-tokenizers at 8,192 and 32,768 tokens.
    fn default() -> Self {
        Settings { pre_tokenizers: PreTokenizer::ALL.to_vec(), vocabularies: vec![8192, 32_768] }
    }
}

/// One side of a parallel set, or other text to measure on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSet<'a> {
    /// Its name: sets of one name are translations of each other, sentence by sentence.
    pub name: String,
    /// Its language: `bn`, `en` …
    pub language: String,
    /// The sentences.
    pub texts: Vec<&'a str>,
}

/// A tokenizer that the study trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trained {
    /// Name of the pre-tokenizer.
    pub pre_tokenizer: String,
    /// Tokens asked for.
    pub asked: usize,
    /// Tokens in the vocabulary: fewer when the text has no more pairs to merge.
    pub vocabulary: usize,
    /// Hash of the `tokenizer.json`.
    pub hash: Hash,
    /// What was measured, in the order of the sets.
    pub measured: Vec<Measured>,
    /// What depends on the machine.
    pub machine: Machine,
}

/// A tokenizer on one set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Name of the set.
    pub texts: String,
    /// Language of the set.
    pub language: String,
    /// What was measured.
    pub fertility: Fertility,
    /// Tokens per sentence over those of the first set of the same name: the price of a language on
    /// parallel text. 1 for the first set itself.
    pub premium: f64,
}

/// What another machine would measure otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Seconds of training.
    pub train_seconds: f64,
    /// Bytes of text encoded a second, measuring included, over all sets.
    pub bytes_per_second: f64,
}

/// Trains a tokenizer of every kind on `documents` and measures each on all `sets`. All but
/// [`Trained::machine`] depends on the arguments alone. `each` is told of every tokenizer when it is
/// done, and may keep it.
///
/// # Errors
/// [`TokenizerError`] when there is no text to train or measure on, or what `each` gives.
pub fn run(
    documents: &[&str],
    sets: &[TextSet],
    settings: &Settings,
    each: &mut dyn FnMut(&Trained, &Tokenizer) -> Result<(), TokenizerError>,
) -> Result<Vec<Trained>, TokenizerError> {
    let mut study = Vec::new();
    for pre_tokenizer in &settings.pre_tokenizers {
        for vocabulary in &settings.vocabularies {
            let recipe = TokenizerRecipe { pre_tokenizer: pre_tokenizer.name().to_owned(), vocabulary: *vocabulary };
            let start = Instant::now();
            let tokenizer = Tokenizer::train(documents, &recipe)?;
            let train_seconds = start.elapsed().as_secs_f64();
            let trained = measure(&tokenizer, recipe, sets, train_seconds)?;
            each(&trained, &tokenizer)?;
            study.push(trained);
        }
    }
    Ok(study)
}

fn measure(
    tokenizer: &Tokenizer,
    recipe: TokenizerRecipe,
    sets: &[TextSet],
    train_seconds: f64,
) -> Result<Trained, TokenizerError> {
    let start = Instant::now();
    let mut measured: Vec<Measured> = Vec::new();
    for set in sets {
        let fertility = fertility::measure(tokenizer, &set.texts)?;
        let first = measured.iter().find(|other| other.texts == set.name).map(|other| &other.fertility);
        let base = first.unwrap_or(&fertility).tokens_per_text.value;
        let premium = fertility.tokens_per_text.value / base;
        measured.push(Measured { texts: set.name.clone(), language: set.language.clone(), fertility, premium });
    }
    let bytes: u64 = measured.iter().map(|m| m.fertility.bytes).sum();
    let machine = Machine { train_seconds, bytes_per_second: bytes as f64 / start.elapsed().as_secs_f64() };
    Ok(Trained {
        pre_tokenizer: recipe.pre_tokenizer,
        asked: recipe.vocabulary,
        vocabulary: tokenizer.vocabulary_size(),
        hash: tokenizer.hash()?,
        measured,
        machine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_trained_and_measured_and_the_first_set_is_the_base() {
        let bangla = "আমি বাংলায় গান গাই।\nআমি বাংলার গান গাই।\n".repeat(4);
        let english = "I sing in Bangla. I sing the songs of Bangla. ".repeat(4);
        let sets = ["en", "bn"].map(|language| TextSet {
            name: "song".to_owned(),
            language: language.to_owned(),
            texts: vec![if language == "en" {
                "I sing in Bangla."
            } else {
                "আমি বাংলায় গান গাই।"
            }],
        });
        let settings = Settings { vocabularies: vec![280, 400], ..Settings::default() };
        let mut kept = Vec::new();
        let study = run(&[&bangla, &english], &sets, &settings, &mut |trained, tokenizer| {
            kept.push((trained.hash, tokenizer.hash()?));
            Ok(())
        })
        .unwrap();
        assert_eq!((study.len(), kept.len()), (10, 10));
        assert!(kept.iter().all(|(told, own)| told == own));
        assert!(study.iter().all(|row| row.asked == 400 || row.vocabulary == 280));
        let tokens = |name: &str, asked: usize| {
            let row = study.iter().find(|row| row.pre_tokenizer == name && row.asked == asked).unwrap();
            assert_eq!(row.measured[0].premium, 1.0);
            let [english, bangla] = [0, 1].map(|i| row.measured[i].fertility.tokens);
            assert_eq!(row.measured[1].premium, bangla as f64 / english as f64);
            bangla
        };
        assert_eq!(tokens("marks", 400), 5, "four words and a full stop");
        assert_eq!(tokens("grapheme", 400), 5);
        assert_eq!(tokens("gpt2", 400), 15, "each run of letters and each sign");
        assert!(tokens("marks", 280) > tokens("marks", 400));
        let again = run(&[&bangla, &english], &sets, &settings, &mut |_, _| Ok(())).unwrap();
        let hashes = |study: &[Trained]| study.iter().map(|row| row.hash).collect::<Vec<_>>();
        assert_eq!(hashes(&again), hashes(&study));
    }

    #[test]
    fn no_text_is_an_error() {
        let settings = Settings { pre_tokenizers: vec![PreTokenizer::Marks], vocabularies: vec![300] };
        let run = |documents: &[&str], sets: &[TextSet]| run(documents, sets, &settings, &mut |_, _| Ok(()));
        assert!(matches!(run(&[], &[]), Err(TokenizerError::Empty)));
        let empty = TextSet { name: "a".to_owned(), language: "bn".to_owned(), texts: vec![""] };
        assert!(matches!(run(&["ab"], &[empty]), Err(TokenizerError::Empty)));
    }
}
