//! How a tokenizer uses its vocabulary on the text it was trained on.

use crate::tokenizer::{Encoder, TokenizerError};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How a tokenizer uses its vocabulary: an embedding that is hardly ever met is hardly trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the training text.
    pub tokens: u64,
    /// Share of the vocabulary that occurs fewer than [`RARE`] times in it.
    pub rare: f64,
}

/// Fewer occurrences are rare.
pub const RARE: u64 = 100;

impl Usage {
    /// Counts the tokens of `texts`.
    ///
    /// # Errors
    /// [`TokenizerError::Use`] when encoding fails.
    pub fn of(encoder: &dyn Encoder, texts: &[&str]) -> Result<Self, TokenizerError> {
        let mut counts = vec![0u64; encoder.vocabulary_size()];
        for batch in texts.chunks(1024) {
            let encoded = batch.par_iter().map(|text| encoder.encode_text(text)).collect::<Result<Vec<_>, _>>()?;
            for id in encoded.iter().flat_map(|encoded| &encoded.ids) {
                counts[*id as usize] += 1;
            }
        }
        let rare = counts.iter().filter(|count| **count < RARE).count();
        Ok(Usage { tokens: counts.iter().sum(), rare: rare as f64 / counts.len().max(1) as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::TokenizerRecipe;
    use crate::tokenizer::Tokenizer;

    #[test]
    fn tokens_are_counted_and_the_rare_ones_are_a_share_of_the_vocabulary() {
        let recipe =
            TokenizerRecipe { pre_tokenizer: "marks".to_owned(), vocabulary: 258, mix: Default::default(), file: None };
        let tokenizer = Tokenizer::train(&["ab ab"], &recipe).unwrap();
        let text = "ab".repeat(100);
        let found = Usage::of(&tokenizer, &[&text, "c"]).unwrap();
        assert_eq!(found.tokens, 101);
        assert!((found.rare - 257.0 / 258.0).abs() < 1e-12, "all but `ab`: {found:?}");
    }
}
