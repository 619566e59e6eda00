//! Each kernel against the CPU's op in f64, on whatever machine runs it: a GPU, or the CPU in a test.
//!
//! A [`Case`] is one op at one size and number type. Buffers have a guard on both sides, which must stay as it is;
//! what a kernel overwrites holds NaN before.

mod attention;
mod optimizer;
mod rows;

use super::{Backend, Element, Launch, Place};
use crate::artifact::{Hash, hash_bytes};
use crate::rng::Stream;
use half::bf16;

/// Numbers before and behind a buffer that no kernel may touch.
const GUARD: usize = 64;

/// A number type of kernels.
pub trait Number: Element + PartialEq {
    /// How far a result may be from the exact one: ‖a − b‖ / ‖b‖.
    const TOLERANCE: f64;
    /// The nearest number of this type.
    fn of(x: f64) -> Self;
    /// Its value.
    fn exact(self) -> f64;
}

impl Number for f32 {
    const TOLERANCE: f64 = 1e-5;
    fn of(x: f64) -> Self {
        x as f32
    }
    fn exact(self) -> f64 {
        self.into()
    }
}

impl Number for bf16 {
    /// One rounding is at most 2⁻⁸; sums of rounded probabilities and a second rounding come to less than twice that.
    const TOLERANCE: f64 = 6e-3;
    fn of(x: f64) -> Self {
        bf16::from_f64(x)
    }
    fn exact(self) -> f64 {
        self.into()
    }
}

/// Results of kernels beside the exact ones.
pub type Results = Vec<(Vec<f64>, Vec<f64>)>;

/// What a case came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The largest ‖a − b‖ / ‖b‖ of its results.
    pub error: f64,
    /// Hash of the bits of all results: the same whenever the same is computed.
    pub bits: Hash,
}

type Op<B> = Box<dyn Fn(&mut Bench<B>) -> Result<Results, String>>;

/// One op at one size and number type.
pub struct Case<B: Backend> {
    /// Op, number type and sizes.
    pub name: String,
    /// How far it may be off.
    pub tolerance: f64,
    op: Op<B>,
}

impl<B: Backend + 'static> Case<B> {
    fn new<T: Number>(
        name: &str,
        sizes: &[usize],
        op: impl Fn(&mut Bench<B>) -> Result<Results, String> + 'static,
    ) -> Self {
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        Case { name: format!("{name} {} {}", T::NAME, sizes.join("×")), tolerance: T::TOLERANCE, op: Box::new(op) }
    }

    /// Runs the case.
    ///
    /// # Errors
    /// What is wrong: a result, a write beyond a buffer, or the machine's refusal.
    pub fn run(&self, backend: &mut B) -> Result<Outcome, String> {
        let results = (self.op)(&mut Bench(backend)).map_err(|e| format!("{}: {e}", self.name))?;
        let (mut worst, mut bits) = (0.0, Vec::new());
        for (i, (got, want)) in results.iter().enumerate() {
            let length = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
            let error = length(&mut got.iter().zip(want).map(|(a, b)| a - b));
            let error = error / length(&mut want.iter().copied()).max(1e-3);
            if got.len() != want.len() || error.is_nan() || error > self.tolerance {
                return Err(format!("{}: result {i} is off by {error:.2e}", self.name));
            }
            worst = f64::max(worst, error);
            bits.extend(got.iter().flat_map(|x| x.to_bits().to_le_bytes()));
        }
        Ok(Outcome { error: worst, bits: hash_bytes(&bits) })
    }
}

/// Every case, at odd sizes too, in both number types.
pub fn all<B: Backend + 'static>() -> Vec<Case<B>> {
    [row_wise(), losses(), attention(), optimizer()].into_iter().flatten().collect()
}

/// Norm, gate, embedding and rotation.
pub fn row_wise<B: Backend + 'static>() -> Vec<Case<B>> {
    let mut cases = Vec::new();
    for (rows, width) in [(1, 1), (7, 5), (33, 33), (65, 64), (129, 136), (3, 1024)] {
        cases.extend([rows::norm::<B, f32>(rows, width), rows::norm::<B, bf16>(rows, width)]);
        cases.extend([rows::swiglu::<B, f32>(rows * width), rows::swiglu::<B, bf16>(rows * width)]);
        cases.extend([rows::embedding::<B, f32>(rows, width), rows::embedding::<B, bf16>(rows, width)]);
    }
    for (windows, time, half) in [(1, 1, 1), (2, 7, 5), (1, 33, 16), (2, 65, 3)] {
        cases.extend([rows::rope::<B, f32>(windows, time, half), rows::rope::<B, bf16>(windows, time, half)]);
    }
    cases
}

