//! Documents that say the same thing twice.
//!
//! Exact duplicates have the same normalised text, and are dropped as they are read. Near duplicates have sets of 5-character
//! shingles whose Jaccard similarity |A ∩ B| / |A ∪ B| reaches a threshold. Pairs to compare are
//! found by MinHash (A. Broder, "On the resemblance and containment of documents", 1997): the
//! smallest hash of two sets is equal with a probability of their similarity. The signature's
//! [`HASHES`] numbers are cut into bands (locality-sensitive hashing), and documents that share a
//! band are compared by their true sets, so that nothing below the threshold is ever dropped.
//!
//! Time grows with the characters and with the pairs found: of a band that very many documents
//! share (boilerplate), only the latest [`BUCKET`] are looked at, as a real near duplicate shares
//! rarer bands too. In memory are some bytes per
//! document, and a signature for those of them that share a band with another, up to a limit; the rest lies
//! on the disk, and shingle sets are made again for the pairs that need them.

use super::CorpusError;
use super::lines::chunks;
use super::prepare::texts;
use super::spool::{Records, Spool};
use crate::rng::Stream;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Characters of a shingle.
pub const SHINGLE: usize = 5;
/// Numbers of a signature.
pub const HASHES: usize = 128;
/// Probability with which a pair at the threshold must share a band.
const RECALL: f64 = 0.999;
/// How far below the threshold the signatures' estimate may be before the sets are not compared:
/// more than four standard deviations, √(0.25 / 128) = 0.044 each.
const SLACK: f64 = 0.18;
/// Documents of one band's value that a new document is compared with, at most.
pub const BUCKET: usize = 256;
const NONE: u32 = u32::MAX;

/// Texts that are looked at twice: once for their signatures, once for those that may have a twin.
pub(super) trait Texts {
    /// How many.
    fn count(&self) -> usize;
    /// One of them.
    fn text(&self, i: usize) -> Result<Cow<'_, str>, CorpusError>;
    /// All of them, in order, some at a time.
    fn each_chunk(&self, f: &mut dyn FnMut(&[&str]) -> Result<(), CorpusError>) -> Result<(), CorpusError>;
}

impl Texts for [&str] {
    fn count(&self) -> usize {
        self.len()
    }

    fn text(&self, i: usize) -> Result<Cow<'_, str>, CorpusError> {
        Ok(Cow::Borrowed(self[i]))
    }

    fn each_chunk(&self, f: &mut dyn FnMut(&[&str]) -> Result<(), CorpusError>) -> Result<(), CorpusError> {
        self.chunks(1024).try_for_each(f)
    }
}

impl Texts for Spool {
    fn count(&self) -> usize {
        self.len()
    }

    fn text(&self, i: usize) -> Result<Cow<'_, str>, CorpusError> {
        Ok(Cow::Owned(self.get(i)?.text))
    }

    fn each_chunk(&self, f: &mut dyn FnMut(&[&str]) -> Result<(), CorpusError>) -> Result<(), CorpusError> {
        chunks(self.documents()?).try_for_each(|chunk| f(&texts(&chunk?)))
    }
}

/// For each text, the index of an earlier kept text whose similarity is at least `threshold`, if
/// there is one; a text without one is kept. The first in order stays.
///
/// `threshold` is a Jaccard similarity above 0 and up to 1.
///
/// # Errors
/// [`CorpusError::File`] when the folder for temporary files cannot be written.
pub fn near(texts: &[&str], threshold: f64) -> Result<Vec<Option<u32>>, CorpusError> {
    near_in(texts, threshold, &std::env::temp_dir())
}

/// As [`near`], for texts that may be more than the memory holds; `directory` is for unnamed files.
pub(super) fn near_in<T: Texts + ?Sized>(
    texts: &T,
    threshold: f64,
    directory: &Path,
) -> Result<Vec<Option<u32>>, CorpusError> {
    let hasher = MinHash::new();
    let twins = Twins::find(texts, &hasher, band_rows(threshold), directory)?;
    let mut index = Index::new(threshold, twins.shared, directory)?;
    let mut result = Vec::with_capacity(texts.count());
    texts.each_chunk(&mut |part| {
        let first = result.len();
        let may_have = |(i, text): (usize, &&str)| twins.may_have[first + i].then(|| hasher.signature(&shingles(text)));
        let signatures: Vec<Option<Signature>> = part.par_iter().enumerate().map(may_have).collect();
        for (i, signature) in signatures.into_iter().enumerate() {
            let Some(signature) = signature else {
                result.push(None);
                continue;
            };
            let original = index.find(texts, part[i], &signature)?;
            if original.is_none() {
                index.insert((first + i) as u32, signature)?;
            }
            result.push(original);
        }
        Ok(())
    })?;
    Ok(result)
}

fn bands(signature: &Signature, rows: usize) -> impl Iterator<Item = u64> {
    let key = |(band, rows): (usize, &[u32])| rows.iter().fold(band as u64, |key, &row| mix(key ^ mix(u64::from(row))));
    signature.chunks(rows).enumerate().map(key)
}

/// Which bands' values occur more than once, and which texts have one: all others have no near duplicate,
/// and nothing of them is remembered.
struct Twins {
    shared: HashSet<u64>,
    may_have: Vec<bool>,
}

