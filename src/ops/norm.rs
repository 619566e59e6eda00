//! Norms of gradients, summed in f64 in a fixed order.

use super::Real;
use super::parallel::{ELEMENTS, lane_sum, vectorised};
use rayon::prelude::*;

/// Σ x², in f64; NaN or infinite when a value is.
pub fn sum_of_squares<T: Real>(x: &[T]) -> f64 {
    let partial: Vec<f64> =
        x.par_chunks(ELEMENTS).map(|x| vectorised!(|| { lane_sum([x], |[x]| x.to_f64() * x.to_f64()) })).collect();
    partial.iter().sum()
}

/// The factor that brings a gradient of the given norm down to `limit`; 1 when it is below.
pub fn clip_scale(norm: f64, limit: f64) -> f64 {
    if norm > limit { limit / norm } else { 1.0 }
}
