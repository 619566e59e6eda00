//! Differentiable fused ops.
//!
//! At the bottom each op is a pair of functions over slices, forward and backward, row-major, generic
//! over [`Real`]; the trainer walks the model over them without a graph. The bits of every result are
//! the same for any number of threads. `assert`s guard the lengths: a wrong one is a mistake in the
//! caller, never in a user's data.

pub mod adamw;
pub mod attention;
pub mod bf16;
pub mod candle;
pub mod composed;
pub mod cuda;
pub mod embedding;
pub mod layer_norm;
pub mod linear;
pub mod linear_cross_entropy;
pub mod matmul;
pub mod norm;
mod parallel;
mod peak;
mod real;
pub mod rms_norm;
pub mod rope;
pub mod rope_rows;
mod shared;
pub mod softmax;
pub mod swiglu;

pub use crate::recipe::Precision;
pub(crate) use parallel::in_pool;
pub use peak::gemm_peak;
pub use real::Real;

/// A target that adds neither loss nor gradient.
pub const IGNORE: u32 = u32::MAX;