/// The loss and its gradient.
pub fn losses<B: Backend + 'static>() -> Vec<Case<B>> {
    let sizes = [(1, 1), (7, 5), (5, 33), (3, 1024), (2, 4099)];
    let both = |(rows, vocabulary)| {
        [
            rows::loss::<B, f32, f32>(rows, vocabulary),
            rows::loss::<B, bf16, bf16>(rows, vocabulary),
            rows::loss::<B, f32, bf16>(rows, vocabulary),
        ]
    };
    sizes.into_iter().flat_map(both).collect()
}

/// Attention, forward and backward: batch, time, heads, key heads, width of a head.
pub fn attention<B: Backend + 'static>() -> Vec<Case<B>> {
    let sizes = [
        [1, 1, 1, 1, 1],
        [2, 7, 2, 1, 5],
        [1, 33, 2, 2, 33],
        [1, 65, 4, 2, 64],
        [1, 129, 1, 1, 32],
        [1, 66, 1, 1, 128],
    ];
    sizes.into_iter().flat_map(|s| [attention::case::<B, f32>(s), attention::case::<B, bf16>(s)]).collect()
}

/// Global norm, clipping and AdamW.
pub fn optimizer<B: Backend + 'static>() -> Vec<Case<B>> {
    let counts = [1, 33, 4096, 70_001];
    counts.into_iter().flat_map(|n| [optimizer::case::<B, f32>(n), optimizer::case::<B, bf16>(n)]).collect()
}

/// Single cases for faults planted on purpose.
pub mod single {
    pub use super::attention::case as attention;
    pub use super::optimizer::case as optimizer;
    pub use super::rows::{embedding, loss, norm, rope, swiglu};
}

/// A machine that says what is wrong in words.
struct Bench<'a, B>(&'a mut B);

/// Numbers that a kernel reads or writes, guarded on both sides.
#[derive(Clone, Copy)]
struct Buffer<T> {
    whole: Place<T>,
    place: Place<T>,
}

fn said<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|e| e.to_string())
}

fn guard<T: Number>() -> Vec<T> {
    (0..GUARD).map(|i| T::of(1000.0 + i as f64)).collect()
}

impl<B: Backend> Bench<'_, B> {
    fn guarded<T: Number>(&mut self, values: &[f64]) -> Result<Buffer<T>, String> {
        let inside = values.iter().map(|x| T::of(*x));
        let numbers: Vec<T> = guard().into_iter().chain(inside).chain(guard()).collect();
        let whole = said(self.0.place::<T>(numbers.len()))?;
        said(self.0.put(whole, &numbers))?;
        Ok(Buffer { whole, place: whole.part(GUARD, values.len()) })
    }

    fn random<T: Number>(&mut self, name: &str, count: usize) -> Result<Buffer<T>, String> {
        let stream = Stream::new(5, name);
        self.guarded(&(0..count as u64).map(|i| stream.normal(i)).collect::<Vec<_>>())
    }

    /// Not a number everywhere: what a kernel overwrites.
    fn empty<T: Number>(&mut self, count: usize) -> Result<Buffer<T>, String> {
        self.guarded(&vec![f64::NAN; count])
    }

    fn values<T: Number>(&mut self, buffer: Buffer<T>) -> Result<Vec<f64>, String> {
        let numbers = said(self.0.get(buffer.whole))?;
        let end = numbers.len() - GUARD;
        if numbers[..GUARD] != guard()[..] || numbers[end..] != guard()[..] {
            return Err("a kernel wrote beyond its buffer".to_owned());
        }
        Ok(numbers[GUARD..end].iter().map(|x| x.exact()).collect())
    }

    /// Plain data without a guard.
    fn plain<T: bytemuck::Pod>(&mut self, values: &[T]) -> Result<Place<T>, String> {
        let place = said(self.0.place::<T>(values.len()))?;
        said(self.0.put(place, values))?;
        Ok(place)
    }

    fn read<T: bytemuck::Pod>(&mut self, place: Place<T>) -> Result<Vec<T>, String> {
        said(self.0.get(place))
    }

    fn run(&mut self, launches: impl IntoIterator<Item = Launch>) -> Result<(), String> {
        launches.into_iter().try_for_each(|launch| said(self.0.launch(&launch)))
    }
}
