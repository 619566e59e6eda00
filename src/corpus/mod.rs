//! Manifests, text, token shards and the loader.
//!
//! The way through the room, [`prepare()`]: [`source`] reads documents, [`prepare_documents`] normalises them,
//! drops duplicates, splits and keeps held-out text out of training, [`shard`] stores their tokens,
//! [`loader`] makes batches of them, and [`balance`] says how the languages share the whole. A corpus too large for
//! that goes through [`stream`].

pub mod balance;
pub mod contamination;
mod document;
pub mod duplicate;
mod error;
mod lines;
pub mod loader;
pub mod normalise;
mod prepare;
mod prepare_report;
pub mod shard;
pub mod source;
pub mod split;
mod spool;
pub mod stream;

pub use document::{Document, ParallelPair, ParallelSet};
pub use error::CorpusError;
pub use lines::{DocumentWriter, Documents, chunks, documents, read_documents, write_documents};
pub use prepare::{Prepared, Sink, prepare, prepare_documents, prepare_into};
pub use prepare_report::{Amount, CorpusReport, SourceReport};
