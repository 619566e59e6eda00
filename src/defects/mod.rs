//! The defect catalogue: what Candle, and in a program of its own Burn, does wrong as a training backend, proven by
//! running.
//!
//! Each entry is a file: what happens, a check that shows it, a control that comes out clean with the
//! workaround, a model for the arbiter, and a short training run with and without. A verdict is never
//! assumed from a version: everything runs, in a process of its own, so that a crash is a result and
//! not the end. We know the report's abstract only; which entries are its "five" is our reading, and
//! the catalogue is larger.

mod burn;
mod candle;
mod caught;
mod curve;
mod entry;
mod isolate;
mod matrix;
pub mod meter;
mod misbehave;
mod probe;
mod reading;
mod record;
mod reproducer;
mod training;

pub use burn::BurnList;
pub use caught::{Answer, Caught};
pub use curve::{Curves, SEEDS, Shows};
pub use entry::{Check, Entry, Kind, Op, Seen, Training, Verdict};
pub use isolate::{Limits, Outcome, end_with_parent, run_child};
pub use matrix::{Found, Matrix, Pair, Version};
pub use misbehave::misbehaving;
pub use probe::judge_gradient;
pub use reading::{ATTENTION, FIVE, FUSED, MEMORY, PRECISION, Reading, STATE, THREE, burn_readings, readings};
pub use record::{Aspect, CANDLE, Listed, Outcomes, Record, Runner, run_all};
pub use reproducer::reproducer;
pub use training::STEPS;

/// Every entry, in a fixed order.
pub fn catalogue() -> Vec<Entry> {
    candle::entries()
}
