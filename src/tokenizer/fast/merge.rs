//! Byte-pair merges of one piece: the pair of the lowest rank first, the leftmost of equal ones.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Pieces of more symbols use a heap; shorter ones are faster by looking at every pair again.
const SHORT: usize = 48;

/// No merge.
const NONE: u32 = u32::MAX;

/// A multiplicative hash of few machine words (Fibonacci hashing, D. Knuth vol. 3, 6.4): ids are small
/// and not chosen by an enemy.
#[derive(Default)]
pub(in crate::tokenizer) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(26) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Builds [`QuickHasher`]s.
pub(in crate::tokenizer) type Quick = BuildHasherDefault<QuickHasher>;

/// The merges of a vocabulary.
#[derive(Debug, Clone)]
pub(super) struct Merges {
    /// Rank and result of the merge of two ids.
    pairs: HashMap<u64, (u32, u32), Quick>,
}

/// Room that is used again for every piece.
#[derive(Debug, Default)]
pub(super) struct Room {
    ranks: Vec<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
    heap: BinaryHeap<Reverse<(u32, u32, u64)>>,
}

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

impl Merges {
    /// The table of `(left, right, result)` in the order of their ranks; a pair given twice keeps the later rank.
    pub(super) fn new(merges: impl Iterator<Item = (u32, u32, u32)>) -> Self {
        let ranked = merges.enumerate().map(|(rank, (left, right, id))| (key(left, right), (rank as u32, id)));
        Merges { pairs: ranked.collect() }
    }

    fn get(&self, left: u32, right: u32) -> (u32, u32) {
        self.pairs.get(&key(left, right)).copied().unwrap_or((NONE, 0))
    }

    /// Merges the ids of a piece's bytes as far as it goes.
    pub(super) fn apply(&self, ids: &mut Vec<u32>, room: &mut Room) {
        if ids.len() <= SHORT { self.scan(ids, room) } else { self.sift(ids, room) }
    }

    fn scan(&self, ids: &mut Vec<u32>, room: &mut Room) {
        let ranks = &mut room.ranks;
        ranks.clear();
        ranks.extend(ids.windows(2).map(|pair| self.get(pair[0], pair[1]).0));
        loop {
            let (mut best, mut at) = (NONE, 0);
            for (i, rank) in ranks.iter().enumerate() {
                if *rank < best {
                    (best, at) = (*rank, i);
                }
            }
            if best == NONE {
                return;
            }
            ids[at] = self.get(ids[at], ids[at + 1]).1;
            ids.remove(at + 1);
            ranks.remove(at);
            if at < ranks.len() {
                ranks[at] = self.get(ids[at], ids[at + 1]).0;
            }
            if at > 0 {
                ranks[at - 1] = self.get(ids[at - 1], ids[at]).0;
            }
        }
    }

    /// For long pieces: a linked list of symbols and a heap of the pairs that can be merged.
    fn sift(&self, ids: &mut Vec<u32>, room: &mut Room) {
        let n = ids.len() as u32;
        let Room { before, after, heap, .. } = room;
        before.clear();
        before.extend((0..n).map(|i| i.wrapping_sub(1)));
        after.clear();
        after.extend(1..=n);
        heap.clear();
        let offer = |heap: &mut BinaryHeap<_>, at: u32, left: u32, right: u32| {
            let (rank, _) = self.get(left, right);
            if rank != NONE {
                heap.push(Reverse((rank, at, key(left, right))));
            }
        };
        (0..n - 1).for_each(|i| offer(heap, i, ids[i as usize], ids[i as usize + 1]));
        while let Some(Reverse((_, at, pair))) = heap.pop() {
            let (left, next) = (at as usize, after[at as usize]);
            // A pair that is there no more: one of the two was merged before.
            if next >= n || ids[left] == NONE || key(ids[left], ids[next as usize]) != pair {
                continue;
            }
            ids[left] = self.get(ids[left], ids[next as usize]).1;
            ids[next as usize] = NONE;
            after[left] = after[next as usize];
            if after[left] < n {
                before[after[left] as usize] = at;
                offer(heap, at, ids[left], ids[after[left] as usize]);
            }
            if before[left] != NONE {
                offer(heap, before[left], ids[before[left] as usize], ids[left]);
            }
        }
        ids.retain(|id| *id != NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_lowest_rank_goes_first_and_the_leftmost_of_equals() {
        // ab, bc, (ab)c: rank decides, then place.
        let merges = Merges::new([(0, 1, 3), (1, 2, 4), (3, 2, 5)].into_iter());
        let apply = |ids: &[u32]| {
            let mut ids = ids.to_vec();
            merges.apply(&mut ids, &mut Room::default());
            ids
        };
        assert_eq!(apply(&[0, 1, 2]), [5]);
        assert_eq!(apply(&[1, 2]), [4]);
        assert_eq!(apply(&[0, 0, 1, 1, 2]), [0, 3, 4]);
        let twice = Merges::new([(0, 0, 1)].into_iter());
        let mut ids = vec![0, 0, 0];
        twice.apply(&mut ids, &mut Room::default());
        assert_eq!(ids, [1, 0]);
    }

    #[test]
    fn scanning_and_sifting_agree() {
        let stream = Stream::new(5, "merges");
        let merges: Vec<(u32, u32, u32)> = (0..60)
            .map(|i| (stream.below(2 * i, 4 + i) as u32, stream.below(2 * i + 1, 4 + i) as u32, 4 + i as u32))
            .collect();
        let merges = Merges::new(merges.into_iter());
        for trial in 0..300u64 {
            let length = 1 + stream.below(1000 + trial, 60);
            let mut scanned: Vec<u32> = (0..length).map(|i| stream.below(10_000 + trial * 64 + i, 4) as u32).collect();
            let mut sifted = scanned.clone();
            merges.scan(&mut scanned, &mut Room::default());
            merges.sift(&mut sifted, &mut Room::default());
            assert_eq!(scanned, sifted);
        }
    }
}
