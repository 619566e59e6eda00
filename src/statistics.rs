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
    let values = resampled(over, under, resamples, &Stream::new(seed, "bootstrap"));
    percentiles(over.iter().sum::<f64>() / under.iter().sum::<f64>(), values)
}

/// The difference of the ratios Σover / Σunder of two separate sets of texts, the first minus the second,
/// each a pair of (over, under), with its percentile interval: both sets are resampled, independently.
///
/// # Panics
/// As [`ratio_interval`].
pub fn ratio_difference_interval(
    first: (&[f64], &[f64]),
    second: (&[f64], &[f64]),
    resamples: usize,
    seed: u64,
) -> Interval {
    let draws = [(first, "bootstrap"), (second, "bootstrap of the second")];
    let [a, b] = draws.map(|((over, under), name)| resampled(over, under, resamples, &Stream::new(seed, name)));
    let ratio = |(over, under): (&[f64], &[f64])| over.iter().sum::<f64>() / under.iter().sum::<f64>();
    percentiles(ratio(first) - ratio(second), a.iter().zip(&b).map(|(a, b)| a - b).collect())
}

/// The mean over repetitions of Σ`over` / Σ`under`, where `over` has a row of texts for each repetition (a seed), with
/// the percentile interval when texts and repetitions are both resampled (the pigeonhole bootstrap, A. Owen, Ann.
/// Appl. Stat. 1, 2007). Few repetitions make it too narrow by about their number n as √((n−1)/n). The same `seed`
/// draws the same texts and repetitions.
///
/// # Panics
/// When the lengths differ or nothing is given.
pub fn crossed_interval(over: &[Vec<f64>], under: &[f64], resamples: usize, seed: u64) -> Interval {
    assert!(!over.is_empty() && !under.is_empty() && resamples > 0, "something to resample");
    assert!(over.iter().all(|row| row.len() == under.len()), "one number a text and repetition");
    let (texts, rows) = (Stream::new(seed, "bootstrap"), Stream::new(seed, "bootstrap of repetitions"));
    let (n, m) = (under.len() as u64, over.len() as u64);
    let resample = |r: usize| {
        let picks: Vec<usize> = (0..n).map(|i| texts.below(r as u64 * n + i, n) as usize).collect();
        let total: f64 = picks.iter().map(|i| under[*i]).sum();
        let drawn = (0..m).map(|k| &over[rows.below(r as u64 * m + k, m) as usize]);
        drawn.map(|row| picks.iter().map(|i| row[*i]).sum::<f64>() / total).sum::<f64>() / m as f64
    };
    let values = (0..resamples).into_par_iter().map(resample).collect();
    let sum: f64 = over.iter().flatten().sum();
    percentiles(sum / under.iter().sum::<f64>() / m as f64, values)
}

/// The ratio on each resample of the texts.
fn resampled(over: &[f64], under: &[f64], resamples: usize, stream: &Stream) -> Vec<f64> {
    assert!(over.len() == under.len() && !over.is_empty() && resamples > 0, "one pair a text");
    let n = over.len() as u64;
    let resample = |r: usize| {
        let picks = (0..n).map(|i| stream.below(r as u64 * n + i, n) as usize);
        let (a, b) = picks.fold((0.0, 0.0), |(a, b), i| (a + over[i], b + under[i]));
        a / b
    };
    (0..resamples).into_par_iter().map(resample).collect()
}

fn percentiles(value: f64, mut values: Vec<f64>) -> Interval {
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values[(q * (values.len() - 1) as f64).round() as usize];
    Interval { value, low: at(0.025), high: at(0.975) }
}

/// The probability, when trial i is a hit with `chances[i]`, of a number of hits that is no likelier than
/// `hits`: the exact two-sided test (of the Poisson binomial distribution; with equal chances the binomial
/// test). 1 when there are no trials. Takes time with the square of the trials.
pub fn exact_test(chances: &[f64], hits: usize) -> f64 {
    let mut probabilities = vec![1.0];
    for chance in chances {
        probabilities.push(0.0);
        for k in (0..probabilities.len()).rev() {
            let below = if k == 0 { 0.0 } else { probabilities[k - 1] };
            probabilities[k] = probabilities[k] * (1.0 - chance) + below * chance;
        }
    }
    // Equal probabilities differ in their last bits.
    let limit = probabilities.get(hits).copied().unwrap_or(0.0) * (1.0 + 1e-7);
    probabilities.iter().filter(|p| **p <= limit).sum::<f64>().min(1.0)
}

