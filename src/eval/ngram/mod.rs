//! The n-gram baseline: an interpolated 5-gram model with modified Kneser-Ney smoothing
//! (S. Chen, J. Goodman, "An empirical study of smoothing techniques for language modeling",
//! Computer Speech & Language 13, 1999, section 3), over the tokens the decoder sees.
//!
//! p(w | h) = max(a(hw) − D(a(hw)), 0) / Σ a(h·) + γ(h) p(w | h without its first token), down to the
//! unigrams and then 1/vocabulary. a is the count at the highest order, below it the number of
//! different tokens seen before the n-gram; an n-gram at the start of a document, before which nothing
//! can stand, keeps its count. γ(h) gives back what the discounts took, so p sums to 1.

mod level;

use level::{BITS, Level, counted, discount, grams, level};
use std::ops::Range;

/// Tokens of the longest n-gram.
pub const ORDER: usize = 5;

/// Training tokens used, at most: about 100 bytes of memory each while the tables are made.
pub const LIMIT: usize = 1 << 24;

/// What the n-grams after one context sum to.
#[derive(Debug, Clone, Copy, Default)]
struct Mass {
    total: f64,
    discounted: f64,
}

/// A trained 5-gram model.
#[derive(Debug)]
pub struct Ngram {
    levels: Vec<Level>,
    unigrams: Mass,
    vocabulary: usize,
    tokens: u64,
}

impl Ngram {
    /// Trains on token streams in which `end_of_text` ends every document. When they have more than
    /// [`LIMIT`] tokens together, the same share of each is used, from its start.
    ///
    /// # Panics
    /// When a token is outside the vocabulary, or that is larger than 2^25.
    pub fn train(streams: &[&[u32]], vocabulary: usize, end_of_text: u32) -> Self {
        Self::train_on(streams, vocabulary, end_of_text, LIMIT)
    }

    fn train_on(streams: &[&[u32]], vocabulary: usize, end_of_text: u32, limit: usize) -> Self {
        let inside = |stream: &&[u32]| stream.iter().all(|token| (*token as usize) < vocabulary);
        assert!(vocabulary <= 1 << BITS && streams.iter().all(inside), "tokens of a small enough vocabulary");
        let all: usize = streams.iter().map(|s| s.len()).sum();
        let share = (limit as f64 / all.max(1) as f64).min(1.0);
        let cut = |s: &&'_ [u32]| (s.len() as f64 * share) as usize;
        let streams: Vec<&[u32]> = streams.iter().map(|s| whole_documents(&s[..cut(s)], end_of_text)).collect();
        let (mut keys, starts) = grams(&streams, end_of_text);
        let mut levels = Vec::with_capacity(ORDER);
        let mut longer: Vec<u128> = Vec::new();
        for order in (1..=ORDER).rev() {
            let (unique, counts) = counted(keys);
            levels.push(level(&unique, counts, &longer));
            let mask = (1u128 << (BITS * (order as u32 - 1))) - 1;
            keys = unique.iter().map(|key| key & mask).collect();
            if order > 2 {
                keys.extend_from_slice(&starts[order - 1]);
            }
            longer = unique;
        }
        levels.reverse();
        let tokens = streams.iter().map(|s| s.len() as u64).sum();
        let mut model = Ngram { levels, unigrams: Mass::default(), vocabulary, tokens };
        model.unigrams = model.mass(0, 0..model.levels[0].tokens.len());
        model
    }

    /// Training tokens the model was made of.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Probability of `token` after `context`, of which the last four tokens count.
    pub fn probability(&self, context: &[u32], token: u32) -> f64 {
        let all = 0..self.levels[0].tokens.len();
        let mut p = self.mixed(0, all, self.unigrams, token, 1.0 / self.vocabulary as f64);
        for length in 1..ORDER.min(context.len() + 1) {
            let Some(range) = self.extensions(&context[context.len() - length..]) else { break };
            let mass = self.mass(length, range.clone());
            p = self.mixed(length, range, mass, token, p);
        }
        p
    }

    /// Nats of every token but the first, each after those before it.
    pub fn nats(&self, tokens: &[u32]) -> f64 {
        (1..tokens.len()).map(|i| -self.probability(&tokens[i.saturating_sub(ORDER - 1)..i], tokens[i]).ln()).sum()
    }

