//! What an entry of the catalogue is, and what its runs found.

use super::reading::Reading;
use crate::arbiter::candle::Model;
use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of harm a defect does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A gradient that should be there is not.
    MissingGradient,
    /// A part of a gradient is not there.
    PartialGradient,
    /// A gradient is there and wrong.
    WrongGradient,
    /// A forward pass gives wrong values.
    WrongValue,
    /// Values lose their precision.
    Precision,
    /// State that a run needs cannot be kept.
    State,
    /// Memory that should be free is held.
    Memory,
    /// Far slower than the machine allows.
    Speed,
    /// The process ends.
    Crash,
    /// Two equal runs differ.
    Reproducibility,
    /// An interface that accepts a mistake in silence.
    Interface,
}

impl Kind {
    /// Every kind, in the order of tables and figures.
    pub const ALL: [Kind; 11] = [
        Kind::MissingGradient,
        Kind::PartialGradient,
        Kind::WrongGradient,
        Kind::WrongValue,
        Kind::Precision,
        Kind::State,
        Kind::Memory,
        Kind::Speed,
        Kind::Crash,
        Kind::Reproducibility,
        Kind::Interface,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::MissingGradient => "missing gradient",
            Kind::PartialGradient => "partial gradient",
            Kind::WrongGradient => "wrong gradient",
            Kind::WrongValue => "wrong value",
            Kind::Precision => "precision",
            Kind::State => "state",
            Kind::Memory => "memory",
            Kind::Speed => "speed",
            Kind::Crash => "crash",
            Kind::Reproducibility => "reproducibility",
            Kind::Interface => "interface",
        })
    }
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "evidence", rename_all = "kebab-case")]
pub enum Verdict {
    /// The defect shows, with the numbers that show it.
    Present(String),
    /// It does not, with the numbers that show that.
    Absent(String),
    /// It takes something that is not here: what, and how to run it there.
    NeedsHardware(String),
}

impl Verdict {
    /// [`Verdict::Present`] when `present`, else [`Verdict::Absent`], with the same evidence.
    pub fn when(present: bool, evidence: String) -> Self {
        if present { Verdict::Present(evidence) } else { Verdict::Absent(evidence) }
    }
}

impl From<Seen> for Verdict {
    fn from((present, evidence): Seen) -> Self {
        Verdict::when(present, evidence)
    }
}

/// Whether the defect shows, and the numbers that show it.
pub type Seen = (bool, String);

/// An op of one tensor.
pub type Op = fn(&Tensor) -> Result<Tensor>;

/// How an entry is checked: every function takes nothing from outside, so that it runs in a process of its own.
#[derive(Clone, Copy)]
pub enum Check {
    /// An op whose gradient is held to finite differences.
    Gradient {
        /// The op with the defect.
        defect: Op,
        /// The same by the workaround.
        control: Op,
        /// Where both are taken.
        input: fn() -> Result<Tensor>,
    },
    /// Anything else.
    Shown {
        /// Shows the defect.
        defect: fn() -> Result<Seen>,
        /// The same with the workaround.
        control: fn() -> Result<Seen>,
        /// A model that has the defect (`true`) or the workaround, for the arbiter.
        model: fn(bool) -> Result<Model<'static>>,
    },
    /// It takes something that is not here: what, and how to run it there.
    Elsewhere(&'static str),
}

/// A short training run.
#[derive(Clone, Copy)]
pub enum Training {
    /// The loss of every step, with the defect (`true`) or without, from the weights and data of a seed.
    Runs(fn(bool, u64) -> Result<Vec<f64>>),
    /// No curve can exist, and why.
    NoCurve(&'static str),
}

/// One defect.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name on the command line.
    pub id: &'static str,
    /// What happens, in one line.
    pub title: &'static str,
    /// The harm.
    pub kind: Kind,
    /// The first public report known to us, as an issue or pull-request number of the framework.
    pub report: Option<&'static str>,
    /// Which of the abstract's five this is in our reading; `None` when it is none.
    pub reading: Option<Reading>,
    /// Shows the defect, and with the workaround that it is gone.
    pub check: Check,
    /// Would a loss curve show it?
    pub training: Training,
    /// What the control does instead.
    pub workaround: &'static str,
    /// The entry's own file, of which the reproducer is made.
    pub source: &'static str,
}

impl Entry {
    /// The check, in this process.
    ///
    /// # Errors
    /// When the framework refuses an op.
    pub fn reproduce(&self) -> Result<Verdict> {
        self.verdict(true)
    }

    /// The same with the workaround; must come out absent.
    ///
    /// # Errors
    /// When the framework refuses an op.
    pub fn control(&self) -> Result<Verdict> {
        self.verdict(false)
    }

    fn verdict(&self, defective: bool) -> Result<Verdict> {
        match self.check {
            Check::Gradient { defect, control, input } => {
                super::judge_gradient(if defective { &defect } else { &control }, &input()?)
            }
            Check::Shown { defect, control, .. } => Ok(if defective { defect() } else { control() }?.into()),
            Check::Elsewhere(what) => Ok(Verdict::NeedsHardware(what.to_owned())),
        }
    }
}