impl Twins {
    /// Writes the bands' values of all texts to the disk and looks at one band at a time.
    fn find<T: Texts + ?Sized>(
        texts: &T,
        hasher: &MinHash,
        rows: usize,
        directory: &Path,
    ) -> Result<Self, CorpusError> {
        let count = HASHES / rows;
        let mut keys = Records::create(directory, size_of::<u64>())?;
        let mut blocks = Vec::new();
        texts.each_chunk(&mut |part| {
            let of = |text: &&str| bands(&hasher.signature(&shingles(text)), rows).collect::<Vec<u64>>();
            let made: Vec<Vec<u64>> = part.par_iter().map(of).collect();
            blocks.push(part.len());
            (0..count).try_for_each(|band| made.iter().try_for_each(|keys_of| keys.push(&keys_of[band].to_le_bytes())))
        })?;
        let mut twins = Twins { shared: HashSet::new(), may_have: vec![false; texts.count()] };
        for band in 0..count {
            let (mut start, mut values) = (0, Vec::with_capacity(texts.count()));
            for &length in &blocks {
                let bytes = keys.read(start + band * length, length)?;
                values.extend(bytes.chunks_exact(8).map(|b| u64::from_le_bytes(std::array::from_fn(|i| b[i]))));
                start += count * length;
            }
            twins.add(&values);
        }
        Ok(twins)
    }

    fn add(&mut self, values: &[u64]) {
        let mut sorted = values.to_vec();
        sorted.par_sort_unstable();
        self.shared.extend(sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        for (may_have, value) in self.may_have.iter_mut().zip(values) {
            *may_have |= self.shared.contains(value);
        }
    }
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

/// Signatures that are kept in memory; those of more texts lie on the disk.
const IN_MEMORY: usize = 1 << 18;

/// The kept documents by band, for the values that more than one text has: for each the last document with
/// it, and from each the one before it.
struct Index {
    threshold: f64,
    rows: usize,
    shared: HashSet<u64>,
    /// The texts that are indexed, and their signatures.
    documents: Vec<u32>,
    signatures: Vec<Signature>,
    more: Records,
    last: HashMap<u64, u32>,
    /// An indexed document and the link before it.
    links: Vec<(u32, u32)>,
}

impl Index {
    fn new(threshold: f64, shared: HashSet<u64>, directory: &Path) -> Result<Self, CorpusError> {
        Ok(Index {
            threshold,
            rows: band_rows(threshold),
            shared,
            documents: Vec::new(),
            signatures: Vec::new(),
            more: Records::create(directory, size_of::<[u32; HASHES]>())?,
            last: HashMap::new(),
            links: Vec::new(),
        })
    }

    /// The first kept document that is a near duplicate of `text`.
    fn find<T: Texts + ?Sized>(
        &mut self,
        texts: &T,
        text: &str,
        signature: &Signature,
    ) -> Result<Option<u32>, CorpusError> {
        let mut candidates: Vec<u32> = Vec::new();
        for key in bands(signature, self.rows) {
            let mut link = self.last.get(&key).copied().unwrap_or(NONE);
            for _ in 0..BUCKET {
                if link == NONE {
                    break;
                }
                let (kept, before) = self.links[link as usize];
                candidates.push(kept);
                link = before;
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        let mut own = None;
        for kept in candidates {
            let equal = self.equal(kept as usize, signature)?;
            if (equal as f64) < (self.threshold - SLACK) * HASHES as f64 {
                continue;
            }
            let own = own.get_or_insert_with(|| shingles(text));
            let original = self.documents[kept as usize];
            if jaccard(own, &shingles(&texts.text(original as usize)?)) >= self.threshold {
                return Ok(Some(original));
            }
        }
        Ok(None)
    }

    /// How many numbers of the signature are those of an indexed document.
    fn equal(&mut self, kept: usize, signature: &Signature) -> Result<usize, CorpusError> {
        if let Some(other) = self.signatures.get(kept) {
            return Ok(signature.iter().zip(other.iter()).filter(|(a, b)| a == b).count());
        }
        let bytes = self.more.read(kept - IN_MEMORY, 1)?;
        let other = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(std::array::from_fn(|i| b[i])));
        Ok(signature.iter().zip(other).filter(|(a, b)| **a == *b).count())
    }

    fn insert(&mut self, document: u32, signature: Signature) -> Result<(), CorpusError> {
        let kept = self.documents.len() as u32;
        for key in bands(&signature, self.rows).filter(|key| self.shared.contains(key)) {
            let link = self.links.len() as u32;
            self.links.push((kept, self.last.insert(key, link).unwrap_or(NONE)));
        }
        self.documents.push(document);
        if self.signatures.len() < IN_MEMORY {
            self.signatures.push(signature);
            return Ok(());
        }
        self.more.push(&signature.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(near(&[&base, &far, &close, &base], 0.8).unwrap(), [None, None, Some(0), Some(0)]);
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
        let mut kept: Vec<u32> = Vec::new();
        let mut slow = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let original = kept.iter().copied().find(|&k| similarity(texts[k as usize], text) >= 0.7);
            if original.is_none() {
                kept.push(i as u32);
            }
            slow.push(original);
        }
        assert!(kept.len() > 40 && kept.len() < 200, "{}", kept.len());
        assert_eq!(near(&texts, 0.7).unwrap(), slow);
    }

    #[test]
    fn boilerplate_hides_no_duplicate() {
        let stream = Stream::new(3, "boilerplate");
        let head = words(&stream, 0, 40);
        let mut texts: Vec<String> = (1..2000).map(|i| head.clone() + &words(&stream, i * 100, 25)).collect();
        texts.push(texts[5].replacen(' ', " x", 3));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = near(&texts, 0.8).unwrap();
        assert_eq!(found.iter().flatten().count(), 1);
        assert_eq!(found[1999], Some(5));
    }

    #[test]
    fn bands_keep_the_recall() {
        assert_eq!([0.1, 0.5, 0.8, 0.95, 1.0].map(band_rows), [1, 2, 4, 8, 16]);
    }
}
