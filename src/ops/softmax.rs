//! Softmax of each row: y = exp(x − max(x)) / Σ exp(x − max(x)).
//!
//! Its gradient needs the output alone: dx = y∘(dy − Σ y∘dy).

use super::Real;
use super::parallel::{ROWS, lane_sum, vectorised};
use rayon::prelude::*;

/// `y` `[rows, width]` from `x` `[rows, width]`. A row of −∞ alone gives NaN, as it has no softmax.
///
/// # Panics
/// When the lengths do not fit together.
pub fn forward<T: Real>(x: &[T], y: &mut [T], width: usize) {
    assert_eq!((x.len() % width, y.len()), (0, x.len()), "lengths of a softmax");
    x.par_chunks(ROWS * width).zip(y.par_chunks_mut(ROWS * width)).for_each(|(x, y)| {
        vectorised!(|| {
            for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
                let max = x.iter().fold(x[0], |best, x| best.larger(*x));
                for (y, x) in y.iter_mut().zip(x) {
                    *y = (*x - max).exp();
                }
                let share = T::ONE / lane_sum([&*y], |[y]| y);
                y.iter_mut().for_each(|y| *y *= share);
            }
        });
    });
}

/// Overwrites `dx` with the gradient, from the output `y`.
///
/// # Panics
/// When the lengths do not fit together.
pub fn backward<T: Real>(y: &[T], dy: &[T], dx: &mut [T], width: usize) {
    assert_eq!((y.len() % width, dy.len(), dx.len()), (0, y.len(), y.len()), "lengths of a softmax");
    let piece = ROWS * width;
    y.par_chunks(piece).zip(dy.par_chunks(piece)).zip(dx.par_chunks_mut(piece)).for_each(|((y, dy), dx)| {
        vectorised!(|| {
            let rows = y.chunks_exact(width).zip(dy.chunks_exact(width)).zip(dx.chunks_exact_mut(width));
            for ((y, dy), dx) in rows {
                let mean = lane_sum([y, dy], |[y, dy]| y * dy);
                for i in 0..width {
                    dx[i] = y[i] * (dy[i] - mean);
                }
            }
        });
    });
}
