//! Why a run stopped.

use crate::artifact::ArtifactError;
use crate::corpus::CorpusError;
use crate::corpus::source::SourceError;
use crate::error::FileError;
use crate::eval::EvalError;
use crate::model::ModelError;
use crate::recipe::RecipeError;
use crate::report::ReportError;
use crate::tokenizer::TokenizerError;
use crate::train::TrainError;
use std::path::PathBuf;

/// Why a run stopped: the error of the room that refused.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// From the recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// From the manifest, the mirror or a download.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// From cleaning, shards or the loader.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// From the tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// From the model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// From training.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// From the evaluation.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// From figures, tables or claims.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// From the run directory.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An artifact of the run directory does not parse.
    #[error("{}: {source}; delete it and run again", path.display())]
    Json {
        /// The artifact.
        path: PathBuf,
        /// The parser's words.
        source: serde_json::Error,
    },
    /// Stored measurements are not what was stored.
    #[error("{}: is not what its hash says; it was changed, so measure again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Committed figures or tables are not what the stored measurements give.
    #[error("not what the stored measurements give: {}; `make figures` draws them again", files.join(", "))]
    Stale {
        /// Paths in the repository.
        files: Vec<String>,
    },
    /// The run directory holds the checkpoints of another recipe.
    #[error(
        "{}: holds checkpoints of another recipe ({} differ); use another --run-dir, or start over here with --force",
        directory.display(), changed.join(", ")
    )]
    OtherRecipe {
        /// The run directory.
        directory: PathBuf,
        /// The parts of the recipe that differ.
        changed: Vec<&'static str>,
    },
    /// A directory that holds no model.
    #[error(
        "{}: neither a run (no recipe.toml) nor a Hugging Face directory (no config.json); name the directory of a finished run or of a model",
        directory.display()
    )]
    NoModel {
        /// The directory.
        directory: PathBuf,
    },
    /// A model may not be written over a run.
    #[error("{}: is the directory of a run; choose another with --out", directory.display())]
    IsRun {
        /// The directory.
        directory: PathBuf,
    },
    /// Only a finished run has a record.
    #[error(
        "{}: {done} of {steps} steps are done; finish it with `shikha resume {}` before it is recorded",
        directory.display(), directory.display()
    )]
    Unfinished {
        /// The run directory.
        directory: PathBuf,
        /// Steps done.
        done: u64,
        /// Steps of its recipe.
        steps: u64,
    },
    /// It was not noted where a run was trained.
    #[error(
        "{}: there is no sittings.json, so what it was trained on is not known; an earlier program trained it, train again with --force",
        directory.display()
    )]
    NoSittings {
        /// The run directory.
        directory: PathBuf,
    },
    /// Training was stopped from outside after saving.
    #[error("stopped at step {step} as asked; everything is saved, `shikha resume {run_dir}` goes on")]
    Interrupted {
        /// The last finished step.
        step: u64,
        /// The run directory.
        run_dir: String,
    },
}
