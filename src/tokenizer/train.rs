//! Training a byte-level BPE tokenizer with the `tokenizers` crate, and cutting it to fewer tokens.

use super::{END_OF_TEXT, PreTokenizer, Tokenizer, TokenizerError};
use crate::recipe::TokenizerRecipe;
use serde_json::Value;
use std::path::Path;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, Model, SplitDelimiterBehavior, TokenizerBuilder, TokenizerImpl, Trainer};
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper};

/// The byte-level alphabet and the end-of-text token: the smallest vocabulary.
const SMALLEST: usize = 257;

/// What a tokenizer is trained to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Training {
    /// Where merges may never cross.
    pub pre_tokenizer: PreTokenizer,
    /// Tokens in the vocabulary, at most.
    pub vocabulary: usize,
    /// Text is brought to NFC first.
    pub compose: bool,
}

impl Tokenizer {
    /// Trains on `texts`. The result depends on the texts and the recipe alone.
    ///
    /// # Errors
    /// [`TokenizerError`] for an unknown pre-tokenizer, or when there is no text.
    pub fn train(texts: &[&str], recipe: &TokenizerRecipe) -> Result<Self, TokenizerError> {
        Self::train_on(texts.iter().copied(), recipe)
    }

    /// As [`Tokenizer::train`], on texts that are made one after the other.
    ///
    /// # Errors
    /// As [`Tokenizer::train`].
    pub fn train_on<S: AsRef<str> + Send>(
        texts: impl Iterator<Item = S> + Send,
        recipe: &TokenizerRecipe,
    ) -> Result<Self, TokenizerError> {
        let pre_tokenizer = recipe.pre_tokenizer.parse()?;
        Self::train_to(texts, &Training { pre_tokenizer, vocabulary: recipe.vocabulary, compose: true })
    }

    /// Trains on `texts` as `training` says. The result depends on the arguments alone.
    ///
    /// # Errors
    /// [`TokenizerError`] when there is no text.
    pub fn train_as(texts: &[&str], training: &Training) -> Result<Self, TokenizerError> {
        Self::train_to(texts.iter().copied(), training)
    }

    fn train_to<S: AsRef<str> + Send>(
        texts: impl Iterator<Item = S> + Send,
        training: &Training,
    ) -> Result<Self, TokenizerError> {
        let trainer = BpeTrainerBuilder::new()
            .show_progress(false)
            .vocab_size(training.vocabulary.max(SMALLEST))
            .min_frequency(2)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
            .build();
        let json = fit(texts, training, BPE::default(), trainer)?;
        Self::parse(json.as_bytes(), Path::new("trained tokenizer"))
    }
}

/// Trains a model of any kind over the byte-level alphabet, and gives its `tokenizer.json`.
pub(super) fn fit<M, T, S>(
    texts: impl Iterator<Item = S> + Send,
    training: &Training,
    model: M,
    mut trainer: T,
) -> Result<String, TokenizerError>
where
    M: Model + serde::Serialize + Send + Sync,
    T: Trainer<Model = M> + Sync,
    S: AsRef<str> + Send,
{
    let mut is_empty = true;
    let texts = texts.inspect(|text| is_empty &= text.as_ref().trim().is_empty());
    let failed = |e: tokenizers::Error| TokenizerError::Train(e.to_string());
    let pattern = SplitPattern::Regex(training.pre_tokenizer.pattern().to_owned());
    let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(failed)?;
    let bytes = ByteLevel::new(false, true, false);
    let mut inner: TokenizerImpl<M, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper> =
        TokenizerBuilder::default()
            .with_model(model)
            .with_normalizer(training.compose.then(|| NFC.into()))
            .with_pre_tokenizer(Some(Sequence::new(vec![split.into(), bytes.into()]).into()))
            .with_decoder(Some(bytes.into()))
            .build()
            .map_err(failed)?;
    let outcome = inner.train(&mut trainer, texts).map(drop);
    if is_empty {
        return Err(TokenizerError::Empty);
    }
    outcome.map_err(failed)?;
    inner.to_string(true).map_err(failed)
}

/// A `tokenizer.json` with the tokens below `vocabulary` and the merges before the first that makes another.
pub(super) fn cut(json: &str, vocabulary: usize) -> Result<String, TokenizerError> {
    let failed = |e: serde_json::Error| TokenizerError::Train(e.to_string());
    let mut json: Value = serde_json::from_str(json).map_err(failed)?;
    let limit = vocabulary.max(SMALLEST) as u64;
    let mut kept = std::collections::HashSet::new();
    if let Some(tokens) = json["model"]["vocab"].as_object_mut() {
        tokens.retain(|_, id| id.as_u64().is_some_and(|id| id < limit));
        kept.extend(tokens.keys().cloned());
    }
    if let Some(merges) = json["model"]["merges"].as_array_mut() {
        let result = |pair: &Value| format!("{}{}", pair[0].as_str().unwrap_or(""), pair[1].as_str().unwrap_or(""));
        let end = merges.iter().position(|pair| !kept.contains(&result(pair)));
        merges.truncate(end.unwrap_or(merges.len()));
    }
    serde_json::to_string_pretty(&json).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_vocabulary_is_the_one_trained_to_that_size() {
        let text = "আমি বাংলায় গান গাই। আমি বাংলার গান গাই। I sing in Bangla, singing the songs. ".repeat(3);
        let train = |vocabulary, compose| {
            let training = Training { pre_tokenizer: PreTokenizer::Marks, vocabulary, compose };
            Tokenizer::train_as(&[&text], &training).unwrap()
        };
        let large = train(340, true);
        for vocabulary in [0, 257, 258, 290, 340, 999] {
            let cut = large.cut(vocabulary).unwrap();
            assert!(cut.is_fast());
            assert_eq!(cut.hash().unwrap(), train(vocabulary.min(340), true).hash().unwrap(), "{vocabulary}");
        }
        assert!(!train(300, false).to_json().unwrap().contains("NFC"));
    }
}
