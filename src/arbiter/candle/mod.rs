//! The adapter for Candle: variables with names, a closure that gives the loss, an optimizer.

mod cut;
mod model;
mod tracer;

pub use model::Model;
pub use tracer::Tracer;
