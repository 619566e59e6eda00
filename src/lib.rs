//! Shikha: a Bangla-first language model from recipe to report, in Rust, with every gradient checked.
//!
//! The rooms, from the ground up; a room uses rooms on lower floors only.
//!
//! | floor | room | holds |
//! |---|---|---|
//! | 7 | [`notebook`] | what the cells of a notebook use |
//! | 6 | [`pipeline`] | the stages of a run, in order, each skipped when nothing it is made from changed |
//! | 5 | [`report`] | claims ledger, tables, figures |
//! | 4 | [`eval`] | loss per token, character and byte, with intervals; the random twin |
//! | 4 | [`defects`] | what Candle and Burn do wrong as training backends |
//! | 3 | [`train`] | trainer, optimizer, schedule, checkpoints, metrics |
//! | 2 | [`model`] | configuration, decoder, initialisation, generation |
//! | 2 | [`arbiter`] | does every parameter learn? five questions for any framework |
//! | 1 | [`ops`] | differentiable fused ops |
//! | 1 | [`tokenizer`] | pre-tokenizers, BPE training, fertility |
//! | 1 | [`corpus`] | manifests, text, token shards, the loader |
//! | 0 | [`recipe`], [`rng`], [`statistics`], [`artifact`], [`progress`], [`machine`], [`error`] | what every floor stands on |

// What a user causes is an error of its kind; only tests unwrap.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

pub mod arbiter;
pub mod artifact;
pub mod corpus;
pub mod defects;
pub mod error;
pub mod eval;
pub mod machine;
pub mod model;
pub mod notebook;
pub mod ops;
pub mod pipeline;
pub mod progress;
pub mod recipe;
pub mod report;
pub mod rng;
pub mod statistics;
pub mod tokenizer;
pub mod train;
