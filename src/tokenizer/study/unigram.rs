//! A unigram model (T. Kudo 2018) over the byte-level alphabet, by the trainer of the `tokenizers` crate.

use crate::artifact::{Hash, hash_bytes};
use crate::tokenizer::load::AnyTokenizer;
use crate::tokenizer::train::fit;
use crate::tokenizer::{END_OF_TEXT, TokenizerError, Training};
use tokenizers::AddedToken;
use tokenizers::models::unigram::{Unigram, UnigramTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// Trains on `texts`, and gives the digest of its `tokenizer.json` too. The vocabulary has about the size asked for.
///
/// # Errors
/// [`TokenizerError`] when there is no text, or not enough for the vocabulary.
pub fn train_unigram(texts: &[&str], training: &Training) -> Result<(AnyTokenizer, Hash), TokenizerError> {
    let failed = |message: String| TokenizerError::Train(message);
    let mut trainer = UnigramTrainer::builder()
        .show_progress(false)
        .vocab_size(training.vocabulary as u32)
        .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
        .build()
        .map_err(|e| failed(e.to_string()))?;
    trainer.initial_alphabet.extend(ByteLevel::alphabet());
    let json = fit(texts.iter().copied(), training, Unigram::default(), trainer)?;
    let hash = hash_bytes(json.as_bytes());
    Ok((AnyTokenizer::from_json(json.as_bytes()).map_err(failed)?, hash))
}
