//! The ops of ours that controls and the arbiter use.

#[path = "../../src/ops/adamw.rs"]
pub mod adamw;
#[path = "../../src/ops/embedding.rs"]
pub mod embedding;
#[path = "../../src/ops/norm.rs"]
pub mod norm;
#[path = "../../src/ops/parallel.rs"]
mod parallel;
#[path = "../../src/ops/real.rs"]
mod real;

pub use real::Real;

/// A target that adds neither loss nor gradient.
pub const IGNORE: u32 = u32::MAX;
