//! RMSNorm (B. Zhang, R. Sennrich, NeurIPS 2019): y = g ∘ x·r with r = 1/√(mean(x²) + ε).
//!
//! With n the width and u = dy ∘ g: dx = r·(u − x·r²·Σ(u∘x)/n) and dg = Σ over rows of dy ∘ x·r.

use super::Real;
use super::parallel::{ROWS, lane_sum, vectorised};
use rayon::prelude::*;

/// `y` and the inverse root mean square of each row; `x`, `y` `[rows, width]`, `gain` `[width]`,
/// `inverse_rms` `[rows]`.
///
/// # Panics
/// When the lengths do not fit together.
pub fn forward<T: Real>(x: &[T], gain: &[T], epsilon: f64, y: &mut [T], inverse_rms: &mut [T]) {
    let width = gain.len();
    assert_eq!((x.len(), y.len()), (inverse_rms.len() * width, x.len()), "lengths of a norm");
    let epsilon = T::from_f64(epsilon);
    let scale = T::from_f64(1.0 / width as f64);
    let pieces = x.par_chunks(ROWS * width).zip(y.par_chunks_mut(ROWS * width)).zip(inverse_rms.par_chunks_mut(ROWS));
    pieces.for_each(|((x, y), inverse)| {
        vectorised!(|| {
            for ((x, y), inverse) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(inverse) {
                let mean = lane_sum([x], |[x]| x * x) * scale;
                *inverse = T::ONE / (mean + epsilon).sqrt();
                for ((y, x), g) in y.iter_mut().zip(x).zip(gain) {
                    *y = *g * (*x * *inverse);
                }
            }
        });
    });
}

/// Adds the gradients to `dx` `[rows, width]` and `dgain` `[width]`.
///
/// # Panics
/// When the lengths do not fit together.
pub fn backward<T: Real>(x: &[T], gain: &[T], inverse_rms: &[T], dy: &[T], dx: &mut [T], dgain: &mut [T]) {
    let width = gain.len();
    assert_eq!((x.len(), dy.len(), dx.len()), (inverse_rms.len() * width, x.len(), x.len()), "lengths of a norm");
    assert_eq!(dgain.len(), width, "length of the gain's gradient");
    let scale = T::from_f64(1.0 / width as f64);
    let piece = ROWS * width;
    let pieces =
        x.par_chunks(piece).zip(dy.par_chunks(piece)).zip(dx.par_chunks_mut(piece)).zip(inverse_rms.par_chunks(ROWS));
    let partial: Vec<Vec<T>> = pieces
        .map(|(((x, dy), dx), inverse)| {
            let mut partial = vec![T::ZERO; width];
            vectorised!(|| {
                let rows =
                    x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(dx.chunks_exact_mut(width)).zip(inverse);
                for (((x, dy), dx), &r) in rows {
                    let dot = lane_sum([dy, gain, x], |[dy, gain, x]| dy * gain * x);
                    let shrink = dot * r * r * scale;
                    let (x, dy, gain) = (&x[..width], &dy[..width], &gain[..width]);
                    let (dx, partial) = (&mut dx[..width], &mut partial[..width]);
                    for i in 0..width {
                        dx[i] += r * (dy[i] * gain[i] - x[i] * shrink);
                        partial[i] += dy[i] * (x[i] * r);
                    }
                }
            });
            partial
        })
        .collect();
    for partial in partial {
        dgain.iter_mut().zip(partial).for_each(|(sum, term)| *sum += term);
    }
}
