//! LayerNorm (J. Ba, J. Kiros, G. Hinton, arXiv:1607.06450): y = g ∘ z + b with z = (x − mean(x))·r and
//! r = 1/√(variance(x) + ε), the variance over n, not n − 1.
//!
//! With u = dy ∘ g: dx = r·(u − Σu/n − z·Σ(u∘z)/n), dg = Σ over rows of dy ∘ z, db = Σ over rows of dy.

use super::Real;
use super::parallel::{ROWS, lane_sum, vectorised};
use rayon::prelude::*;

/// Mean and r of one row.
#[inline(always)]
fn moments<T: Real>(x: &[T], epsilon: T) -> (T, T) {
    let scale = T::from_f64(1.0 / x.len() as f64);
    let mean = lane_sum([x], |[x]| x) * scale;
    let variance = lane_sum([x], |[x]| (x - mean) * (x - mean)) * scale;
    (mean, T::ONE / (variance + epsilon).sqrt())
}

/// `y` `[rows, width]` from `x` `[rows, width]`, `gain` and `bias` `[width]`.
///
/// # Panics
/// When the lengths do not fit together.
pub fn forward<T: Real>(x: &[T], gain: &[T], bias: &[T], epsilon: f64, y: &mut [T]) {
    let width = gain.len();
    assert_eq!((x.len() % width, y.len(), bias.len()), (0, x.len(), width), "lengths of a norm");
    let epsilon = T::from_f64(epsilon);
    x.par_chunks(ROWS * width).zip(y.par_chunks_mut(ROWS * width)).for_each(|(x, y)| {
        vectorised!(|| {
            for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
                let (mean, r) = moments(x, epsilon);
                for (((y, x), g), b) in y.iter_mut().zip(x).zip(gain).zip(bias) {
                    *y = *g * ((*x - mean) * r) + *b;
                }
            }
        });
    });
}

/// The arrays the gradients of [`backward`] are added to.
pub struct Gradients<'a, T> {
    /// `[rows, width]`.
    pub dx: &'a mut [T],
    /// `[width]`.
    pub dgain: &'a mut [T],
    /// `[width]`.
    pub dbias: &'a mut [T],
}

/// Adds the gradients; mean and r are computed again, as one pass over a row costs less than keeping them.
///
/// # Panics
/// When the lengths do not fit together.
pub fn backward<T: Real>(x: &[T], gain: &[T], epsilon: f64, dy: &[T], gradients: Gradients<T>) {
    let width = gain.len();
    let Gradients { dx, dgain, dbias } = gradients;
    assert_eq!((x.len() % width, dy.len(), dx.len()), (0, x.len(), x.len()), "lengths of a norm");
    assert_eq!((dgain.len(), dbias.len()), (width, width), "lengths of a norm's gradients");
    let (epsilon, scale, piece) = (T::from_f64(epsilon), T::from_f64(1.0 / width as f64), ROWS * width);
    let pieces = x.par_chunks(piece).zip(dy.par_chunks(piece)).zip(dx.par_chunks_mut(piece));
    let partial: Vec<(Vec<T>, Vec<T>)> = pieces
        .map(|((x, dy), dx)| {
            let (mut gains, mut biases) = (vec![T::ZERO; width], vec![T::ZERO; width]);
            vectorised!(|| {
                let rows = x.chunks_exact(width).zip(dy.chunks_exact(width)).zip(dx.chunks_exact_mut(width));
                for ((x, dy), dx) in rows {
                    let (mean, r) = moments(x, epsilon);
                    let level = lane_sum([dy, gain], |[dy, gain]| dy * gain) * scale;
                    let slope = lane_sum([dy, gain, x], |[dy, gain, x]| dy * gain * ((x - mean) * r)) * scale;
                    let (gains, biases) = (&mut gains[..width], &mut biases[..width]);
                    for i in 0..width {
                        let z = (x[i] - mean) * r;
                        dx[i] += r * (dy[i] * gain[i] - level - z * slope);
                        gains[i] += dy[i] * z;
                        biases[i] += dy[i];
                    }
                }
            });
            (gains, biases)
        })
        .collect();
    for (gains, biases) in partial {
        dgain.iter_mut().zip(gains).for_each(|(sum, term)| *sum += term);
        dbias.iter_mut().zip(biases).for_each(|(sum, term)| *sum += term);
    }
}
