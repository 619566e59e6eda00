//! AdamW (I. Loshchilov, F. Hutter, ICLR 2019) in place, in one pass over memory.
//!
//! With g the gradient times `gradient_scale`, t the step counted from 1:
//! m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², θ ← θ − η·λ·θ − η·m̂/(√v̂ + ε) with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ).

use super::Real;
use super::parallel::{ELEMENTS, vectorised};
use rayon::prelude::*;

/// The constants of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// η.
    pub learning_rate: f64,
    /// β₁.
    pub beta1: f64,
    /// β₂.
    pub beta2: f64,
    /// ε.
    pub epsilon: f64,
    /// λ; 0 for parameters that must not decay.
    pub weight_decay: f64,
    /// Factor on the gradient, for clipping by global norm.
    pub gradient_scale: f64,
    /// Steps including this one, from 1.
    pub step: u64,
}

/// Moves `parameter` by one step and updates its two moments.
///
/// # Panics
/// When the lengths differ.
pub fn step<T: Real>(parameter: &mut [T], gradient: &[T], first: &mut [T], second: &mut [T], settings: &Settings) {
    let n = parameter.len();
    assert_eq!((gradient.len(), first.len(), second.len()), (n, n, n), "lengths of an optimizer step");
    let power = settings.step.min(i32::MAX as u64) as i32;
    let of = |x: f64| T::from_f64(x);
    let (beta1, rest1, beta2, rest2) =
        (of(settings.beta1), of(1.0 - settings.beta1), of(settings.beta2), of(1.0 - settings.beta2));
    let rate = of(settings.learning_rate / (1.0 - settings.beta1.powi(power)));
    let correct = of(1.0 / (1.0 - settings.beta2.powi(power)));
    let (keep, epsilon) = (of(1.0 - settings.learning_rate * settings.weight_decay), of(settings.epsilon));
    let scale = of(settings.gradient_scale);
    let pieces = parameter.par_chunks_mut(ELEMENTS).zip(gradient.par_chunks(ELEMENTS));
    let pieces = pieces.zip(first.par_chunks_mut(ELEMENTS)).zip(second.par_chunks_mut(ELEMENTS));
    pieces.for_each(|(((parameter, gradient), first), second)| {
        vectorised!(|| {
            // Slices of one known length: without bounds to check the loop becomes vector code.
            let n = parameter.len();
            let (parameter, gradient) = (&mut parameter[..n], &gradient[..n]);
            let (first, second) = (&mut first[..n], &mut second[..n]);
            for i in 0..n {
                let g = gradient[i] * scale;
                first[i] = beta1 * first[i] + rest1 * g;
                second[i] = beta2 * second[i] + rest2 * g * g;
                let change = rate * first[i] / ((second[i] * correct).sqrt() + epsilon);
                parameter[i] = parameter[i] * keep - change;
            }
        });
    });
}
