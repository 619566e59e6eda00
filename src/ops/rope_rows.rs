//! Rotary position embedding of single head rows with tables from outside, in both layouts in use.
//!
//! With h the half width, pair j of a row is (`x[j]`, `x[j + h]`) in the half-rotation layout and
//! (`x[2j]`, `x[2j + 1]`) in the interleaved one of the paper; it turns by the angle whose cosine and
//! sine stand in the tables. A rotation's transpose is its inverse, so the backward pass turns back.

use super::Real;
use super::parallel::{ROWS, vectorised};
use rayon::prelude::*;

/// Where the two halves of a pair lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// (`x[j]`, `x[j + h]`), as Hugging Face has it.
    Halves,
    /// (`x[2j]`, `x[2j + 1]`), as the paper has it.
    Interleaved,
}

/// Cosines and sines `[positions, half]` of the pairs of a row.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a, T> {
    /// Cosines.
    pub cos: &'a [T],
    /// Sines.
    pub sin: &'a [T],
    /// Pairs of a row.
    pub half: usize,
}

/// Turns the rows of `x` `[rows, 2·half]` in place; row i by the angles at `position(i)`, or back when
/// `back`.
///
/// # Panics
/// When a position lies outside the tables or `x` is no whole number of rows.
pub fn turn<T: Real>(
    x: &mut [T],
    tables: Tables<T>,
    pairs: Pairs,
    position: impl Fn(usize) -> usize + Sync,
    back: bool,
) {
    let Tables { cos, sin, half } = tables;
    let width = 2 * half;
    let sign = if back { -T::ONE } else { T::ONE };
    assert!(x.len().is_multiple_of(width), "length of a rotation");
    x.par_chunks_mut(ROWS * width).enumerate().for_each(|(piece, rows)| {
        vectorised!(|| {
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                let at = position(piece * ROWS + i) * half;
                let (cos, sin) = (&cos[at..at + half], &sin[at..at + half]);
                for j in 0..half {
                    let (first, second) = match pairs {
                        Pairs::Halves => (j, j + half),
                        Pairs::Interleaved => (2 * j, 2 * j + 1),
                    };
                    let (a, b, s) = (row[first], row[second], sign * sin[j]);
                    row[first] = a * cos[j] - b * s;
                    row[second] = b * cos[j] + a * s;
                }
            }
        });
    });
}
