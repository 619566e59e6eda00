//! Evaluation: how well a model predicts text it has not seen, beside its random-initialised twin and
//! the simplest models of the same text.
//!
//! Losses are compared per token, per character and per byte of the same text, never across
//! languages: a Bangla byte carries less than an English one.

pub mod choice;
mod error;
mod loss;
mod memorisation;
mod ngram;
mod scored;

pub use error::EvalError;
pub use loss::{EvalReport, Evaluation, Group, Losses, MODELS, evaluate};
pub use memorisation::Memorisation;
pub use ngram::{LIMIT, Ngram, ORDER};
pub use scored::document_nats;
