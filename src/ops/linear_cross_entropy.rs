//! The output layer and its loss in one: logits z = x·Wᵀ, loss −ln `softmax(z)[target]` in nats.
//!
//! With p = softmax(z): dz = p − onehot(target), dx = dz·W, dW = dzᵀ·x. Only the logits of a few rows
//! exist at a time, and in training they turn into their own gradient in place, so nothing of size
//! rows × vocabulary is ever kept.

use super::matmul::{View, ViewMut, product};
use super::parallel::{lane_sum, vectorised};
use super::{IGNORE, Precision, Real};
use rayon::prelude::*;

/// Logits held at a time, 16 MiB in f32, unless the vocabulary is so large that they are too few rows.
const LOGITS: usize = 1 << 22;
/// Fewest rows at a time: each time, the gradient of the whole weight is read and written once.
const FEWEST: usize = 128;

/// Shape of the output layer on a batch, and how its products are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Positions.
    pub rows: usize,
    /// Width of the hidden state.
    pub inputs: usize,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Precision of what is multiplied.
    pub precision: Precision,
}

impl Shape {
    /// Logits that exist at a time.
    pub fn logits(&self) -> usize {
        self.chunk() * self.vocabulary
    }

    fn chunk(&self) -> usize {
        (LOGITS / self.vocabulary).clamp(FEWEST, 512).min(self.rows.max(1))
    }

    fn check<T>(&self, x: &[T], w: &[T], targets: &[u32]) {
        let fits = (x.len(), w.len(), targets.len());
        assert_eq!(fits, (self.rows * self.inputs, self.vocabulary * self.inputs, self.rows), "lengths of a loss");
        let inside = targets.iter().all(|t| *t == IGNORE || (*t as usize) < self.vocabulary);
        assert!(inside, "a target lies outside the vocabulary");
    }
}

/// Loss of every row in nats, 0 where the target is [`IGNORE`].
///
/// # Panics
/// When the lengths do not fit or a target lies outside the vocabulary.
pub fn per_row<T: Real>(x: &[T], w: &[T], targets: &[u32], shape: Shape) -> Vec<f64> {
    shape.check(x, w, targets);
    let mut losses = Vec::with_capacity(shape.rows);
    let mut logits = vec![T::ZERO; shape.logits()];
    for (x, targets) in x.chunks(shape.chunk() * shape.inputs).zip(targets.chunks(shape.chunk())) {
        project(x, w, &mut logits, targets.len(), shape);
        let rows = logits.par_chunks_exact(shape.vocabulary).zip(targets);
        losses.par_extend(rows.map(|(row, target)| vectorised!(|| row_loss(row, *target))));
    }
    losses
}

/// Sum of the losses in nats and the number of rows that counted; overwrites `dx` `[rows, inputs]` and
/// adds to `dw` `[vocabulary, inputs]`, both times `scale`.
///
/// # Panics
/// As [`per_row`].
pub fn forward_backward<T: Real>(
    x: &[T],
    w: &[T],
    targets: &[u32],
    shape: Shape,
    scale: f64,
    dx: &mut [T],
    dw: &mut [T],
) -> (f64, usize) {
    shape.check(x, w, targets);
    assert_eq!((dx.len(), dw.len()), (x.len(), w.len()), "lengths of a loss's gradients");
    let Shape { inputs, vocabulary, precision, .. } = shape;
    let mut logits = vec![T::ZERO; shape.logits()];
    let (mut nats, mut counted) = (0.0, 0);
    let pieces = x.chunks(shape.chunk() * inputs).zip(dx.chunks_mut(shape.chunk() * inputs));
    for ((x, dx), targets) in pieces.zip(targets.chunks(shape.chunk())) {
        let rows = targets.len();
        project(x, w, &mut logits, rows, shape);
        let losses: Vec<f64> = logits
            .par_chunks_exact_mut(vocabulary)
            .zip(targets)
            .map(|(row, target)| vectorised!(|| row_gradient(row, *target, T::from_f64(scale))))
            .collect();
        nats += losses.iter().sum::<f64>();
        counted += targets.iter().filter(|t| **t != IGNORE).count();
        let dz = View::new(&logits, rows, vocabulary, vocabulary);
        let (out, weights) = (ViewMut::new(dx, rows, inputs, inputs), View::new(w, vocabulary, inputs, inputs));
        product(out, dz, weights, false, precision);
        let (out, x) = (ViewMut::new(dw, vocabulary, inputs, inputs), View::new(x, rows, inputs, inputs));
        product(out, dz.transposed(), x, true, precision);
    }
    (nats, counted)
}

fn project<T: Real>(x: &[T], w: &[T], logits: &mut [T], rows: usize, shape: Shape) {
    let Shape { inputs, vocabulary, precision, .. } = shape;
    let weights = View::new(w, vocabulary, inputs, inputs).transposed();
    let out = ViewMut::new(logits, rows, vocabulary, vocabulary);
    product(out, View::new(x, rows, inputs, inputs), weights, false, precision);
}

#[inline(always)]
fn largest<T: Real>(row: &[T]) -> T {
    let mut lanes = [row[0]; 16];
    for chunk in row.chunks_exact(16) {
        lanes.iter_mut().zip(chunk).for_each(|(best, x)| *best = best.larger(*x));
    }
    let tail = row.chunks_exact(16).remainder();
    lanes.iter().chain(tail).fold(row[0], |best, x| best.larger(*x))
}

#[inline(always)]
fn row_loss<T: Real>(row: &[T], target: u32) -> f64 {
    if target == IGNORE {
        return 0.0;
    }
    let max = largest(row);
    let sum = lane_sum([row], |[x]| (x - max).exp());
    sum.to_f64().ln() + (max - row[target as usize]).to_f64()
}

/// Turns a row of logits into `scale`·(softmax − onehot) and gives its loss.
#[inline(always)]
fn row_gradient<T: Real>(row: &mut [T], target: u32, scale: T) -> f64 {
    if target == IGNORE {
        row.fill(T::ZERO);
        return 0.0;
    }
    let max = largest(row);
    let correct = row[target as usize];
    row.iter_mut().for_each(|z| *z = (*z - max).exp());
    let sum = lane_sum([row], |[x]| x);
    let share = scale / sum;
    row.iter_mut().for_each(|p| *p *= share);
    row[target as usize] = row[target as usize] - scale;
    sum.to_f64().ln() + (max - correct).to_f64()
}
