//! A fused operation panics, tensors are dropped while unwinding, and the process dies.

use crate::catalogue::{Asked, Entry, Kind, Training};
use crate::growth::{Build, Sizes, attempt};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-fusion-segfault",
    title: "with kernel fusion, a panic on the device thread can end in a segmentation fault at large sizes",
    kind: Kind::Crash,
    report: Some("#3777"),
    reading: Some("likely as a family: the abstract names a segmentation fault in fusion at billions of parameters"),
    source: include_str!("fusion_segfault.rs"),
    reproduce: || attempt("burn-fusion-segfault", Build::Fusion, Sizes::Growing),
    control: || attempt("burn-fusion-segfault", Build::Plain, Sizes::Growing),
    arbiter: Asked::NotHere("an NVIDIA GPU: the models are trained by the check itself"),
    training: Training::NoCurve("not run here"),
    workaround: "build without fusion",
};
