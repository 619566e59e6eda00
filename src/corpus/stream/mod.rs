//! A corpus that is too large to be read before training: Parquet files, read while training goes on.
//!
//! For each language the documents stand in one order: source after source as in the manifest, file after file, row
//! group after row group, row after row. [`Rows`] reads them in slices of a size that does not depend on the size of
//! anything; [`Feed`] cleans and encodes a slice on all cores and keeps its tokens as one [`Chunk`]: a token shard
//! with, beside it, where in the files it begins and ends. Where a slice ends is decided by the text alone. So what a
//! killed program leaves is a number of whole chunks, and the next one goes on at the exact row, in the middle of a
//! row group or not. [`Streamed`] makes batches of the chunks: batch *n* is the same whatever happened before it, and
//! waits until its tokens are there.

mod batches;
mod bounded;
mod chunk;
mod feed;
mod rows;
mod thrift;

pub use batches::{Streamed, tokens_needed};
pub use chunk::{Chunk, Position};
pub use feed::{Cleaning, Feed, Order, Progressed, SLICE};
pub use rows::{Rows, Slice};
