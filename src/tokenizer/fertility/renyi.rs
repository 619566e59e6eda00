//! Rényi efficiency: how evenly a tokenizer uses its vocabulary.

use super::count::Counts;
use crate::rng::Stream;
use crate::statistics::Interval;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The order at which the efficiency goes best with the quality of translations (V. Zouhar et al. 2023,
/// "Tokenization and the Noiseless Channel").
pub const ALPHA: f64 = 2.5;

/// Resamples of the bootstrap: each counts every token again.
const RESAMPLES: usize = 200;

/// Rényi entropy of order `alpha` of the token distribution over the logarithm of the vocabulary's
/// size: (ln Σ pᵅ / (1 − α)) / ln V (V. Zouhar et al. 2023, definitions 3.3 and 3.4). 1 when all tokens
/// are used alike; `counts` are occurrences.
///
/// # Panics
/// When `alpha` is 1.
pub fn efficiency(counts: impl Iterator<Item = u64>, vocabulary: usize, alpha: f64) -> f64 {
    assert!(alpha != 1.0, "the order 1 is Shannon's and has another formula");
    let counts: Vec<f64> = counts.filter(|count| *count > 0).map(|count| count as f64).collect();
    let all: f64 = counts.iter().sum();
    let power: f64 = counts.iter().map(|count| (count / all).powf(alpha)).sum();
    power.ln() / (1.0 - alpha) / (vocabulary.max(2) as f64).ln()
}

/// The efficiency over all blocks of texts with the percentile interval of resampled blocks. The
/// interval is moved to lie around the value: a resample repeats texts, so it looks less even than the
/// text it is drawn from, and the median of the resamples is taken for what the value has become.
pub(super) fn interval(blocks: &[Counts], vocabulary: usize) -> Interval {
    let mut ids: BTreeMap<u32, usize> = BTreeMap::new();
    for id in blocks.iter().flat_map(|block| block.of_token.keys()) {
        let next = ids.len();
        ids.entry(*id).or_insert(next);
    }
    let sparse: Vec<Vec<(usize, u64)>> =
        blocks.iter().map(|block| block.of_token.iter().map(|(id, count)| (ids[id], *count)).collect()).collect();
    let over = |picks: &mut dyn Iterator<Item = usize>| {
        let mut counts = vec![0; ids.len()];
        picks.for_each(|block| sparse[block].iter().for_each(|(at, count)| counts[*at] += count));
        efficiency(counts.into_iter(), vocabulary, ALPHA)
    };
    let n = blocks.len() as u64;
    let stream = Stream::new(0, "bootstrap");
    let resample = |r: usize| over(&mut (0..n).map(|i| stream.below(r as u64 * n + i, n) as usize));
    let mut values: Vec<f64> = (0..RESAMPLES).into_par_iter().map(resample).collect();
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[(q * (RESAMPLES - 1) as f64).round() as usize];
    let value = over(&mut (0..blocks.len()));
    let shift = value - at(0.5);
    Interval { value, low: at(0.025) + shift, high: at(0.975) + shift }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_use_is_one_and_uneven_use_is_the_formula() {
        let even = efficiency([7; 4].into_iter(), 4, ALPHA);
        assert!((even - 1.0).abs() < 1e-12, "{even}");
        // p = (3/4, 1/4): ln(0.75^2.5 + 0.25^2.5) / -1.5 / ln 2
        let uneven = efficiency([3, 1, 0].into_iter(), 2, ALPHA);
        assert!((uneven - 0.631_928).abs() < 1e-5, "{uneven}");
        let rare = efficiency([5].into_iter(), 100, ALPHA);
        assert!(rare.abs() < 1e-12, "one token for everything says nothing: {rare}");
    }

    #[test]
    fn equal_texts_have_no_spread() {
        let block = Counts { of_token: BTreeMap::from([(3, 2), (9, 2)]), ..Counts::default() };
        let found = interval(&[block.clone(), block], 4);
        assert!((found.value - 0.5).abs() < 1e-12 && found.high - found.low < 1e-12, "{found:?}");
    }
}
