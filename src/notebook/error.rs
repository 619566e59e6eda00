//! Why a cell could not go on.

use crate::corpus::CorpusError;
use crate::corpus::source::SourceError;
use crate::error::FileError;
use crate::model::ModelError;
use crate::pipeline::PipelineError;
use crate::recipe::RecipeError;
use crate::report::ReportError;
use crate::tokenizer::TokenizerError;
use crate::train::TrainError;

/// Why a cell could not go on.
#[derive(Debug, thiserror::Error)]
pub enum NotebookError {
    /// The notebook runs outside a checkout of the repository.
    #[error("there is no checkpoints/reference/kept.json here or above: open the notebook inside the repository")]
    NoRepository,
    /// A committed figure, table or number that does not exist.
    #[error("there is no {what} called `{name}`; paper/generated/registry.md lists those there are")]
    Unknown {
        /// `figure`, `table`, `number` or `catalogue entry`.
        what: &'static str,
        /// The name asked for.
        name: String,
    },
    /// From reading what is stored.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// From a file.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Errors of the lower rooms, by way of the pipeline's.
macro_rules! through_pipeline {
    ($($error:ty),*) => {
        $(impl From<$error> for NotebookError {
            fn from(error: $error) -> Self {
                NotebookError::Pipeline(error.into())
            }
        })*
    };
}

through_pipeline!(RecipeError, SourceError, CorpusError, TokenizerError, ModelError, TrainError, ReportError);
