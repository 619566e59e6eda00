//! The tables of an n-gram model: packed n-grams, sorted and counted, and the discounts of their counts.

use super::ORDER;
use rayon::prelude::*;

/// Bits of a token in a packed n-gram: five fit into 128.
pub(super) const BITS: u32 = 25;

/// Discounts of n-grams seen once, twice and more often.
pub(super) type Discounts = [f64; 3];

/// Used where an order has too few n-grams to estimate its own from.
const FALLBACK: Discounts = [0.5, 1.0, 1.5];

/// The n-grams of one order as one level of a trie, sorted.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// The last token of each n-gram.
    pub tokens: Vec<u32>,
    /// Its adjusted count.
    pub counts: Vec<u32>,
    /// Where the n-grams that extend it start on the next level; one more at the end.
    pub starts: Vec<u32>,
    pub discounts: Discounts,
}

pub(super) fn discount(discounts: &Discounts, count: u32) -> f64 {
    discounts[(count as usize).clamp(1, 3) - 1]
}

/// Every n-gram of the highest order, and those of each lower order that start a document, packed.
pub(super) fn grams(streams: &[&[u32]], end_of_text: u32) -> (Vec<u128>, [Vec<u128>; ORDER]) {
    let pack = |gram: &[u32]| gram.iter().fold(0u128, |key, token| key << BITS | u128::from(*token));
    let (mut highest, mut starts) = (Vec::new(), [const { Vec::new() }; ORDER]);
    let mut sequence = Vec::new();
    for stream in streams.iter().filter(|stream| !stream.is_empty()) {
        let body = stream.strip_suffix(&[end_of_text]).unwrap_or(stream);
        for document in body.split(|token| *token == end_of_text) {
            sequence.clear();
            sequence.push(end_of_text);
            sequence.extend_from_slice(document);
            sequence.push(end_of_text);
            highest.extend(sequence.windows(ORDER).map(pack));
            for (length, starts) in starts.iter_mut().enumerate().take(sequence.len() + 1).skip(2) {
                starts.push(pack(&sequence[..length]));
            }
        }
    }
    (highest, starts)
}

/// Sorted different keys and how often each occurs.
pub(super) fn counted(mut keys: Vec<u128>) -> (Vec<u128>, Vec<u32>) {
    keys.par_sort_unstable();
    let mut counts: Vec<u32> = Vec::new();
    let mut kept = 0;
    for i in 0..keys.len() {
        if i > 0 && keys[i] == keys[kept - 1] {
            counts[kept - 1] += 1;
        } else {
            keys[kept] = keys[i];
            kept += 1;
            counts.push(1);
        }
    }
    keys.truncate(kept);
    keys.shrink_to_fit();
    (keys, counts)
}

pub(super) fn level(keys: &[u128], counts: Vec<u32>, longer: &[u128]) -> Level {
    let tokens = keys.iter().map(|key| (key & ((1 << BITS) - 1)) as u32).collect();
    let mut starts = Vec::with_capacity(keys.len() + 1);
    let mut at = 0;
    for key in keys {
        starts.push(at as u32);
        at += longer[at..].iter().take_while(|long| **long >> BITS == *key).count();
    }
    starts.push(at as u32);
    Level { tokens, discounts: discounts(&counts), counts, starts }
}

/// D₁, D₂, D₃₊ of an order from how many n-grams have the counts 1 to 4 (Chen & Goodman 1999,
/// equation 17): Y = n₁/(n₁ + 2n₂), `Dᵢ` = i − (i + 1) Y nᵢ₊₁/nᵢ.
fn discounts(counts: &[u32]) -> Discounts {
    let n: [f64; 4] = std::array::from_fn(|i| counts.iter().filter(|c| **c as usize == i + 1).count() as f64);
    let y = n[0] / (n[0] + 2.0 * n[1]);
    let d: Discounts = std::array::from_fn(|i| (i + 1) as f64 - (i + 2) as f64 * y * n[i + 1] / n[i]);
    let usable = d.iter().enumerate().all(|(i, d)| *d > 0.0 && *d <= (i + 1) as f64) && n.iter().all(|n| *n > 0.0);
    if usable { d } else { FALLBACK }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discounts_follow_the_formula_where_they_can_be_estimated() {
        let counts: Vec<u32> = [(1, 100), (2, 40), (3, 20), (4, 10)]
            .into_iter()
            .flat_map(|(count, times)| std::iter::repeat_n(count, times))
            .collect();
        let y = 100.0 / 180.0;
        let expected = [1.0 - 2.0 * y * 0.4, 2.0 - 3.0 * y * 0.5, 3.0 - 4.0 * y * 0.5];
        assert!(discounts(&counts).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
        assert_eq!(discounts(&[1, 1, 2]), FALLBACK);
    }
}
