//! Training: a loop whose every step is a pure function of the seed and the step before, so that a run
//! that was stopped anywhere goes on to the same bits.

pub mod bench;
mod checkpoint;
pub mod cost;
mod device;
mod engine;
mod error;
pub mod gpu;
mod interrupt;
mod metrics;
pub mod plan;
mod preflight;
pub mod record;
mod schedule;
mod sitting;
mod spike;
mod trainer;

pub use crate::machine::peak_memory;
pub use checkpoint::{Checkpoint, Identity, Rejected, State, checkpoint_dir, latest};
pub use device::{device, measured_peak};
pub use engine::{Engine, MakeEngine, processor};
pub use error::TrainError;
pub use interrupt::Interrupt;
pub use metrics::{Machine, Row, deterministic_hash, read_metrics};
pub use preflight::preflight;
pub use schedule::learning_rate;
pub use sitting::{SITTINGS, Sitting, sit_down, sittings, stand_up};
pub use trainer::{Outcome, Setup, Start, Summary, train, train_on};
