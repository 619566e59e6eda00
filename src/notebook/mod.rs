//! What the cells of a notebook use: the rooms of the library, Candle as the library links it, figures and tables that
//! show themselves, the committed results, and checks against them.
//!
//! Candle must be used through here alone. A notebook whose cells link Candle each for itself counts its tensors anew
//! in every cell, and `backward` then loses gradients without an error (`candle-notebook-identities` of the catalogue).

mod check;
mod error;
mod live;
mod pocket;
mod show;
mod stored;

pub use check::{check, check_that, check_within};
pub use error::NotebookError;
pub use live::{LiveRun, told};
pub use pocket::{Pocket, pocket};
pub use stored::{Stored, stored};

pub use crate::{
    arbiter, artifact, corpus, defects, eval, model, ops, pipeline, progress, recipe, report, rng, statistics,
    tokenizer, train,
};
pub use candle_core;
pub use candle_core::{DType, Device, Tensor, Var};
pub use candle_nn;

pub use crate::arbiter::{Question, Questions, Verdict, judge};
pub use crate::corpus::Document;
pub use crate::eval::EvalReport;
pub use crate::model::{Config, Decoder, Parameters, Sampler, Session, Window, initialise};
pub use crate::pipeline::Exported;
pub use crate::progress::Progress;
pub use crate::recipe::Recipe;
pub use crate::report::figure::{Figure, Series, lines};
pub use crate::report::{Ledger, Table};
pub use crate::rng::Stream;
pub use crate::tokenizer::fertility::Fertility;
pub use crate::tokenizer::study::Walk;
pub use crate::tokenizer::{PreTokenizer, Tokenizer, TokenizerError};
pub use crate::train::plan::Plan;
pub use crate::train::{Row, Summary};
pub use std::collections::BTreeMap;
