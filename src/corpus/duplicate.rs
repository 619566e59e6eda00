//! Documents that say the same thing twice.
//!
//! Exact duplicates have the same normalised text. Near duplicates have sets of 5-character
//! shingles whose Jaccard similarity |A ∩ B| / |A ∪ B| reaches a threshold. Pairs to compare are
//! found by MinHash (A. Broder, "On the resemblance and containment of documents", 1997): the
//! smallest hash of two sets is equal with a probability of their similarity. The signature's
//! [`HASHES`] numbers are cut into bands (locality-sensitive hashing), and documents that share a
//! band are compared by their true sets, so that nothing below the threshold is ever dropped.
//!
//! Time grows with the characters and with the pairs found: of a band that very many documents
//! share (boilerplate), only the latest [`BUCKET`] are looked at, as a real near duplicate shares
//! rarer bands too. Memory is a signature and a few words
//! per kept document; shingle sets are made again for the pairs that need them.

use crate::artifact::hash_bytes;
use crate::rng::Stream;
use rayon::prelude::*;
use std::collections::HashMap;

/// Characters of a shingle.
pub const SHINGLE: usize = 5;
/// Numbers of a signature.
pub const HASHES: usize = 128;
/// Documents whose signatures are made at a time.
const CHUNK: usize = 1024;
/// Probability with which a pair at the threshold must share a band.
const RECALL: f64 = 0.999;
/// How far below the threshold the signatures' estimate may be before the sets are not compared:
/// more than four standard deviations, √(0.25 / 128) = 0.044 each.
const SLACK: f64 = 0.18;
/// Documents of one band's value that a new document is compared with, at most.
pub const BUCKET: usize = 256;
const NONE: u32 = u32::MAX;

/// For each text, the index of the earlier equal text, if there is one.
pub fn exact(texts: &[&str]) -> Vec<Option<usize>> {
    let hashes: Vec<_> = texts.par_iter().map(|text| hash_bytes(text.as_bytes())).collect();
    let mut first = HashMap::with_capacity(texts.len());
    let earlier = |(i, hash)| {
        let original = *first.entry(hash).or_insert(i);
        (original != i).then_some(original)
    };
    hashes.into_iter().enumerate().map(earlier).collect()
}

/// For each text, the index of an earlier kept text whose similarity is at least `threshold`, if
/// there is one; a text without one is kept. The first in order stays.
///
/// `threshold` is a Jaccard similarity above 0 and up to 1.
pub fn near(texts: &[&str], threshold: f64) -> Vec<Option<usize>> {
    let hasher = MinHash::new();
    let mut index = Index::new(threshold);
    let mut result = Vec::with_capacity(texts.len());
    for (chunk, part) in texts.chunks(CHUNK).enumerate() {
        let signatures: Vec<Signature> = part.par_iter().map(|text| hasher.signature(&shingles(text))).collect();
        for (i, signature) in signatures.into_iter().enumerate() {
            let document = chunk * CHUNK + i;
            let original = index.find(texts, document, &signature);
            if original.is_none() {
                index.insert(document, signature);
            }
            result.push(original);
        }
    }
    result
}

/// The set of hashed shingles of `text`, sorted; a shorter text is one shingle.
fn shingles(text: &str) -> Vec<u64> {
    let characters: Vec<char> = text.chars().collect();
    let size = SHINGLE.min(characters.len()).max(1);
    let mut set: Vec<u64> = characters.windows(size).map(hash_shingle).collect();
    set.sort_unstable();
    set.dedup();
    set
}

/// A bijective mix at each step, so that a single changed character always changes the hash.
fn hash_shingle(characters: &[char]) -> u64 {
    characters.iter().fold(0x9E37_79B9_7F4A_7C15, |hash, &c| mix(hash ^ u64::from(c as u32)))
}

/// The finaliser of SplitMix64 (G. Steele et al., OOPSLA 2014).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The Jaccard similarity of the shingle sets of two texts, from 0 to 1.
pub fn similarity(a: &str, b: &str) -> f64 {
    jaccard(&shingles(a), &shingles(b))
}

fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        common += usize::from(a[i] == b[j]);
        let (x, y) = (a[i], b[j]);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    let all = a.len() + b.len() - common;
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}

type Signature = Box<[u32; HASHES]>;

struct MinHash {
    multiply: [u32; HASHES],
    add: [u32; HASHES],
}

impl MinHash {
    fn new() -> Self {
        // A fixed stream: what counts as a duplicate must not depend on the run's seed.
        let stream = Stream::new(0, "minhash");
        let multiply = std::array::from_fn(|i| stream.bits(2 * i as u64) as u32 | 1);
        let add = std::array::from_fn(|i| stream.bits(2 * i as u64 + 1) as u32);
        MinHash { multiply, add }
    }

    /// The smallest value of each hash over the set.
    fn signature(&self, set: &[u64]) -> Signature {
        let mut smallest = Box::new([u32::MAX; HASHES]);
        for &shingle in set {
            let x = (shingle >> 32) as u32;
            for ((low, m), a) in smallest.iter_mut().zip(&self.multiply).zip(&self.add) {
                *low = (*low).min(x.wrapping_mul(*m).wrapping_add(*a));
            }
        }
        smallest
    }
}

