//! What a measure of any tokenizer needs: where its tokens end in the text, and what they hold.

use super::{Tokenizer, TokenizerError};

/// The tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoded {
    /// Ids of the tokens.
    pub ids: Vec<u32>,
    /// For each token the byte of the text at which it ends. The ends never fall; what no token holds
    /// (white space that a tokenizer drops) belongs to the token after it.
    pub ends: Vec<usize>,
}

/// A tokenizer whose cost can be measured, of whatever kind.
pub trait Encoder: Sync {
    /// Tokens in the vocabulary.
    fn vocabulary_size(&self) -> usize;

    /// The tokens of a text in NFC, without any that stand for its beginning or end.
    ///
    /// # Errors
    /// [`TokenizerError::Use`].
    fn encode_text(&self, text: &str) -> Result<Encoded, TokenizerError>;

    /// The text that tokens stand for, as far as the tokenizer kept it.
    ///
    /// # Errors
    /// [`TokenizerError::Use`].
    fn decode_ids(&self, ids: &[u32]) -> Result<String, TokenizerError>;

    /// The bytes a token stands for; `None` when it stands for none, as a special token does.
    fn bytes_of(&self, id: u32) -> Option<Vec<u8>>;
}

impl Encoder for Tokenizer {
    fn vocabulary_size(&self) -> usize {
        Tokenizer::vocabulary_size(self)
    }

    fn encode_text(&self, text: &str) -> Result<Encoded, TokenizerError> {
        let ids = self.encode(text)?;
        let lengths = ids.iter().map(|id| self.token_bytes(*id).map_or(0, |bytes| bytes.len()));
        let ends = cumulative(lengths, text.len());
        Ok(Encoded { ids, ends })
    }

    fn decode_ids(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        self.decode(ids)
    }

    fn bytes_of(&self, id: u32) -> Option<Vec<u8>> {
        if id == self.end_of_text() { None } else { self.token_bytes(id) }
    }
}

/// Ends of tokens of the given lengths laid end to end, none past `limit`.
pub(super) fn cumulative(lengths: impl Iterator<Item = usize>, limit: usize) -> Vec<usize> {
    let mut end = 0;
    let place = |length: usize| {
        end = (end + length).min(limit);
        end
    };
    lengths.map(place).collect()
}
