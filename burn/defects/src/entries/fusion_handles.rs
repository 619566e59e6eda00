//! Kernel fusion loses count of its tensors and panics in the middle of a run.

use crate::catalogue::{Asked, Entry, Kind, Training};
use crate::growth::{Build, Sizes, attempt};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-fusion-handles",
    title: "with kernel fusion, training panics midway: a handle is missing or the order of operations is lost",
    kind: Kind::Crash,
    report: Some("#4347, #4582"),
    reading: Some("likely as a family: the abstract names a crash in fusion that comes in the middle of training"),
    source: include_str!("fusion_handles.rs"),
    reproduce: || attempt("burn-fusion-handles", Build::Fusion, Sizes::Long),
    control: || attempt("burn-fusion-handles", Build::Plain, Sizes::Long),
    arbiter: Asked::NotHere("an NVIDIA GPU: the models are trained by the check itself"),
    training: Training::NoCurve("not run here"),
    workaround: "build without fusion",
};
