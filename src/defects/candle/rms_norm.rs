//! `ops::rms_norm`: fused, applied without a backward pass, so everything before it stays untrained.

use crate::defects::probe::tensor;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, FUSED, Kind, Training};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-rms-norm",
    title: "ops::rms_norm gives no gradient to its input or its gain",
    kind: Kind::MissingGradient,
    report: Some("#2168"),
    reading: Some(FUSED),
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "ops::rms_norm_slow, or RmsNorm::forward_diff",
    source: include_str!("rms_norm.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[3, 6], 1, DType::F32)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::rms_norm(x, &tensor(&[6], 2, DType::F32)?, 1e-5)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::rms_norm_slow(x, &tensor(&[6], 2, DType::F32)?, 1e-5)
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let fused: fn(&Tensor, &Tensor) -> Result<Tensor> = |x, gain| candle_nn::ops::rms_norm(x, gain, 1e-5);
    let norm = if defective { fused } else { Decoder::HEALTHY.norm };
    Decoder { norm, ..Decoder::HEALTHY }.run(seed)
}
