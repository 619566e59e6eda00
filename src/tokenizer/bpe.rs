//! Loading, saving and using a byte-level BPE tokenizer.

use super::alphabet::byte_of;
use super::fast::Fast;
use super::load::check_merges;
use super::{TokenizerError, train};
use crate::artifact::{Hash, hash_bytes, read, write_atomic};
use rayon::prelude::*;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokenizers::{
    DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl,
};

/// The token between documents.
pub const END_OF_TEXT: &str = "<|endoftext|>";

type Inner = TokenizerImpl<ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// A byte-level BPE tokenizer; text is brought to NFC before it is encoded, unless it was trained otherwise.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Inner,
    end_of_text: u32,
    /// Encodes where the layout is the one that is trained here; else the `tokenizers` crate does.
    fast: Option<Arc<Fast>>,
    /// The bytes of each token.
    spelt: Arc<[Box<[u8]>]>,
}

impl Tokenizer {
    /// Loads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError`] when it cannot be read, is no byte-level BPE, or has no end-of-text token.
    pub fn load(path: &Path) -> Result<Self, TokenizerError> {
        let bytes = read(path)?;
        Self::parse(&bytes, path)
    }

    /// Reads a `tokenizer.json`; `path` is used in messages.
    pub(super) fn parse(bytes: &[u8], path: &Path) -> Result<Self, TokenizerError> {
        let refuse = |message: String| TokenizerError::Format { path: path.to_path_buf(), message };
        let json: Value = serde_json::from_slice(bytes).map_err(|e| refuse(e.to_string()))?;
        check_merges(&json["model"]).map_err(refuse)?;
        let inner: Inner = serde_json::from_slice(bytes).map_err(|e| refuse(e.to_string()))?;
        if !matches!(inner.get_model(), ModelWrapper::BPE(_)) {
            return Err(refuse("its model is not BPE".to_owned()));
        }
        let end_of_text =
            inner.token_to_id(END_OF_TEXT).ok_or_else(|| refuse(format!("it has no {END_OF_TEXT} token")))?;
        let spelt = spell(&inner, end_of_text).map_err(refuse)?;
        Ok(Tokenizer { inner, end_of_text, fast: Fast::of(&json, END_OF_TEXT).map(Arc::new), spelt: spelt.into() })
    }

    /// The standard `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError::Use`] when the library cannot write it.
    pub fn to_json(&self) -> Result<String, TokenizerError> {
        self.inner.to_string(true).map_err(used("write"))
    }

    /// The standard `tokenizer.json` without white space.
    ///
    /// # Errors
    /// As [`Tokenizer::to_json`].
    pub fn to_compact_json(&self) -> Result<String, TokenizerError> {
        self.inner.to_string(false).map_err(used("write"))
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

    /// The same tokenizer with at most `vocabulary` tokens: what training with that many gives, since
    /// the merges of a smaller vocabulary are the first ones of a larger.
    ///
    /// # Errors
    /// As [`Tokenizer::to_json`].
    pub fn cut(&self, vocabulary: usize) -> Result<Self, TokenizerError> {
        let json = train::cut(&self.to_json()?, vocabulary)?;
        Self::parse(json.as_bytes(), Path::new("cut tokenizer"))
    }

    /// Tokens in the vocabulary.
    pub fn vocabulary_size(&self) -> usize {
        self.spelt.len()
    }

    /// Id of [`END_OF_TEXT`].
    pub fn end_of_text(&self) -> u32 {
        self.end_of_text
    }

    /// Whether texts are encoded without the `tokenizers` crate: so they are in the layout that is trained here.
    pub fn is_fast(&self) -> bool {
        self.fast.is_some()
    }

    /// Token ids of a text; a text never becomes the end-of-text token by spelling it.
    ///
    /// # Errors
    /// [`TokenizerError::Use`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = Vec::with_capacity(text.len() / 8);
        for (i, part) in text.split(END_OF_TEXT).enumerate() {
            if i > 0 {
                self.encode_part("<|", &mut ids)?;
                self.encode_part("endoftext|>", &mut ids)?;
            }
            self.encode_part(part, &mut ids)?;
        }
        Ok(ids)
    }

    fn encode_part(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokenizerError> {
        if let Some(fast) = &self.fast {
            let failed = |message| TokenizerError::Use { action: "encode", message };
            return fast.encode(text, ids).map_err(failed);
        }
        ids.extend_from_slice(self.inner.encode_fast(text, false).map_err(used("encode"))?.get_ids());
        Ok(())
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
        let mut bytes = Vec::with_capacity(8 * ids.len());
        for id in ids {
            let token = self.spelt.get(*id as usize).ok_or_else(|| TokenizerError::Use {
                action: "decode",
                message: format!("id {id} is outside its vocabulary of {}", self.vocabulary_size()),
            })?;
            bytes.extend_from_slice(token);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes of one token; those of the end-of-text token are its name.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        self.spelt.get(id as usize).map(|bytes| bytes.to_vec())
    }
}

/// The bytes of every token; refuses a vocabulary that could lose text or give an id the model has no
/// row for.
fn spell(inner: &Inner, end_of_text: u32) -> Result<Vec<Box<[u8]>>, String> {
    let mut missing = [true; 256];
    let mut spelt = Vec::with_capacity(inner.get_vocab_size(true));
    for id in 0..inner.get_vocab_size(true) as u32 {
        let bytes: Option<Vec<u8>> = inner.id_to_token(id).and_then(|token| match id == end_of_text {
            true => Some(token.into_bytes()),
            false => token.chars().map(byte_of).collect(),
        });
        let bytes =
            bytes.ok_or_else(|| format!("id {id} is unused or its token is not written in the byte-level alphabet"))?;
        if let [byte] = bytes[..] {
            missing[usize::from(byte)] = false;
        }
        spelt.push(bytes.into());
    }
    match missing.iter().position(|missing| *missing) {
        Some(byte) => Err(format!("it has no token for the byte 0x{byte:02x}, so it would lose text")),
        None => Ok(spelt),
    }
}

fn used(action: &'static str) -> impl Fn(tokenizers::Error) -> TokenizerError {
    move |e| TokenizerError::Use { action, message: e.to_string() }
}