/// The two-sided probability of at least so unusual a number of matches between two lists of labels when one
/// is shuffled: are they related at all, given how often each label stands in either? By the normal
/// approximation with the exact mean Σ aₖbₖ/n and variance of the diagonal of a table with fixed margins
/// (multivariate hypergeometric). 1 where shuffling changes nothing, as with a constant list.
pub fn shuffle_test(first: &[usize], second: &[usize]) -> f64 {
    let n = first.len() as f64;
    let labels = first.iter().chain(second).max().map_or(0, |most| most + 1);
    let count = |list: &[usize], label: usize| list.iter().filter(|l| **l == label).count() as f64;
    let margins: Vec<(f64, f64)> = (0..labels).map(|label| (count(first, label), count(second, label))).collect();
    let products: f64 = margins.iter().map(|(a, b)| a * b).sum();
    let own = margins.iter().map(|(a, b)| a * b * (n - a) * (n - b) - (a * b).powi(2)).sum::<f64>();
    let variance = (own + products.powi(2)) / (n * n * (n - 1.0));
    if variance.is_nan() || variance <= 1e-9 {
        return 1.0;
    }
    let matches = first.iter().zip(second).filter(|(a, b)| a == b).count() as f64;
    let z = (matches - products / n).abs() / variance.sqrt();
    (2.0 * normal_tail(z)).min(1.0)
}

/// P(Z > z) of a standard normal Z for z ≥ 0, to 7.5e-8 (M. Abramowitz, I. Stegun 1964, 26.2.17).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let polynomial = series.iter().fold(0.0, |sum, c| (sum + c) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * polynomial
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
    fn the_exact_test_agrees_with_the_binomial_test() {
        // 2^-10 (1 + 10 + 45) on each side; textbook values of the binomial test.
        assert!((exact_test(&[0.5; 10], 2) - 2.0 * 56.0 / 1024.0).abs() < 1e-12);
        assert_eq!(exact_test(&[0.5; 10], 5), 1.0);
        assert!((exact_test(&[0.25; 3], 3) - 1.0 / 64.0).abs() < 1e-12);
        assert!((exact_test(&[0.2, 0.5], 2) - 0.1).abs() < 1e-12);
        assert_eq!(exact_test(&[], 0), 1.0);
    }

    #[test]
    fn the_shuffle_test_agrees_with_shuffling() {
        let stream = Stream::new(3, "labels");
        let draw = |from: u64| (0..60).map(|i| (stream.below(from + i, 5) as usize).min(2)).collect::<Vec<usize>>();
        let (first, second) = (draw(0), draw(100));
        let matches = |a: &[usize], b: &[usize]| a.iter().zip(b).filter(|(a, b)| a == b).count() as f64;
        let mut shuffled = second.clone();
        let counts: Vec<f64> = (0..4000)
            .map(|seed| {
                Stream::new(seed, "shuffle").shuffle(&mut shuffled);
                matches(&first, &shuffled)
            })
            .collect();
        let (mean, found) = (counts.iter().sum::<f64>() / 4000.0, matches(&first, &second));
        let as_far = counts.iter().filter(|c| (**c - mean).abs() >= (found - mean).abs() - 0.5).count() as f64 / 4000.0;
        assert!((shuffle_test(&first, &second) - as_far).abs() < 0.12, "{as_far}");
        assert_eq!(shuffle_test(&[1; 60], &second), 1.0, "a constant answer is related to nothing");
        assert!(shuffle_test(&first, &first) < 1e-6);
        assert!((2.0 * normal_tail(1.959_963_984_540_054) - 0.05).abs() < 1e-6);
        assert_eq!(shuffle_test(&[], &[]), 1.0);
    }

    #[test]
    fn the_difference_of_two_sets_has_the_spread_of_both() {
        let stream = Stream::new(5, "sample");
        let draw = |mean: f64, from: u64| (0..400).map(|i| mean + stream.normal(from + i)).collect::<Vec<f64>>();
        let (a, b, ones) = (draw(3.0, 0), draw(1.0, 400), vec![1.0; 400]);
        let found = ratio_difference_interval((&a, &ones), (&b, &ones), 400, 1);
        let half = 1.96 * (2.0f64 / 400.0).sqrt();
        assert!((found.value - 2.0).abs() < 0.2 && ((found.high - found.low) / 2.0 - half).abs() < 0.03, "{found:?}");
    }

    #[test]
    fn repetitions_widen_the_interval_of_the_texts_by_their_own_spread() {
        let stream = Stream::new(9, "sample");
        // Texts differ by 1, repetitions by 0.5, and both shift every number: variances 1/400 and 0.25/40.
        let texts: Vec<f64> = (0..400).map(|i| 4.0 + stream.normal(i)).collect();
        let rows: Vec<Vec<f64>> =
            (0..40).map(|k| texts.iter().map(|text| text + 0.5 * stream.normal(1000 + k)).collect()).collect();
        let found = crossed_interval(&rows, &vec![1.0; 400], 1000, 1);
        let half = 1.96 * (1.0 / 400.0 + 0.25 / 40.0f64).sqrt();
        assert!(((found.high - found.low) / 2.0 - half).abs() < 0.2 * half, "{found:?} against {half}");
        let alone = crossed_interval(&rows[..1], &vec![1.0; 400], 1000, 1);
        assert_eq!(alone, ratio_interval(&rows[0], &vec![1.0; 400], 1000, 1));
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