    /// The interpolation of one level with the probability of the level below.
    fn mixed(&self, at: usize, range: Range<usize>, mass: Mass, token: u32, lower: f64) -> f64 {
        if range.is_empty() {
            return lower;
        }
        let level = &self.levels[at];
        let found = level.tokens[range.clone()].binary_search(&token).ok();
        let own = found.map_or(0.0, |i| {
            let count = level.counts[range.start + i];
            f64::from(count) - discount(&level.discounts, count)
        });
        (own + mass.discounted * lower) / mass.total
    }

    fn mass(&self, at: usize, range: Range<usize>) -> Mass {
        let level = &self.levels[at];
        level.counts[range].iter().fold(Mass::default(), |mass, count| Mass {
            total: mass.total + f64::from(*count),
            discounted: mass.discounted + discount(&level.discounts, *count),
        })
    }

    /// Where the n-grams that extend `context` lie on the next level; none when it was never seen.
    fn extensions(&self, context: &[u32]) -> Option<Range<usize>> {
        let mut range = 0..self.levels[0].tokens.len();
        for (level, token) in self.levels.iter().zip(context) {
            let at = range.start + level.tokens[range.clone()].binary_search(token).ok()?;
            range = level.starts[at] as usize..level.starts[at + 1] as usize;
        }
        Some(range)
    }
}

/// `stream` up to the end of its last whole document; all of it when it holds none.
fn whole_documents(stream: &[u32], end_of_text: u32) -> &[u32] {
    let end = stream.iter().rposition(|token| *token == end_of_text).map_or(stream.len(), |at| at + 1);
    &stream[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Two streams of documents of 0 to 9 tokens over 1..=6 of a vocabulary of 8, with some repetition.
    fn streams() -> [Vec<u32>; 2] {
        [1, 2].map(|seed| {
            let stream = Stream::new(seed, "tokens");
            let mut tokens: Vec<u32> = (0..400)
                .map(
                    |i| if i > 3 && stream.below(i, 3) > 0 { (i % 5) as u32 } else { stream.below(i + 1000, 7) as u32 },
                )
                .collect();
            tokens.push(0);
            tokens
        })
    }

    #[test]
    fn probabilities_sum_to_one_after_any_context() {
        let streams = streams();
        let model = Ngram::train(&[&streams[0], &streams[1]], 8, 0);
        let draw = Stream::new(3, "contexts");
        for i in 0..600u64 {
            let length = i % 6;
            let context: Vec<u32> = (0..length).map(|j| draw.below(8 * i + j, 8) as u32).collect();
            let all: Vec<f64> = (0..8).map(|token| model.probability(&context, token)).collect();
            assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{context:?}: {all:?}");
            assert!(all.iter().all(|p| *p > 0.0), "{context:?}: {all:?}");
        }
        assert!(model.nats(&[0, 7, 7, 1]).is_finite(), "7 was never seen");
    }

    #[test]
    fn agrees_with_a_calculation_by_hand() {
        // Twice the document `1 2`; every order falls back to the discounts 0.5, 1, 1.5.
        let model = Ngram::train(&[&[1, 2, 0, 1, 2, 0]], 3, 0);
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        close(model.probability(&[], 1), 1.0 / 3.0);
        close(model.probability(&[0], 1), 0.5 + 0.5 / 3.0); // starts a document: its count 2 is kept
        close(model.probability(&[1], 2), 0.5 + 0.5 / 3.0); // one token was seen before it
        close(model.probability(&[0, 1], 2), 0.5 + 0.5 * (2.0 / 3.0));
        close(model.probability(&[2, 1], 2), 2.0 / 3.0); // an unseen context backs off at no cost
        close(model.nats(&[0, 1, 2]), -(2.0f64 / 3.0).ln() - (5.0f64 / 6.0).ln());
        assert_eq!(model.tokens(), 6);
    }

    #[test]
    fn nothing_seen_knows_nothing() {
        let model = Ngram::train(&[&[]], 5, 0);
        assert_eq!(model.probability(&[1, 2], 3), 0.2);
    }

    #[test]
    fn longer_orders_help_on_text_with_longer_patterns_and_the_limit_cuts_whole_documents() {
        let tokens: Vec<u32> = (0..4000).map(|i| [1, 2, 1, 3, 1, 4, 0][i % 7]).collect();
        let model = Ngram::train(&[&tokens], 5, 0);
        assert!(model.nats(&[0, 1, 2, 1, 3, 1, 4, 0]) < 0.1, "{}", model.nats(&[0, 1, 2, 1, 3, 1, 4, 0]));
        assert_eq!(Ngram::train_on(&[&tokens], 5, 0, 700).tokens(), 700);
        assert_eq!(Ngram::train_on(&[&tokens, &tokens], 5, 0, 1000).tokens(), 2 * 497);
    }
}