/// Rows of a band: as many as still bring a pair at the threshold together with [`RECALL`].
fn band_rows(threshold: f64) -> usize {
    let recall = |rows: i32| 1.0 - (1.0 - threshold.powi(rows)).powi(HASHES as i32 / rows);
    [16, 8, 4, 2].into_iter().find(|&rows| recall(rows) >= RECALL).unwrap_or(1) as usize
}

/// The kept documents by band: for each band's value the last document with it, and from each
/// document the one before it.
struct Index {
    threshold: f64,
    rows: usize,
    signatures: Vec<(usize, Signature)>,
    last: HashMap<u64, u32>,
    previous: Vec<u32>,
}

impl Index {
    fn new(threshold: f64) -> Self {
        let rows = band_rows(threshold);
        Index { threshold, rows, signatures: Vec::new(), last: HashMap::new(), previous: Vec::new() }
    }

    fn bands(&self, signature: &Signature) -> Vec<u64> {
        let key =
            |(band, rows): (usize, &[u32])| rows.iter().fold(band as u64, |key, &row| mix(key ^ mix(u64::from(row))));
        signature.chunks(self.rows).enumerate().map(key).collect()
    }

    /// The first kept document that is a near duplicate of `document`.
    fn find(&self, texts: &[&str], document: usize, signature: &Signature) -> Option<usize> {
        let count = HASHES / self.rows;
        let mut candidates: Vec<u32> = Vec::new();
        for (band, key) in self.bands(signature).into_iter().enumerate() {
            let mut kept = self.last.get(&key).copied().unwrap_or(NONE);
            for _ in 0..BUCKET {
                if kept == NONE {
                    break;
                }
                candidates.push(kept);
                kept = self.previous[kept as usize * count + band];
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        let mut own = None;
        candidates.into_iter().find_map(|kept| {
            let (original, other) = &self.signatures[kept as usize];
            let equal = signature.iter().zip(other.iter()).filter(|(a, b)| a == b).count();
            if (equal as f64) < (self.threshold - SLACK) * HASHES as f64 {
                return None;
            }
            let own = own.get_or_insert_with(|| shingles(texts[document]));
            (jaccard(own, &shingles(texts[*original])) >= self.threshold).then_some(*original)
        })
    }

    fn insert(&mut self, document: usize, signature: Signature) {
        let kept = self.signatures.len() as u32;
        for key in self.bands(&signature) {
            self.previous.push(self.last.insert(key, kept).unwrap_or(NONE));
        }
        self.signatures.push((document, signature));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_points_at_the_first() {
        assert_eq!(exact(&["a", "b", "a", "c", "b", "a"]), [None, None, Some(0), None, Some(1), Some(0)]);
        assert_eq!(exact(&[]), []);
    }

    #[test]
    fn similarity_is_that_of_shingle_sets() {
        // abcde bcdef | abcde bcdeg: one of three.
        assert!((similarity("abcdef", "abcdeg") - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(similarity("abc", "abc"), 1.0);
        assert_eq!(similarity("abc", "abd"), 0.0);
        assert_eq!(similarity("", ""), 1.0);
    }

    fn words(stream: &Stream, from: u64, count: u64) -> String {
        (from..from + count).map(|i| format!("{:x} ", stream.below(i, 1 << 20))).collect()
    }

    #[test]
    fn near_finds_small_changes_and_leaves_large_ones() {
        let stream = Stream::new(1, "near");
        let base = words(&stream, 0, 200);
        let close = base.replacen(' ', " x", 2);
        let far = format!("{}{}", &base[..base.len() / 2], words(&stream, 500, 100));
        assert!(similarity(&base, &close) > 0.9 && similarity(&base, &far) < 0.6);
        assert_eq!(near(&[&base, &far, &close, &base], 0.8), [None, None, Some(0), Some(0)]);
    }

    #[test]
    fn agrees_with_comparing_all_pairs() {
        let stream = Stream::new(2, "pairs");
        let texts: Vec<String> = (0..240)
            .map(|i| {
                let (family, kept) = (i % 40, 30 - i / 40 * 2);
                words(&stream, family * 1000, kept) + &words(&stream, 1_000_000 + i * 100, 30 - kept)
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut kept: Vec<usize> = Vec::new();
        let mut slow = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let original = kept.iter().copied().find(|&k| similarity(texts[k], text) >= 0.7);
            if original.is_none() {
                kept.push(i);
            }
            slow.push(original);
        }
        assert!(kept.len() > 40 && kept.len() < 200, "{}", kept.len());
        assert_eq!(near(&texts, 0.7), slow);
    }

    #[test]
    fn boilerplate_hides_no_duplicate() {
        let stream = Stream::new(3, "boilerplate");
        let head = words(&stream, 0, 40);
        let mut texts: Vec<String> = (1..2000).map(|i| head.clone() + &words(&stream, i * 100, 25)).collect();
        texts.push(texts[5].replacen(' ', " x", 3));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = near(&texts, 0.8);
        assert_eq!(found.iter().flatten().count(), 1);
        assert_eq!(found[1999], Some(5));
    }

    #[test]
    fn bands_keep_the_recall() {
        assert_eq!([0.1, 0.5, 0.8, 0.95, 1.0].map(band_rows), [1, 2, 4, 8, 16]);
    }
}
