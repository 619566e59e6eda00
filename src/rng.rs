//! A seeded counter-based generator: the value at a position is a pure function of
//! (seed, stream, position), so there is no state to save, and no order to keep.
//!
//! The function is Philox4x32-10 of J. Salmon et al., "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011. Candle's own CPU generator cannot be seeded, which is why all randomness
//! of this project is drawn here.

use sha2::{Digest, Sha256};

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The Philox4x32-10 block function.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let low = u64::from(MULTIPLIER[0]) * u64::from(counter[0]);
        let high = u64::from(MULTIPLIER[1]) * u64::from(counter[2]);
        counter = [
            (high >> 32) as u32 ^ counter[1] ^ key[0],
            high as u32,
            (low >> 32) as u32 ^ counter[3] ^ key[1],
            low as u32,
        ];
    }
    counter
}

/// One named stream of random numbers under a seed.
///
/// Streams with different names are independent; the same (seed, name, position) gives the same
/// number on every machine and for every thread count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
    salt: [u32; 2],
}

impl Stream {
    /// The stream called `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        let digest = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(name).finalize();
        let word = |i: usize| u32::from_le_bytes([digest[i], digest[i + 1], digest[i + 2], digest[i + 3]]);
        Stream { key: [word(0), word(4)], salt: [word(8), word(12)] }
    }

    fn block(&self, position: u64) -> [u32; 4] {
        let [low, high] = [position as u32, (position >> 32) as u32];
        philox([low, high, self.salt[0], self.salt[1]], self.key)
    }

    /// 64 random bits at `position`.
    pub fn bits(&self, position: u64) -> u64 {
        let [a, b, ..] = self.block(position);
        u64::from(a) | u64::from(b) << 32
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn uniform(&self, position: u64) -> f64 {
        (self.bits(position) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A standard normal number (Box–Muller).
    pub fn normal(&self, position: u64) -> f64 {
        let [a, b, c, d] = self.block(position);
        let unit = |x: u32, y: u32| (((u64::from(x) | u64::from(y) << 32) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        (-2.0 * unit(a, b).ln()).sqrt() * (std::f64::consts::TAU * unit(c, d)).cos()
    }

    /// A number in `0..bound` (0 when `bound` is 0); the bias is below bound / 2^64.
    pub fn below(&self, position: u64, bound: u64) -> u64 {
        ((u128::from(self.bits(position)) * u128::from(bound)) >> 64) as u64
    }

    /// Shuffles in place (Fisher–Yates), using positions `0..items.len()`.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64, i as u64 + 1) as usize);
        }
    }

    /// Where `index` goes under a pseudo-random permutation of `0..count`, in constant memory:
    /// a four-round Feistel network over the next even power of two, walked until it lands inside.
    /// `index` must be below `count`.
    pub fn permute(&self, index: u64, count: u64) -> u64 {
        debug_assert!(index < count, "{index} is outside 0..{count}");
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        let half = bits.div_ceil(2).max(1);
        let mask = (1u64 << half) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> half, value & mask);
            for round in 0..4 {
                (left, right) = (right, left ^ (self.bits(right | round << 60) & mask));
            }
            value = left << half | right;
            if value < count {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn philox_gives_the_published_known_answers() {
        // Random123 distribution, kat_vectors, philox4x32 10.
        let all = u32::MAX;
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([all; 4], [all; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let stream = Stream::new(7, "moments");
        let n = 100_000;
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        assert!((mean(&|i| stream.uniform(i)) - 0.5).abs() < 0.005);
        assert!(mean(&|i| stream.normal(i)).abs() < 0.015);
        assert!((mean(&|i| stream.normal(i).powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&|i| stream.normal(i).powi(4)) - 3.0).abs() < 0.15);
    }

    #[test]
    fn seeds_and_names_separate_streams() {
        let first = Stream::new(1, "a").bits(0);
        assert_ne!(first, Stream::new(2, "a").bits(0));
        assert_ne!(first, Stream::new(1, "b").bits(0));
        assert_eq!(first, Stream::new(1, "a").bits(0));
    }

    proptest! {
        #[test]
        fn permute_is_a_permutation(seed: u64, count in 1u64..700) {
            let stream = Stream::new(seed, "permute");
            let mut seen: Vec<u64> = (0..count).map(|i| stream.permute(i, count)).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn shuffle_keeps_the_items(seed: u64, count in 0usize..100) {
            let mut items: Vec<usize> = (0..count).collect();
            Stream::new(seed, "shuffle").shuffle(&mut items);
            items.sort_unstable();
            prop_assert_eq!(items, (0..count).collect::<Vec<_>>());
        }

        #[test]
        fn below_stays_below(seed: u64, position: u64, bound in 1u64..) {
            prop_assert!(Stream::new(seed, "below").below(position, bound) < bound);
        }
    }
}
