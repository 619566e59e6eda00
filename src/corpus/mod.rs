//! Manifests, text, token shards and the loader.

mod document;
pub mod source;

pub use document::{Document, ParallelPair, ParallelSet};
