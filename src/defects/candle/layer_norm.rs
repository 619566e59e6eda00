//! `ops::layer_norm`: fused, applied without a backward pass.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-layer-norm",
    title: "ops::layer_norm gives no gradient to its input, gain or bias",
    kind: Kind::MissingGradient,
    report: Some("#3011"),
    reading: Some("near certain as a class: the abstract names fused kernels that silently give no gradient"),
    reproduce,
    control,
    workaround: "ops::layer_norm_slow",
};

fn reproduce() -> Result<Verdict> {
    let (gain, bias) = (tensor(&[6], 2, DType::F32)?, tensor(&[6], 3, DType::F32)?);
    judge_gradient(&|x| candle_nn::ops::layer_norm(x, &gain, &bias, 1e-5), &tensor(&[3, 6], 1, DType::F32)?)
}

fn control() -> Result<Verdict> {
    let (gain, bias) = (tensor(&[6], 2, DType::F32)?, tensor(&[6], 3, DType::F32)?);
    judge_gradient(&|x| candle_nn::ops::layer_norm_slow(x, &gain, &bias, 1e-5), &tensor(&[3, 6], 1, DType::F32)?)
}
