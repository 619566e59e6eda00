//! Why training stopped or did not start.

use crate::error::FileError;
use crate::model::ModelError;
use std::path::PathBuf;

/// Why training stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The training text cannot be had.
    #[error(transparent)]
    Corpus(#[from] crate::corpus::CorpusError),
    /// The model refused its weights or its input.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The arbiter could not run the model.
    #[error("the arbiter's pre-flight: {0}")]
    Arbiter(crate::arbiter::ModelFault),
    /// A GPU refused.
    #[error("{0}")]
    Device(String),
    /// A GPU was asked for that this program cannot use.
    #[error(
        "this program was built without the feature `cuda` and uses no GPU; build it with `cargo build --release \
         --features cuda`, or let the processor do it with --or-cpu"
    )]
    NoCuda,
    /// A gradient died or exploded during training.
    #[error(transparent)]
    Monitor(#[from] crate::arbiter::monitor::Alarm),
    /// A parameter would not learn.
    #[error("training does not start: {}; the whole verdict is in {}", .findings.join("; "), report.display())]
    Preflight {
        /// Each failed question, naming its parameter.
        findings: Vec<String>,
        /// Where the verdict was written.
        report: PathBuf,
    },
    /// The checkpoints of a directory belong to another run.
    #[error(
        "{}: its checkpoints were made from another {}; continue in another --run-dir, or start over here with --force",
        directory.display(), changed.join(", ")
    )]
    OtherRun {
        /// The run directory.
        directory: PathBuf,
        /// What differs.
        changed: Vec<String>,
    },
    /// A checkpoint cannot be used.
    #[error("checkpoint {}: {problem}", path.display())]
    Checkpoint {
        /// The checkpoint's directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A checkpoint of another version of the program.
    #[error("checkpoint {}: is of format {found}, this program reads format {expected}; use the program that wrote it", path.display())]
    OtherFormat {
        /// The checkpoint's directory.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The format this program reads.
        expected: u32,
    },
    /// Every checkpoint of a directory is damaged: starting over would remove what may still be saved.
    #[error(
        "{}: none of its checkpoints can be used{}; nothing was changed: put back what is damaged, continue in another --run-dir, or start over here with --force",
        directory.display(), reasons(rejected)
    )]
    NothingUsable {
        /// The run directory.
        directory: PathBuf,
        /// Why each was refused, the newest first.
        rejected: Vec<String>,
    },
    /// There is nothing to resume.
    #[error("{}: no usable checkpoint to resume from{}; start the run with `shikha train`", directory.display(), reasons(rejected))]
    NothingToResume {
        /// The run directory.
        directory: PathBuf,
        /// Checkpoints that were found and why they were refused.
        rejected: Vec<String>,
    },
    /// No benchmark of that name.
    #[error("there is no benchmark preset called `{0}`: use `bench-17m` or `bench-1m`")]
    Preset(String),
    /// A process that was to measure one point of a curve did not answer.
    #[error("{command}: {message}")]
    Child {
        /// How it was started.
        command: String,
        /// What it said, or why it could not be started.
        message: String,
    },
    /// The metrics file does not parse.
    #[error("{}, line {line}: {message}; delete the line and those after it", path.display())]
    Metrics {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A record does not say what it said.
    #[error("{}: {message}; take the record from where it was made, or use the program that wrote it", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The list of sittings does not parse.
    #[error("{}: {message}; it says which machines a run sat on, delete it and that is not known", path.display())]
    Sittings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The parameters or moments are no numbers any more: saving them would push out a good checkpoint.
    #[error(
        "step {step}: a parameter or moment is not finite, so this state is not saved; lower train.learning_rate, \
         the last checkpoint is unharmed"
    )]
    Diverged {
        /// The step.
        step: u64,
    },
    /// Several steps in a row had a loss far above the usual one.
    #[error(
        "step {step}: {count} steps in a row had a loss far above the usual {usual:.2} nats a token, the last {loss:.2}, and were \
         skipped; lower train.learning_rate or look at the batches, the last checkpoint is unharmed"
    )]
    Spike {
        /// The last step tried.
        step: u64,
        /// Steps skipped in a row.
        count: u32,
        /// Its loss, nats per token.
        loss: f64,
        /// Mean of the losses before.
        usual: f64,
    },
    /// Several steps in a row had a loss or a gradient that is no number.
    #[error(
        "step {step}: {count} steps in a row had a loss or gradient that is not finite and were skipped; \
         lower train.learning_rate or look at the batches, the last checkpoint is unharmed"
    )]
    NotFinite {
        /// The last step tried.
        step: u64,
        /// Steps skipped in a row.
        count: u32,
    },
}

fn reasons(rejected: &[String]) -> String {
    if rejected.is_empty() { String::new() } else { format!(" ({})", rejected.join("; ")) }
}
