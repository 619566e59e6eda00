//! Intervals by resampling texts: tokens of one text are not independent, texts nearly are.

use crate::rng::Stream;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A value with its 95 % bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The value on all texts.
    pub value: f64,
    /// 2.5 % of the resamples lie below.
    pub low: f64,
    /// 2.5 % of the resamples lie above.
    pub high: f64,
}

/// Σ`over` / Σ`under` over texts, with the percentile interval of `resamples` resamples of texts
/// (B. Efron, R. Tibshirani 1993, chapter 13). The same `seed` draws the same texts, so differences of
/// two models are paired.
///
/// # Panics
/// When the lengths differ or nothing is given.
pub fn ratio_interval(over: &[f64], under: &[f64], resamples: usize, seed: u64) -> Interval {
    assert!(over.len() == under.len() && !over.is_empty() && resamples > 0, "one pair a text");
    let n = over.len() as u64;
    let stream = Stream::new(seed, "bootstrap");
    let resample = |r: usize| {
        let picks = (0..n).map(|i| stream.below(r as u64 * n + i, n) as usize);
        let (a, b) = picks.fold((0.0, 0.0), |(a, b), i| (a + over[i], b + under[i]));
        a / b
    };
    let mut values: Vec<f64> = (0..resamples).into_par_iter().map(resample).collect();
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[(q * (resamples - 1) as f64).round() as usize];
    Interval { value: over.iter().sum::<f64>() / under.iter().sum::<f64>(), low: at(0.025), high: at(0.975) }
}

/// The 95 % interval of a share by E. B. Wilson (J. Am. Stat. Assoc. 22, 1927), from `hits` of `trials`; `[0, 1]`
/// when there were none. It takes the trials for independent.
pub fn wilson(hits: usize, trials: usize) -> [f64; 2] {
    if trials == 0 {
        return [0.0, 1.0];
    }
    const Z: f64 = 1.959_963_984_540_054;
    let (n, share) = (trials as f64, hits as f64 / trials as f64);
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    [((middle - half) / scale).clamp(0.0, share), ((middle + half) / scale).clamp(share, 1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_gives_the_textbook_intervals() {
        let close = |found: [f64; 2], expected: [f64; 2]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 5e-4);
        assert!(close(wilson(10, 100), [0.0552, 0.1744]), "{:?}", wilson(10, 100));
        assert!(close(wilson(0, 360), [0.0, 0.0106]), "{:?}", wilson(0, 360));
        assert!(close(wilson(20, 20), [0.8389, 1.0]), "{:?}", wilson(20, 20));
        assert_eq!(wilson(0, 0), [0.0, 1.0]);
    }

    #[test]
    fn covers_the_truth_about_as_often_as_it_says() {
        let mut inside = 0;
        for trial in 0..200 {
            let stream = Stream::new(trial, "sample");
            let over: Vec<f64> = (0..60).map(|i| 5.0 + stream.normal(i)).collect();
            let interval = ratio_interval(&over, &[1.0; 60], 300, trial);
            inside += u32::from(interval.low <= 5.0 && 5.0 <= interval.high);
        }
        assert!((180..=198).contains(&inside), "{inside} of 200");
    }

    #[test]
    fn equal_documents_have_no_spread() {
        let interval = ratio_interval(&[6.0; 5], &[2.0; 5], 50, 1);
        assert_eq!((interval.low, interval.value, interval.high), (3.0, 3.0, 3.0));
    }
}
