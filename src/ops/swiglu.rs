//! SwiGLU's gate (N. Shazeer, arXiv:2002.05202): out = silu(a)·b with silu(a) = a·σ(a).
//!
//! da = dout·b·σ(a)·(1 + a·(1 − σ(a))) and db = dout·silu(a).

use super::Real;
use super::parallel::{ELEMENTS, vectorised};
use rayon::prelude::*;

#[inline(always)]
fn sigmoid<T: Real>(x: T) -> T {
    T::ONE / (T::ONE + (-x).exp())
}

/// `out` = silu(`gate`)·`up`, element by element.
///
/// # Panics
/// When the lengths differ.
pub fn forward<T: Real>(gate: &[T], up: &[T], out: &mut [T]) {
    assert_eq!((gate.len(), up.len()), (out.len(), out.len()), "lengths of a gate");
    let pieces = gate.par_chunks(ELEMENTS).zip(up.par_chunks(ELEMENTS)).zip(out.par_chunks_mut(ELEMENTS));
    pieces.for_each(|((gate, up), out)| {
        vectorised!(|| {
            for ((out, a), b) in out.iter_mut().zip(gate).zip(up) {
                *out = *a * sigmoid(*a) * *b;
            }
        });
    });
}

/// Overwrites `dgate` and `dup` with the gradients.
///
/// # Panics
/// When the lengths differ.
pub fn backward<T: Real>(gate: &[T], up: &[T], dout: &[T], dgate: &mut [T], dup: &mut [T]) {
    let n = dout.len();
    assert_eq!((gate.len(), up.len(), dgate.len(), dup.len()), (n, n, n, n), "lengths of a gate");
    let inputs = gate.par_chunks(ELEMENTS).zip(up.par_chunks(ELEMENTS)).zip(dout.par_chunks(ELEMENTS));
    let pieces = inputs.zip(dgate.par_chunks_mut(ELEMENTS)).zip(dup.par_chunks_mut(ELEMENTS));
    pieces.for_each(|((((gate, up), dout), dgate), dup)| {
        vectorised!(|| {
            let n = dout.len();
            let (gate, up, dgate, dup) = (&gate[..n], &up[..n], &mut dgate[..n], &mut dup[..n]);
            for i in 0..n {
                let s = sigmoid(gate[i]);
                let silu = gate[i] * s;
                dgate[i] = dout[i] * up[i] * (s + silu * (T::ONE - s));
                dup[i] = dout[i] * silu;
            }
        });
    });
}
