//! What an entry of the catalogue is, in the same plain words as the main command's catalogue.

use crate::training::Run;
use serde::Serialize;
use shikha::defects::Answer;
pub use shikha::defects::{Kind, Verdict};

/// The version of Burn that the catalogue is of.
pub const BURN: &str = "0.22.1";

/// Why a check could not come to a verdict.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The memory of the process could not be read.
    #[error("cannot read the memory in use from /proc/self/statm: {0}; this check needs Linux")]
    Memory(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A check or a control.
pub type Check = fn() -> Result<Verdict, CheckError>;

/// What the arbiter is asked.
#[derive(Clone, Copy)]
pub enum Asked {
    /// It judges a model with the defect (`true`) or with the workaround.
    Model(fn(bool) -> Answer),
    /// There is nothing to ask here: what it takes.
    NotHere(&'static str),
}

/// A short training run.
#[derive(Clone, Copy)]
pub enum Training {
    /// The loss of every step, with the defect (`true`) or without, from the weights and data of a seed.
    Runs(fn(bool, u64) -> Run),
    /// No curve can exist, and why.
    NoCurve(&'static str),
}

/// One defect.
#[derive(Clone, Copy, Serialize)]
pub struct Entry {
    /// Name on the command line.
    pub id: &'static str,
    /// What happens, in one line.
    pub title: &'static str,
    /// The harm.
    pub kind: Kind,
    /// The first public report known to us, as issue or pull-request numbers of the framework.
    pub report: Option<&'static str>,
    /// Why this is one of the abstract's three in our reading; `None` when it is not.
    pub reading: Option<&'static str>,
    /// The file that the entry is in, for its reproducer.
    #[serde(skip)]
    pub source: &'static str,
    /// Shows the defect.
    #[serde(skip)]
    pub reproduce: Check,
    /// The same with the workaround; must come out absent.
    #[serde(skip)]
    pub control: Check,
    /// A model for the arbiter.
    #[serde(skip)]
    pub arbiter: Asked,
    /// Would a loss curve show it?
    #[serde(skip)]
    pub training: Training,
    /// What the control does instead.
    pub workaround: &'static str,
}

impl Entry {
    /// Whether only a build with a GPU backend can run it.
    pub fn needs_gpu(&self) -> bool {
        matches!(self.arbiter, Asked::NotHere(_))
    }
}
