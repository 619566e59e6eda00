//! The machine's matrix-product peak, measured: what a share of the peak is a share of.

use super::in_pool;
use super::matmul::{Threads, View, ViewMut, matmul};
use std::time::Instant;

/// Side of the square product that is timed.
const SIDE: usize = 1024;
/// Repetitions, of which the fastest counts.
const REPEATS: usize = 30;

/// Floating-point operations per second of a square f32 product on all threads, measured now.
pub fn gemm_peak() -> f64 {
    in_pool(measure)
}

fn measure() -> f64 {
    let (a, b) = (vec![0.5f32; SIDE * SIDE], vec![0.25f32; SIDE * SIDE]);
    let mut c = vec![0f32; SIDE * SIDE];
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = Instant::now();
        let view = |data| View::new(data, SIDE, SIDE, SIDE);
        matmul(ViewMut::new(&mut c, SIDE, SIDE, SIDE), view(&a), view(&b), 1.0, false, Threads::All);
        best = best.min(start.elapsed().as_secs_f64());
    }
    2.0 * (SIDE as f64).powi(3) / best
}
