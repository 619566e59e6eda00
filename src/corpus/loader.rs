//! Batches of token windows, each a pure function of (seed, n): there is no state to save, and
//! resuming is asking for the next number.
//!
//! Samples are numbered through all batches. [`Interleave`] gives sample *g* a language and its
//! number *c* among that language's samples. With *N* = ⌊tokens / context⌋ windows in an epoch,
//! *c* is window *c* mod *N* of epoch ⌊*c* / *N*⌋; a permutation of the epoch says which one that
//! is. A shard is read as a ring, cut into windows from an offset drawn for the epoch: every epoch
//! predicts *N*·context different positions once, and no epoch has the same cuts. The seam of the
//! ring is a document boundary like any other.

use super::CorpusError;
use super::shard::Shard;
use crate::rng::Stream;
use std::collections::BTreeMap;

/// A target that carries no loss; the same value as the kernels use.
pub use crate::ops::IGNORE;

/// Windows of tokens and the token that follows each position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Tokens, `[batch, context]` row-major.
    pub inputs: Vec<u32>,
    /// The token after each input, `[batch, context]`; [`IGNORE`] = no loss here.
    pub targets: Vec<u32>,
    /// Rows.
    pub batch: usize,
    /// Tokens in a row.
    pub context: usize,
}

impl Batch {
    pub(super) fn with_capacity(batch: usize, context: usize) -> Self {
        let empty = || Vec::with_capacity(batch * context);
        Batch { inputs: empty(), targets: empty(), batch, context }
    }

    /// Targets that carry a loss.
    pub fn counted(&self) -> usize {
        self.targets.iter().filter(|&&t| t != IGNORE).count()
    }
}

/// Anything that can make training batch `n`.
pub trait Batches: Sync {
    /// Batch `n`, from 0: the same for the same `n`, whatever was asked before.
    ///
    /// # Errors
    /// [`CorpusError`] when text that is read while training goes on cannot be had.
    fn batch(&self, n: u64) -> Result<Batch, CorpusError>;
}

/// Which kind a sample is of, so that the counts of every prefix follow the weights.
///
/// A tree of two-way splits: of the first *h* samples of a node, ⌊*h*·a/b + ½⌋ go left, where a/b
/// is the weight of the left half. A split errs by at most ½ sample and passes on only its share of
/// the error above it, so that each of up to four kinds stays within one sample of its weight
/// (two kinds: within half of one).
#[derive(Debug, Clone)]
pub struct Interleave {
    weights: Vec<u64>,
}

impl Interleave {
    /// Splits by `weights`, which must be finite, not negative and not all zero.
    pub fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        // Whole units of 2⁻⁵² keep the counting exact.
        let unit = (1u64 << 52) as f64;
        Interleave { weights: weights.iter().map(|w| (w / total * unit).round() as u64).collect() }
    }

    /// The kind of sample `g` and its number among the samples of that kind, both from 0.
    pub fn place(&self, g: u64) -> (usize, u64) {
        let (mut low, mut high, mut index) = (0, self.weights.len(), g);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let sum = |range: std::ops::Range<usize>| self.weights[range].iter().map(|&w| u128::from(w)).sum::<u128>();
            let (left, all) = (sum(low..middle), sum(low..high).max(1));
            let before = |h: u64| ((u128::from(h) * 2 * left + all) / (2 * all)) as u64;
            if before(index + 1) > before(index) {
                (high, index) = (middle, before(index));
            } else {
                (low, index) = (middle, index - before(index));
            }
        }
        (low, index)
    }
}

/// The training batches of a mix of languages.
pub struct Loader {
    languages: Vec<(String, Shard)>,
    interleave: Interleave,
    batch: usize,
    context: usize,
    seed: u64,
}

impl Loader {
    /// Batches of `batch` windows of `context` tokens, the languages in the shares of `mix`.
    ///
    /// # Errors
    /// [`CorpusError::Loader`] when mix and shards do not name the same languages once each or a
    /// number is out of range, [`CorpusError::ShortShard`] when a shard has no whole window.
    pub fn new(
        shards: Vec<(String, Shard)>,
        mix: &BTreeMap<String, f64>,
        batch: usize,
        context: usize,
        seed: u64,
    ) -> Result<Self, CorpusError> {
        let refuse = |message: String| Err(CorpusError::Loader { message });
        if batch == 0 || context == 0 || mix.is_empty() {
            return refuse(format!(
                "batch {batch}, context {context}, {} languages: each must be 1 or more",
                mix.len()
            ));
        }
        if let Some((language, weight)) = mix.iter().find(|(_, w)| !(w.is_finite() && **w > 0.0)) {
            return refuse(format!("`{language}` has weight {weight} in the mix, expected a number above 0"));
        }
        let mut by_language = BTreeMap::new();
        for (language, shard) in shards {
            if !mix.contains_key(&language) {
                return refuse(format!("there is a `{language}` shard, but `{language}` is not in the mix"));
            }
            let (tokens, needed) = (shard.len(), context as u64 + 1);
            if tokens < needed {
                return Err(CorpusError::ShortShard { language, tokens, needed });
            }
            if by_language.insert(language.clone(), shard).is_some() {
                return refuse(format!("there are two `{language}` shards, expected one"));
            }
        }
        if let Some(language) = mix.keys().find(|l| !by_language.contains_key(*l)) {
            return refuse(format!("the mix names `{language}`, but there is no shard of it"));
        }
        let weights: Vec<f64> = mix.values().copied().collect();
        let languages = by_language.into_iter().collect();
        Ok(Loader { languages, interleave: Interleave::new(&weights), batch, context, seed })
    }

