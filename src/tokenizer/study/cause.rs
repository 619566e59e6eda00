//! The cause: the share of combining marks in a language's text against what GPT-2's pattern loses on it.
//!
//! One protocol for every language. Its text is one document, the Universal Declaration of Human Rights;
//! its paragraphs are dealt in two halves. For each pattern a vocabulary is trained on one half and the
//! other is measured, then the other way round. So no vocabulary has seen what it is measured on, and
//! every language has as much text as the others and a vocabulary of its own.

use crate::rng::Stream;
use crate::statistics::{Interval, ratio_interval};
use crate::tokenizer::{PreTokenizer, Tokenizer, TokenizerError, Training};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Tokens in each vocabulary, at most.
pub const VOCABULARY: usize = 1024;

const RESAMPLES: usize = 1000;

/// A language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageCause {
    /// Its code.
    pub language: String,
    /// Characters of its text in NFC.
    pub characters: u64,
    /// Share of combining marks among the characters that are no white space.
    pub marks: f64,
    /// Characters per token with GPT-2's pattern.
    pub gpt2: Interval,
    /// Characters per token when marks stay with their letters.
    pub kept: Interval,
    /// Share of the characters per token that GPT-2's pattern loses: 1 − gpt2 / kept.
    pub loss: Interval,
}

/// All languages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Tokens in each vocabulary, at most.
    pub vocabulary: usize,
    /// The languages, by code.
    pub languages: Vec<LanguageCause>,
    /// Pearson's correlation of marks and loss over the languages, with the interval of resampled languages.
    pub correlation: Interval,
    /// The same among languages that have marks at all.
    pub correlation_with_marks: Interval,
}

/// Measures every language; `texts` are codes and texts, paragraphs one a line.
///
/// # Errors
/// [`TokenizerError::Empty`] for a text of fewer than two paragraphs.
pub fn measure(texts: &[(String, String)], vocabulary: usize) -> Result<Cause, TokenizerError> {
    let one = |(language, text): &(String, String)| language_cause(language, text, vocabulary);
    let mut languages = texts.par_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    languages.sort_by(|a, b| a.language.cmp(&b.language));
    let points: Vec<[f64; 2]> = languages.iter().map(|l| [l.marks, l.loss.value]).collect();
    let with_marks: Vec<[f64; 2]> = points.iter().copied().filter(|[marks, _]| *marks > 0.0).collect();
    Ok(Cause {
        vocabulary,
        languages,
        correlation: correlation(&points),
        correlation_with_marks: correlation(&with_marks),
    })
}

/// Share of combining marks among the characters of `text` in NFC that are no white space.
pub fn mark_share(text: &str) -> f64 {
    let (mut marks, mut all) = (0u64, 0u64);
    for c in text.nfc().filter(|c| !c.is_whitespace()) {
        marks += u64::from(is_combining_mark(c));
        all += 1;
    }
    marks as f64 / all.max(1) as f64
}

fn language_cause(language: &str, text: &str, vocabulary: usize) -> Result<LanguageCause, TokenizerError> {
    let paragraphs: Vec<String> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| line.nfc().collect()).collect();
    if paragraphs.len() < 2 {
        return Err(TokenizerError::Empty);
    }
    let characters: Vec<f64> = paragraphs.iter().map(|text| text.chars().count() as f64).collect();
    let tokens = |pre_tokenizer| tokens(&paragraphs, Training { pre_tokenizer, vocabulary, compose: true });
    let (naive, kept) = (tokens(PreTokenizer::Gpt2)?, tokens(PreTokenizer::Marks)?);
    // kept / gpt2 in characters per token is gpt2 / kept in tokens; the ends change places.
    let ratio = ratio_interval(&kept, &naive, RESAMPLES, 0);
    Ok(LanguageCause {
        language: language.to_owned(),
        characters: characters.iter().sum::<f64>() as u64,
        marks: mark_share(text),
        gpt2: ratio_interval(&characters, &naive, RESAMPLES, 0),
        kept: ratio_interval(&characters, &kept, RESAMPLES, 0),
        loss: Interval { value: 1.0 - ratio.value, low: 1.0 - ratio.high, high: 1.0 - ratio.low },
    })
}

