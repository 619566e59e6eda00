//! `rotary_emb::rope_thd`: fused, applied without a backward pass; it has no slow version.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-rope-thd",
    title: "rotary_emb::rope_thd gives no gradient",
    kind: Kind::MissingGradient,
    report: Some("#3568"),
    reading: Some("near certain as a class: the abstract names fused kernels that silently give no gradient"),
    reproduce,
    control,
    workaround: "rotary_emb::rope_slow on the transposed input",
};

fn tables() -> Result<(Tensor, Tensor)> {
    let angles = tensor(&[5, 2], 2, DType::F32)?;
    Ok((angles.cos()?, angles.sin()?))
}

fn reproduce() -> Result<Verdict> {
    let (cos, sin) = tables()?;
    judge_gradient(&|x| candle_nn::rotary_emb::rope_thd(x, &cos, &sin), &tensor(&[1, 5, 2, 4], 1, DType::F32)?)
}

fn control() -> Result<Verdict> {
    let (cos, sin) = tables()?;
    let transposed = |x: &Tensor| {
        let turned = candle_nn::rotary_emb::rope_slow(&x.transpose(1, 2)?.contiguous()?, &cos, &sin)?;
        turned.transpose(1, 2)?.contiguous()
    };
    judge_gradient(&transposed, &tensor(&[1, 5, 2, 4], 1, DType::F32)?)
}