    /// Windows in one epoch of each language.
    pub fn windows_per_epoch(&self) -> BTreeMap<String, u64> {
        let windows = |shard: &Shard| shard.len() / self.context as u64;
        self.languages.iter().map(|(language, shard)| (language.clone(), windows(shard))).collect()
    }

    /// Language of sample `g`, which is row `g` mod batch of batch ⌊`g` / batch⌋.
    pub fn language(&self, g: u64) -> &str {
        &self.languages[self.interleave.place(g).0].0
    }

    /// How often each language's text has been seen after `batches` batches, in epochs.
    pub fn epochs(&self, batches: u64) -> BTreeMap<String, f64> {
        let mut seen = vec![0u64; self.languages.len()];
        // A language's last sample has its largest number; it is at most a few samples back.
        for g in (0..batches * self.batch as u64).rev() {
            let (language, number) = self.interleave.place(g);
            seen[language] = seen[language].max(number + 1);
            if !seen.contains(&0) {
                break;
            }
        }
        let windows = self.windows_per_epoch();
        windows.into_iter().zip(seen).map(|((language, n), s)| (language, s as f64 / n as f64)).collect()
    }

    /// First position of sample number `number` in its shard.
    fn start(&self, language: &str, shard: &Shard, number: u64) -> u64 {
        let windows = shard.len() / self.context as u64;
        let (epoch, index) = (number / windows, number % windows);
        let stream = Stream::new(self.seed, &format!("loader/{language}/{epoch}"));
        let offset = Stream::new(self.seed, &format!("loader/{language}/offset")).below(epoch, shard.len());
        (offset + stream.permute(index, windows) * self.context as u64) % shard.len()
    }
}

impl Batches for Loader {
    fn batch(&self, n: u64) -> Result<Batch, CorpusError> {
        let mut batch = Batch::with_capacity(self.batch, self.context);
        for row in 0..self.batch as u64 {
            let (language, number) = self.interleave.place(n * self.batch as u64 + row);
            let (name, shard) = &self.languages[language];
            let start = self.start(name, shard, number);
            let at = |i: usize| shard.get((start + i as u64) % shard.len());
            batch.inputs.extend((0..self.context).map(at));
            batch.targets.extend((1..=self.context).map(at));
        }
        Ok(batch)
    }
}

/// Evaluation batches: up to `count` windows spread evenly over the shard, in order, the same every
/// time. Each has `batch` rows of `context` tokens; what the shard does not fill has input 0 and
/// target [`IGNORE`].
///
/// # Errors
/// [`CorpusError::ShortShard`] when the shard has fewer than two tokens, [`CorpusError::Loader`]
/// when a number is 0.
pub fn validation_windows(
    language: &str,
    shard: &Shard,
    batch: usize,
    context: usize,
    count: usize,
) -> Result<Vec<Batch>, CorpusError> {
    if batch == 0 || context == 0 || count == 0 {
        let message = format!("batch {batch}, context {context}, {count} windows: each must be 1 or more");
        return Err(CorpusError::Loader { message });
    }
    if shard.len() < 2 {
        return Err(CorpusError::ShortShard { language: language.to_owned(), tokens: shard.len(), needed: 2 });
    }
    let all = (shard.len() - 1).div_ceil(context as u64);
    let taken = all.min(count as u64);
    let starts: Vec<u64> = (0..taken).map(|k| k * all / taken * context as u64).collect();
    Ok(starts.chunks(batch).map(|rows| padded(shard, rows, batch, context)).collect())
}

fn padded(shard: &Shard, starts: &[u64], batch: usize, context: usize) -> Batch {
    let mut result = Batch::with_capacity(batch, context);
    for &start in starts {
        let here = (shard.len() - 1 - start).min(context as u64);
        result.inputs.extend((0..here).map(|i| shard.get(start + i)));
        result.targets.extend((1..=here).map(|i| shard.get(start + i)));
        let whole = result.inputs.len().next_multiple_of(context);
        result.inputs.resize(whole, 0);
        result.targets.resize(whole, IGNORE);
    }
    result.inputs.resize(batch * context, 0);
    result.targets.resize(batch * context, IGNORE);
    result
}
