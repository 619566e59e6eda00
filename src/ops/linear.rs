//! Linear layer without bias: y = x·Wᵀ with W of shape `[outputs, inputs]`, as Hugging Face has it.
//!
//! With dy the gradient of y: dx = dy·W and dW = dyᵀ·x.

use super::matmul::{View, ViewMut, product};
use super::parallel::ROWS;
use super::{Precision, Real};
use rayon::prelude::*;

/// Sizes of a linear layer on a batch, and how its products are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the batch.
    pub rows: usize,
    /// Width of the input.
    pub inputs: usize,
    /// Width of the output.
    pub outputs: usize,
    /// Precision of what is multiplied.
    pub precision: Precision,
}

/// y = x·Wᵀ, or y += x·Wᵀ when `accumulate`; `x` `[rows, inputs]`, `w` `[outputs, inputs]`, `y` `[rows, outputs]`.
///
/// # Panics
/// When a slice is shorter than its shape.
pub fn forward<T: Real>(x: &[T], w: &[T], y: &mut [T], shape: Shape, accumulate: bool) {
    let Shape { rows, inputs, outputs, precision } = shape;
    let weights = View::new(w, outputs, inputs, inputs).transposed();
    let (out, x) = (ViewMut::new(y, rows, outputs, outputs), View::new(x, rows, inputs, inputs));
    product(out, x, weights, accumulate, precision);
}

/// dx = dy·W, or dx += dy·W when `accumulate`.
///
/// # Panics
/// When a slice is shorter than its shape.
pub fn backward_input<T: Real>(dy: &[T], w: &[T], dx: &mut [T], shape: Shape, accumulate: bool) {
    let Shape { rows, inputs, outputs, precision } = shape;
    let (dy, w) = (View::new(dy, rows, outputs, outputs), View::new(w, outputs, inputs, inputs));
    product(ViewMut::new(dx, rows, inputs, inputs), dy, w, accumulate, precision);
}

/// dW += dyᵀ·x.
///
/// # Panics
/// When a slice is shorter than its shape.
pub fn backward_weight<T: Real>(dy: &[T], x: &[T], dw: &mut [T], shape: Shape) {
    let Shape { rows, inputs, outputs, precision } = shape;
    let (dy, x) = (View::new(dy, rows, outputs, outputs).transposed(), View::new(x, rows, inputs, inputs));
    product(ViewMut::new(dw, outputs, inputs, inputs), dy, x, true, precision);
}

/// Adds `bias` `[outputs]` to every row of `y` `[rows, outputs]`.
///
/// # Panics
/// When `y` is no whole number of rows.
pub fn add_bias<T: Real>(y: &mut [T], bias: &[T]) {
    assert!(y.len().is_multiple_of(bias.len()), "length of a bias");
    y.par_chunks_mut(ROWS * bias.len()).for_each(|y| {
        for row in y.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(y, b)| *y += *b);
        }
    });
}

/// db += Σ over rows of dy, in pieces that do not depend on the number of threads.
///
/// # Panics
/// When `dy` is no whole number of rows.
pub fn backward_bias<T: Real>(dy: &[T], dbias: &mut [T]) {
    let width = dbias.len();
    assert!(dy.len().is_multiple_of(width), "length of a bias' gradient");
    let sum = |dy: &[T]| {
        let mut sum = vec![T::ZERO; width];
        for row in dy.chunks_exact(width) {
            sum.iter_mut().zip(row).for_each(|(sum, term)| *sum += *term);
        }
        sum
    };
    let partial: Vec<Vec<T>> = dy.par_chunks(ROWS * width).map(sum).collect();
    for partial in partial {
        dbias.iter_mut().zip(partial).for_each(|(sum, term)| *sum += term);
    }
}
