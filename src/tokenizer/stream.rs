//! Text as it is generated, in pieces that never end inside a character as a reader sees it.

use super::{Tokenizer, TokenizerError};
use unicode_segmentation::UnicodeSegmentation;

/// Turns token ids into text piece by piece. A grapheme cluster is held back until the next one has
/// begun, so that a Bangla syllable sign never appears without its letter.
pub struct TextStream<'a> {
    tokenizer: &'a Tokenizer,
    pending: Vec<u8>,
}

impl<'a> TextStream<'a> {
    /// An empty stream.
    pub fn new(tokenizer: &'a Tokenizer) -> Self {
        TextStream { tokenizer, pending: Vec::new() }
    }

    /// Adds a token and gives the text that is complete now; often empty.
    ///
    /// # Errors
    /// [`TokenizerError::Use`] when the id is outside the vocabulary.
    pub fn push(&mut self, id: u32) -> Result<String, TokenizerError> {
        let bytes = self.tokenizer.token_bytes(id).ok_or_else(|| TokenizerError::Use {
            action: "decode",
            message: format!("id {id} is outside its vocabulary of {}", self.tokenizer.vocabulary_size()),
        })?;
        self.pending.extend(bytes);
        let ready = complete(&self.pending);
        let text = String::from_utf8_lossy(&self.pending[..ready]).into_owned();
        self.pending.drain(..ready);
        Ok(text)
    }

    /// What is left at the end.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

/// Length of the part of `bytes` that later bytes cannot change: all but the last grapheme cluster,
/// and nothing of a character that is not whole yet. Invalid bytes are never held back for long.
fn complete(bytes: &[u8]) -> usize {
    let mut start = 0;
    let valid = loop {
        match std::str::from_utf8(&bytes[start..]) {
            Ok(text) => break text,
            Err(e) => match e.error_len() {
                Some(bad) => start += e.valid_up_to() + bad,
                None => break std::str::from_utf8(&bytes[start..start + e.valid_up_to()]).unwrap_or_default(),
            },
        }
    };
    start + valid.grapheme_indices(true).next_back().map_or(0, |(last, _)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_back_the_last_cluster_and_unfinished_characters() {
        let text = "কি".as_bytes();
        assert_eq!(complete(text), 0, "the vowel sign may be followed by another mark");
        assert_eq!(complete("কিত".as_bytes()), text.len());
        assert_eq!(complete(&"ab".as_bytes()[..1]), 0);
        assert_eq!(complete(&[b'a', 0xE0, 0xA6]), 0, "a letter and two thirds of another");
        assert_eq!(complete(&[0xFF, b'a', b'b']), 2, "an invalid byte is passed on");
    }
}
