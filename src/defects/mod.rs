//! The defect catalogue: what Candle does wrong as a training backend, proven by running.
//!
//! Each entry is a file: what happens, a check that shows it, and a control that comes out clean with
//! the workaround. A verdict is never assumed from a version: the check runs, in a process of its own,
//! so that a crash is a result and not the end. We know the report's abstract only; which entries are
//! its "five" is our reading, and the catalogue is larger.

mod candle;
mod isolate;
mod probe;

pub use isolate::{Limits, Outcome, run_all, run_child};
pub use probe::judge_gradient;

use serde::{Deserialize, Serialize};

/// What kind of harm a defect does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A gradient that should be there is not.
    MissingGradient,
    /// A gradient is there and wrong.
    WrongGradient,
    /// Values lose their precision.
    Precision,
    /// State that a run needs cannot be kept.
    State,
    /// Memory that should be free is held.
    Memory,
    /// The process ends.
    Crash,
    /// Two equal runs differ.
    Reproducibility,
    /// An interface that accepts a mistake in silence.
    Interface,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "evidence", rename_all = "kebab-case")]
pub enum Verdict {
    /// The defect shows, with the numbers that show it.
    Present(String),
    /// It does not, with the numbers that show that.
    Absent(String),
    /// It takes hardware that is not here.
    NeedsHardware(String),
}

impl Verdict {
    /// [`Verdict::Present`] when `present`, else [`Verdict::Absent`], with the same evidence.
    pub fn when(present: bool, evidence: String) -> Self {
        if present { Verdict::Present(evidence) } else { Verdict::Absent(evidence) }
    }
}

/// A check or a control.
pub type Check = fn() -> candle_core::Result<Verdict>;

/// One defect.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name on the command line.
    pub id: &'static str,
    /// What happens, in one line.
    pub title: &'static str,
    /// The harm.
    pub kind: Kind,
    /// The first public report known to us, as issue or pull-request numbers of the framework.
    pub report: Option<&'static str>,
    /// Why this is one of the abstract's five in our reading; `None` when it is not.
    pub reading: Option<&'static str>,
    /// Shows the defect.
    pub reproduce: Check,
    /// The same with the workaround; must come out absent.
    pub control: Check,
    /// What the control does instead.
    pub workaround: &'static str,
}

/// Every entry, in a fixed order.
pub fn catalogue() -> Vec<Entry> {
    candle::entries()
}