/// Tokens of each paragraph, by a vocabulary trained on every second paragraph it is not one of.
fn tokens(paragraphs: &[String], training: Training) -> Result<Vec<f64>, TokenizerError> {
    let mut counts = vec![0.0; paragraphs.len()];
    for half in 0..2 {
        let seen: Vec<&str> = paragraphs.iter().skip(1 - half).step_by(2).map(String::as_str).collect();
        let tokenizer = Tokenizer::train_as(&seen, &training)?;
        for (i, paragraph) in paragraphs.iter().enumerate().skip(half).step_by(2) {
            counts[i] = tokenizer.encode(paragraph)?.len() as f64;
        }
    }
    Ok(counts)
}

/// Pearson's correlation with the percentile interval of resampled points; 0 when one side never varies.
fn correlation(points: &[[f64; 2]]) -> Interval {
    let n = points.len() as u64;
    if n < 2 {
        return Interval { value: 0.0, low: 0.0, high: 0.0 };
    }
    let stream = Stream::new(0, "bootstrap");
    let resample = |r: u64| {
        let picks: Vec<[f64; 2]> = (0..n).map(|i| points[stream.below(r * n + i, n) as usize]).collect();
        pearson(&picks)
    };
    let mut values: Vec<f64> = (0..RESAMPLES as u64).map(resample).collect();
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[(q * (RESAMPLES - 1) as f64).round() as usize];
    Interval { value: pearson(points), low: at(0.025), high: at(0.975) }
}

fn pearson(points: &[[f64; 2]]) -> f64 {
    let n = points.len() as f64;
    let mean = |i: usize| points.iter().map(|p| p[i]).sum::<f64>() / n;
    let (x, y) = (mean(0), mean(1));
    let sum = |of: &dyn Fn(&[f64; 2]) -> f64| points.iter().map(of).sum::<f64>();
    let together = sum(&|p| (p[0] - x) * (p[1] - y));
    let alone = (sum(&|p| (p[0] - x).powi(2)) * sum(&|p| (p[1] - y).powi(2))).sqrt();
    if alone == 0.0 { 0.0 } else { together / alone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_of_marks_loses_and_one_without_does_not() {
        let bangla = "আমি বাংলায় গান গাই।\nআমি বাংলার গান গাই।\n".repeat(10);
        let english = "I sing in Bangla.\nI sing the songs of Bangla.\n".repeat(10);
        let texts = [("en".to_owned(), english), ("bn".to_owned(), bangla)];
        let cause = measure(&texts, 400).unwrap();
        let [bn, en] = &cause.languages[..] else { panic!("{cause:?}") };
        assert_eq!((bn.language.as_str(), en.language.as_str(), en.marks), ("bn", "en", 0.0));
        // আমি বাংলায় গান গাই। in NFC: 17 characters that are no space, of which 7 are marks.
        assert!((mark_share("আমি বাংলায় গান গাই।") - 7.0 / 17.0).abs() < 1e-12);
        assert_eq!((en.loss.value, en.loss.low, en.loss.high), (0.0, 0.0, 0.0));
        assert!(bn.loss.low > 0.3 && bn.loss.low <= bn.loss.value && bn.loss.value <= bn.loss.high, "{bn:?}");
        assert!((cause.correlation.value - 1.0).abs() < 1e-12);
        assert!((bn.loss.value - (1.0 - bn.gpt2.value / bn.kept.value)).abs() < 1e-12);
        assert!(matches!(measure(&[("x".to_owned(), "one".to_owned())], 300), Err(TokenizerError::Empty)));
    }

    #[test]
    fn correlation_is_pearsons() {
        let found = correlation(&[[1.0, 2.0], [2.0, 1.0], [3.0, 4.0], [4.0, 3.0]]);
        assert!((found.value - 0.6).abs() < 1e-12, "{found:?}");
        assert!(found.low <= found.value && found.value <= found.high);
        assert_eq!(correlation(&[[1.0, 2.0], [1.0, 3.0]]).value, 0.0);
    }
}
