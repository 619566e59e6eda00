//! Each pre-tokenizer at each vocabulary, on the same text, measured on the same sets.

use super::Usage;
use crate::artifact::Hash;
use crate::machine::{peak_memory, reset_peak_memory};
use crate::tokenizer::fertility::{self, Fertility};
use crate::tokenizer::{Encoder, PreTokenizer, Tokenizer, TokenizerError, Training};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A text, and which tokenizers to train on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm<'a> {
    /// Name of the text.
    pub text: String,
    /// The text.
    pub documents: Vec<&'a str>,
    /// Where merges may never cross.
    pub pre_tokenizers: Vec<PreTokenizer>,
    /// Tokens in the vocabulary, at most.
    pub vocabularies: Vec<usize>,
    /// Whether text is brought to NFC; if not, the sets are measured as they are written.
    pub compose: bool,
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
    /// `BPE`, `Unigram` or `superword BPE`.
    pub model: String,
    /// Name of the pre-tokenizer.
    pub pre_tokenizer: String,
    /// Name of the text it was trained on.
    pub text: String,
    /// Whether it brings text to NFC.
    pub nfc: bool,
    /// Tokens asked for.
    pub asked: usize,
    /// Tokens in the vocabulary: fewer when the text has no more pairs to merge.
    pub vocabulary: usize,
    /// Hash of the `tokenizer.json`; none where training is not repeatable to the bit.
    pub hash: Option<Hash>,
    /// How it uses its vocabulary on the text it was trained on.
    pub usage: Usage,
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Seconds of training; for a vocabulary that was cut, those of the whole one.
    pub train_seconds: f64,
    /// The largest resident set of the process while training, in bytes; `None` where the system does not tell.
    pub train_memory: Option<u64>,
    /// Bytes of text encoded a second, measuring included, over all sets.
    pub bytes_per_second: f64,
}

/// Trains the tokenizers of `arm` and measures each on all `sets`. A pre-tokenizer is trained once, to
/// its largest vocabulary: the smaller ones are its first merges. All but [`Trained::machine`] depends
/// on the arguments alone. `each` is told of every tokenizer when it is done, and may keep it.
///
/// # Errors
/// [`TokenizerError`] when there is no text to train or measure on, or what `each` gives.
pub fn run(
    arm: &Arm,
    sets: &[TextSet],
    each: &mut dyn FnMut(&Trained, &Tokenizer) -> Result<(), TokenizerError>,
) -> Result<Vec<Trained>, TokenizerError> {
    let mut study = Vec::new();
    let Some(largest) = arm.vocabularies.iter().copied().max() else { return Ok(study) };
    for pre_tokenizer in &arm.pre_tokenizers {
        let training = Training { pre_tokenizer: *pre_tokenizer, vocabulary: largest, compose: arm.compose };
        let (whole, machine) = timed(|| Tokenizer::train_as(&arm.documents, &training))?;
        for vocabulary in &arm.vocabularies {
            let tokenizer = whole.cut(*vocabulary)?;
            let (measured, bytes_per_second) = measure(&tokenizer, sets, arm.compose)?;
            let trained = Trained {
                model: "BPE".to_owned(),
                pre_tokenizer: pre_tokenizer.name().to_owned(),
                text: arm.text.clone(),
                nfc: arm.compose,
                asked: *vocabulary,
                vocabulary: tokenizer.vocabulary_size(),
                hash: Some(tokenizer.hash()?),
                usage: Usage::of(&tokenizer, &arm.documents)?,
                measured,
                machine: Machine { bytes_per_second, ..machine },
            };
            each(&trained, &tokenizer)?;
            study.push(trained);
        }
    }
    Ok(study)
}

/// What `make` gives, with its time and the memory it took.
///
/// # Errors
/// What `make` gives.
pub fn timed<T>(make: impl FnOnce() -> Result<T, TokenizerError>) -> Result<(T, Machine), TokenizerError> {
    let reset = reset_peak_memory();
    let start = Instant::now();
    let made = make()?;
    let train_seconds = start.elapsed().as_secs_f64();
    let train_memory = peak_memory().filter(|_| reset);
    Ok((made, Machine { train_seconds, train_memory, bytes_per_second: 0.0 }))
}

/// Measures a tokenizer on all sets; text is composed first unless it is to be
/// measured as written.
pub fn measure_set(encoder: &dyn Encoder, sets: &[TextSet], compose: bool) -> Result<Vec<Measured>, TokenizerError> {
    let mut measured: Vec<Measured> = Vec::new();
    for set in sets {
        let fertility = match compose {
            true => fertility::measure(encoder, &set.texts)?,
            false => fertility::measure_as_written(encoder, &set.texts)?,
        };
        let first = measured.iter().find(|other| other.texts == set.name).map(|other| &other.fertility);
        let base = first.unwrap_or(&fertility).tokens_per_text.value;
        let premium = fertility.tokens_per_text.value / base;
        measured.push(Measured { texts: set.name.clone(), language: set.language.clone(), fertility, premium });
    }
    Ok(measured)
}

fn measure(encoder: &dyn Encoder, sets: &[TextSet], compose: bool) -> Result<(Vec<Measured>, f64), TokenizerError> {
    let start = Instant::now();
    let measured = measure_set(encoder, sets, compose)?;
    let bytes: u64 = measured.iter().map(|m| m.fertility.bytes).sum();
    Ok((measured, bytes as f64 / start.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_trained_and_measured_and_the_first_set_is_the_base() {
        let bangla = "আমি বাংলায় গান গাই।\nআমি বাংলার গান গাই।\n".repeat(4);
        let english = "I sing in Bangla. I sing the songs of Bangla. ".repeat(4);
        let sets = [("en", "I sing in Bangla."), ("bn", "আমি বাংলায় গান গাই।")];
        let sets = sets.map(|(language, text)| TextSet {
            name: "song".to_owned(),
            language: language.to_owned(),
            texts: vec![text],
        });
        let arm = Arm {
            text: "song".to_owned(),
            documents: vec![&bangla, &english],
            pre_tokenizers: PreTokenizer::STUDIED.to_vec(),
            vocabularies: vec![280, 400],
            compose: true,
        };
        let mut kept = Vec::new();
        let study = run(&arm, &sets, &mut |trained, tokenizer| {
            kept.push((trained.hash, Some(tokenizer.hash()?)));
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
        let again = run(&arm, &sets, &mut |_, _| Ok(())).unwrap();
        let hashes = |study: &[Trained]| study.iter().map(|row| row.hash).collect::<Vec<_>>();
        assert_eq!(hashes(&again), hashes(&study));
    }

    #[test]
    fn no_text_is_an_error() {
        let arm = |documents| Arm {
            text: String::new(),
            documents,
            pre_tokenizers: vec![PreTokenizer::Marks],
            vocabularies: vec![300],
            compose: true,
        };
        assert!(matches!(run(&arm(vec![]), &[], &mut |_, _| Ok(())), Err(TokenizerError::Empty)));
        let empty = TextSet { name: "a".to_owned(), language: "bn".to_owned(), texts: vec![""] };
        assert!(matches!(run(&arm(vec!["ab"]), &[empty], &mut |_, _| Ok(())), Err(TokenizerError::Empty)));
    }
}
