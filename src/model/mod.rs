//! The decoder: a stock Llama-layout model that walks itself forward and backward.
//!
//! Parameters and gradients are one flat buffer each with a table of names, so that the optimizer, the
//! norm and the checkpoint are one pass over memory. The backward pass is written beside the forward
//! pass, block by block, over the slice functions of [`crate::ops`]; no graph is built, so nothing can
//! cut it silently, and the f64 instance is checked against finite differences for every parameter.

mod block;
mod config;
mod decoder;
pub mod device;
mod error;
mod generate;
mod hugging_face;
mod initialise;
mod memory;
mod parameters;
mod weights;

pub use config::Config;
pub use decoder::{Decoder, LossSum, Window};
pub use error::ModelError;
pub use generate::{Sampler, Session};
pub use hugging_face::{read_model, write_model};
pub use initialise::initialise;
pub use memory::{Memory, training_memory};
pub use parameters::{Parameters, Tensor};
pub use weights::{WeightType, export_weights, load_weights, save_weights};
