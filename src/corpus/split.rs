//! The document-level split into training and held-out text.

use crate::artifact::hash_bytes;

/// Whether a document with this (normalised) text is held out: when the first 64 bits of its
/// SHA-256, read as a big-endian number and divided by 2⁶⁴, are below `share`.
///
/// The answer depends on the text alone, so adding documents or changing their order moves nothing.
pub fn is_held_out(text: &str, share: f64) -> bool {
    let hash = hash_bytes(text.as_bytes()).0;
    let number = u64::from_be_bytes(std::array::from_fn(|i| hash[i]));
    number as f64 / 2f64.powi(64) < share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_hash() {
        // SHA-256("abc") starts ba7816bf8f01cfea: 0xba78.. / 2⁶⁴ = 0.72839...
        assert!(!is_held_out("abc", 0.7283));
        assert!(is_held_out("abc", 0.7285));
    }

    #[test]
    fn the_share_is_met_and_a_larger_share_only_adds() {
        let texts: Vec<String> = (0..20_000).map(|i| format!("document {i}")).collect();
        let held = |share| texts.iter().map(|t| is_held_out(t, share)).collect::<Vec<_>>();
        let (small, large) = (held(0.1), held(0.2));
        let count = small.iter().filter(|&&h| h).count();
        assert!((1850..2150).contains(&count), "{count}");
        assert!(small.iter().zip(&large).all(|(s, l)| !s || *l));
        assert!(!held(0.0).contains(&true));
    }
}
