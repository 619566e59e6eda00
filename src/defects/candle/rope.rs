//! `rotary_emb::rope`: fused, applied without a backward pass, so queries and keys stay untrained.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-rope",
    title: "rotary_emb::rope gives no gradient: all query and key projections stay as initialised",
    kind: Kind::MissingGradient,
    report: Some("#3568"),
    reading: Some("near certain as a class: the abstract names fused kernels that silently give no gradient"),
    reproduce,
    control,
    workaround: "rotary_emb::rope_slow",
};

fn tables() -> Result<(Tensor, Tensor)> {
    let angles = tensor(&[5, 2], 2, DType::F32)?;
    Ok((angles.cos()?, angles.sin()?))
}

fn reproduce() -> Result<Verdict> {
    let (cos, sin) = tables()?;
    judge_gradient(&|x| candle_nn::rotary_emb::rope(x, &cos, &sin), &tensor(&[1, 2, 5, 4], 1, DType::F32)?)
}

fn control() -> Result<Verdict> {
    let (cos, sin) = tables()?;
    judge_gradient(&|x| candle_nn::rotary_emb::rope_slow(x, &cos, &sin), &tensor(&[1, 2, 5, 4], 1, DType::F32)?)
}
