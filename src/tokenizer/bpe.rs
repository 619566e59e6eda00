//! Training, saving, loading and using a byte-level BPE tokenizer, through the `tokenizers` crate.

use super::alphabet::byte_of;
use super::{PreTokenizer, TokenizerError};
use crate::artifact::{Hash, hash_bytes, write_atomic};
use crate::error::FileError;
use crate::recipe::TokenizerRecipe;
use rayon::prelude::*;
use std::path::Path;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, ModelWrapper, SplitDelimiterBehavior, TokenizerBuilder, TokenizerImpl};
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper};

/// The token between documents.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// The byte-level alphabet and the end-of-text token: the smallest vocabulary.
const SMALLEST: usize = 257;

type Inner = TokenizerImpl<ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// A byte-level BPE tokenizer; text is brought to NFC before it is encoded.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Inner,
    end_of_text: u32,
}

impl Tokenizer {
    /// Trains on `texts`. The result depends on the texts and the recipe alone.
    ///
    /// # Errors
    /// [`TokenizerError`] for an unknown pre-tokenizer, or when there is no text.
    pub fn train(texts: &[&str], recipe: &TokenizerRecipe) -> Result<Self, TokenizerError> {
        if texts.iter().all(|text| text.trim().is_empty()) {
            return Err(TokenizerError::Empty);
        }
        let pattern = recipe.pre_tokenizer.parse::<PreTokenizer>()?.pattern();
        let failed = |e: tokenizers::Error| TokenizerError::Train(e.to_string());
        let split = Split::new(SplitPattern::Regex(pattern.to_owned()), SplitDelimiterBehavior::Isolated, false);
        let bytes = ByteLevel::new(false, true, false);
        let pre = Sequence::new(vec![split.map_err(failed)?.into(), bytes.into()]);
        let mut inner: TokenizerImpl<
            BPE,
            NormalizerWrapper,
            PreTokenizerWrapper,
            PostProcessorWrapper,
            DecoderWrapper,
        > = TokenizerBuilder::default()
            .with_model(BPE::default())
            .with_normalizer(Some(NFC.into()))
            .with_pre_tokenizer(Some(pre.into()))
            .with_decoder(Some(bytes.into()))
            .build()
            .map_err(failed)?;
        let mut trainer = BpeTrainerBuilder::new()
            .show_progress(false)
            .vocab_size(recipe.vocabulary.max(SMALLEST))
            .min_frequency(2)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
            .build();
        inner.train(&mut trainer, texts.iter().copied()).map_err(failed)?;
        let json = inner.to_string(true).map_err(failed)?;
        Self::parse(json.as_bytes(), Path::new("trained tokenizer"))
    }

    /// Loads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError`] when it cannot be read, is no byte-level BPE, or has no end-of-text token.
    pub fn load(path: &Path) -> Result<Self, TokenizerError> {
        let bytes = std::fs::read(path).map_err(FileError::at("read", path))?;
        Self::parse(&bytes, path)
    }

    fn parse(bytes: &[u8], path: &Path) -> Result<Self, TokenizerError> {
        let refuse = |message: String| TokenizerError::Format { path: path.to_path_buf(), message };
        let inner: Inner = serde_json::from_slice(bytes).map_err(|e| refuse(e.to_string()))?;
        if !matches!(inner.get_model(), ModelWrapper::BPE(_)) {
            return Err(refuse("its model is not BPE".to_owned()));
        }
        let end_of_text =
            inner.token_to_id(END_OF_TEXT).ok_or_else(|| refuse(format!("it has no {END_OF_TEXT} token")))?;
        let tokenizer = Tokenizer { inner, end_of_text };
        tokenizer.check().map_err(refuse)?;
        Ok(tokenizer)
    }

    /// Refuses a vocabulary that could lose text or give an id the model has no row for.
    fn check(&self) -> Result<(), String> {
        let mut missing = [true; 256];
        for id in 0..self.vocabulary_size() as u32 {
            let bytes = self
                .token_bytes(id)
                .ok_or_else(|| format!("id {id} is unused or its token is not written in the byte-level alphabet"))?;
            if let [byte] = bytes[..] {
                missing[usize::from(byte)] = false;
            }
        }
        match missing.iter().position(|missing| *missing) {
            Some(byte) => Err(format!("it has no token for the byte 0x{byte:02x}, so it would lose text")),
            None => Ok(()),
        }
    }

    /// The standard `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError::Use`] when the library cannot write it.
    pub fn to_json(&self) -> Result<String, TokenizerError> {
        self.inner.to_string(true).map_err(used("write"))
    }

    /// Saves the standard `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError`] when it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TokenizerError> {
        Ok(write_atomic(path, self.to_json()?.as_bytes())?)
    }

    /// Hash of the `tokenizer.json`: what shards and checkpoints name.
    ///
    /// # Errors
    /// As [`Tokenizer::to_json`].
    pub fn hash(&self) -> Result<Hash, TokenizerError> {
        Ok(hash_bytes(self.to_json()?.as_bytes()))
    }

    /// Tokens in the vocabulary.
    pub fn vocabulary_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    /// Id of [`END_OF_TEXT`].
    pub fn end_of_text(&self) -> u32 {
        self.end_of_text
    }

    /// Token ids of a text; a text never becomes the end-of-text token by spelling it.
    ///
    /// # Errors
    /// [`TokenizerError::Use`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = Vec::new();
        for (i, part) in text.split(END_OF_TEXT).enumerate() {
            if i > 0 {
                for piece in ["<|", "endoftext|>"] {
                    ids.extend_from_slice(self.inner.encode_fast(piece, false).map_err(used("encode"))?.get_ids());
                }
            }
            ids.extend_from_slice(self.inner.encode_fast(part, false).map_err(used("encode"))?.get_ids());
        }
        Ok(ids)
    }

    /// Token ids of many texts, in their order, on all threads.
    ///
    /// # Errors
    /// [`TokenizerError::Use`].
    pub fn encode_all<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Result<Vec<Vec<u32>>, TokenizerError> {
        texts.collect::<Vec<_>>().into_par_iter().map(|text| self.encode(text)).collect()
    }

    /// The text of token ids; bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`TokenizerError::Use`] when an id is outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        if let Some(id) = ids.iter().find(|id| self.inner.id_to_token(**id).is_none()) {
            let message = format!("id {id} is outside its vocabulary of {}", self.vocabulary_size());
            return Err(TokenizerError::Use { action: "decode", message });
        }
        self.inner.decode(ids, false).map_err(used("decode"))
    }

    /// The bytes of one token; those of the end-of-text token are its name.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let token = self.inner.id_to_token(id)?;
        if id == self.end_of_text {
            return Some(token.into_bytes());
        }
        token.chars().map(byte_of).collect()
    }
}

fn used(action: &'static str) -> impl Fn(tokenizers::Error) -> TokenizerError {
    move |e| TokenizerError::Use { action, message: e.to_string() }
}
