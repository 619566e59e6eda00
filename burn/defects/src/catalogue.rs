//! What an entry of the catalogue is, in the same plain words as the main command's catalogue.

use serde::Serialize;

/// What kind of harm a defect does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A gradient that should be there is not.
    MissingGradient,
    /// A gradient is there and wrong.
    WrongGradient,
    /// Values lose their precision.
    Precision,
    /// Memory that should be free is held.
    Memory,
    /// Far slower than the machine allows.
    Speed,
    /// The process ends.
    Crash,
    /// An interface that accepts a mistake in silence.
    Interface,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "evidence", rename_all = "kebab-case")]
pub enum Verdict {
    /// The defect shows, with the numbers that show it.
    Present(String),
    /// It does not, with the numbers that show that.
    Absent(String),
    /// It takes hardware that is not here: which, and the command to run there.
    NeedsHardware(String),
}

impl Verdict {
    /// [`Verdict::Present`] when `present`, else [`Verdict::Absent`], with the same evidence.
    pub fn when(present: bool, evidence: String) -> Self {
        if present { Verdict::Present(evidence) } else { Verdict::Absent(evidence) }
    }
}

/// Why a check could not come to a verdict.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A parameter that the check needs is not in the module.
    #[error("the module has no parameter called `{0}`: the check no longer fits this version of Burn")]
    NoParameter(String),
    /// The memory of the process could not be read.
    #[error("cannot read the memory in use from /proc/self/statm: {0}; this check needs Linux")]
    Memory(String),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A check or a control.
pub type Check = fn() -> Result<Verdict, CheckError>;

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
    /// Shows the defect.
    #[serde(skip)]
    pub reproduce: Check,
    /// The same with the workaround; must come out absent.
    #[serde(skip)]
    pub control: Check,
    /// What the control does instead.
    pub workaround: &'static str,
}
