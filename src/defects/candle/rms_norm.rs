//! `ops::rms_norm`: fused, applied without a backward pass, so everything before it stays untrained.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-rms-norm",
    title: "ops::rms_norm gives no gradient to its input or its gain",
    kind: Kind::MissingGradient,
    report: Some("#2168"),
    reading: Some("near certain as a class: the abstract names fused kernels that silently give no gradient"),
    reproduce,
    control,
    workaround: "ops::rms_norm_slow, or RmsNorm::forward_diff",
};

fn reproduce() -> Result<Verdict> {
    let gain = tensor(&[6], 2, DType::F32)?;
    judge_gradient(&|x| candle_nn::ops::rms_norm(x, &gain, 1e-5), &tensor(&[3, 6], 1, DType::F32)?)
}

fn control() -> Result<Verdict> {
    let gain = tensor(&[6], 2, DType::F32)?;
    judge_gradient(&|x| candle_nn::ops::rms_norm_slow(x, &gain, 1e-5), &tensor(&[3, 6], 1, DType::F32)?)
}
