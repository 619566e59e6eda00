//! Evaluation: how well a model predicts text it has not seen, beside its random-initialised twin.
//!
//! Losses are compared per token, per character and per byte of the same text, never across
//! languages: a Bangla byte carries less than an English one.

mod error;
mod loss;

pub use error::EvalError;
pub use loss::{EvalReport, Evaluation, Group, Losses, evaluate};
