//! Rotary position embedding (J. Su et al., arXiv:2104.09864), in Hugging Face's half-rotation layout.
//!
//! With h the head's half width, the pair (`x[j]`, `x[j + h]`) at position p is turned by the angle
//! p·θ^(−j/h). A rotation's transpose is its inverse, so the backward pass turns by the opposite angle.

use super::Real;
use super::parallel::{ROWS, vectorised};
use rayon::prelude::*;

/// Cosines and sines of every position and pair.
#[derive(Debug, Clone)]
pub struct Tables<T> {
    half: usize,
    cos: Vec<T>,
    sin: Vec<T>,
}

impl<T: Real> Tables<T> {
    /// Tables for positions `0..context` and an even `head_dim`; angles are computed in f64.
    pub fn new(context: usize, head_dim: usize, theta: f64) -> Self {
        let half = head_dim / 2;
        let angle = |i: usize| (i / half) as f64 * theta.powf(-((i % half) as f64) / half as f64);
        let table = |f: fn(f64) -> f64| (0..context * half).map(|i| T::from_f64(f(angle(i)))).collect();
        Tables { half, cos: table(f64::cos), sin: table(f64::sin) }
    }

    /// Positions the tables cover.
    pub fn context(&self) -> usize {
        self.cos.len() / self.half.max(1)
    }
}

/// Turns `x` `[rows, heads·head_dim]` in place; row i stands at position `start + i % time`.
///
/// # Panics
/// When a position lies outside the tables or the lengths do not fit.
pub fn forward<T: Real>(x: &mut [T], tables: &Tables<T>, start: usize, time: usize, heads: usize) {
    turn(x, tables, start, time, heads, T::ONE);
}

/// Turns the gradient `dx` back, in place.
///
/// # Panics
/// As [`forward`].
pub fn backward<T: Real>(dx: &mut [T], tables: &Tables<T>, start: usize, time: usize, heads: usize) {
    turn(dx, tables, start, time, heads, -T::ONE);
}

fn turn<T: Real>(x: &mut [T], tables: &Tables<T>, start: usize, time: usize, heads: usize, sign: T) {
    let half = tables.half;
    let width = heads * 2 * half;
    assert!(x.len().is_multiple_of(width) && start + time <= tables.context(), "positions of a rotation");
    x.par_chunks_mut(ROWS * width).enumerate().for_each(|(piece, rows)| {
        vectorised!(|| {
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                let at = (start + (piece * ROWS + i) % time) * half;
                let (cos, sin) = (&tables.cos[at..at + half], &tables.sin[at..at + half]);
                for head in row.chunks_exact_mut(2 * half) {
                    let (first, second) = head.split_at_mut(half);
                    let (first, second) = (&mut first[..half], &mut second[..half]);
                    for j in 0..half {
                        let (a, b, s) = (first[j], second[j], sign * sin[j]);
                        first[j] = a * cos[j] - b * s;
                        second[j] = b * cos[j] + a * s;
                    }
                }
            }
        });
    });
}
