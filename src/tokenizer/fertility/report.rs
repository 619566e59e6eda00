//! What a user is told about a tokenizer on a text file.

use super::{Fertility, Meter, Splitter, for_each_batch};
use crate::tokenizer::load::{AnyTokenizer, Kind};
use crate::tokenizer::{Encoder, TokenizerError};
use serde::Serialize;
use std::path::Path;

/// One tokenizer on one text file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileReport {
    /// Path of the text.
    pub text: String,
    /// Path of the tokenizer.
    pub tokenizer: String,
    /// Kind of the tokenizer's file.
    pub kind: Kind,
    /// Kind of its model: `BPE`, `Unigram` …
    pub model: &'static str,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// What was measured, by line.
    pub fertility: Fertility,
    /// The tokens that most often end inside a grapheme cluster.
    pub splitters: Vec<Splitter>,
    /// What to change, in one line.
    pub advice: String,
}

/// Measures the lines of the file `text`; `name` is what to call the tokenizer, `top` how many of the
/// tokens that split clusters to list. Memory does not grow with the size of the file or of a line.
///
/// # Errors
/// [`TokenizerError`] when the text cannot be read, is not UTF-8 or holds no words.
pub fn measure_file(
    tokenizer: &AnyTokenizer,
    name: &str,
    text: &Path,
    top: usize,
) -> Result<FileReport, TokenizerError> {
    let mut meter = Meter::new(tokenizer);
    for_each_batch(text, &mut |parts| meter.add_parts(parts))?;
    let fertility = meter.fertility().map_err(|e| match e {
        TokenizerError::Empty => TokenizerError::NoText(text.to_path_buf()),
        other => other,
    })?;
    Ok(FileReport {
        text: text.display().to_string(),
        tokenizer: name.to_owned(),
        kind: tokenizer.kind(),
        model: tokenizer.model(),
        vocabulary: tokenizer.vocabulary_size(),
        advice: advice(&fertility, meter.keeps_marks()),
        splitters: meter.splitters(top),
        fertility,
    })
}

/// What to change about a tokenizer, from the worst thing a measure shows down; `keeps_marks` as
/// [`Meter::keeps_marks`] has it.
pub fn advice(found: &Fertility, keeps_marks: bool) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let (lost, cut) = (found.round_trip_failure_share.value, found.ends_inside_cluster.value);
    if lost > 0.01 {
        return format!(
            "{} of the lines do not come back from their tokens: use it for reading only, or one with bytes to fall \
             back on and no normaliser but NFC",
            percent(lost)
        );
    }
    if found.byte_fallback.value > 0.1 {
        return format!(
            "{} of the tokens are lone bytes: its vocabulary hardly knows this script; train one on such text",
            percent(found.byte_fallback.value)
        );
    }
    if cut > 0.25 && !keeps_marks {
        return format!(
            "{} of the tokens end inside a letter as readers see it: its pre-tokenizer takes words apart at combining \
             marks; train one with `marks`",
            percent(cut)
        );
    }
    if found.tokens_per_word.value > 2.5 {
        let tokens = found.tokens_per_word.value;
        return format!("a word takes {tokens:.2} tokens: a larger vocabulary, or more such text in training, helps");
    }
    if cut > 0.25 {
        return format!(
            "{} of the tokens end inside a letter as readers see it, though marks may stay with letters: a larger \
             vocabulary, or more such text in training, helps",
            percent(cut)
        );
    }
    "nothing stands out: text comes back whole, and few tokens split letters or words".to_owned()
}
