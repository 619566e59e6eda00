//! A tuned choice of kernel is applied to a product that it does not fit.

use crate::catalogue::{Asked, Entry, Kind, Training};
use crate::growth::{Build, Sizes, attempt};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-autotune-corruption",
    title: "with fusion and autotune, a cached choice of kernel can be invalid for a size and corrupt values in silence",
    kind: Kind::WrongGradient,
    report: Some("#5352"),
    reading: Some("possible: silent corruption in training that only a comparison finds"),
    source: include_str!("autotune_corruption.rs"),
    reproduce: || attempt("burn-autotune-corruption", Build::Fusion, Sizes::Uneven),
    control: || attempt("burn-autotune-corruption", Build::Plain, Sizes::Uneven),
    arbiter: Asked::NotHere("an NVIDIA GPU: the models are trained by the check itself"),
    training: Training::NoCurve("not run here"),
    workaround: "build without fusion or without autotune; sizes that are multiples of 8",
};
