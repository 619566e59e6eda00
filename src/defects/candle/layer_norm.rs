//! `ops::layer_norm`: fused, applied without a backward pass.

use crate::defects::probe::tensor;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, FUSED, Kind, Training};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-layer-norm",
    title: "ops::layer_norm gives no gradient to its input, gain or bias",
    kind: Kind::MissingGradient,
    report: Some("#3011"),
    reading: Some(FUSED),
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "ops::layer_norm_slow",
    source: include_str!("layer_norm.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[3, 6], 1, DType::F32)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::layer_norm(x, &tensor(&[6], 2, DType::F32)?, &tensor(&[6], 3, DType::F32)?, 1e-5)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::layer_norm_slow(x, &tensor(&[6], 2, DType::F32)?, &tensor(&[6], 3, DType::F32)?, 1e-5)
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let fused: fn(&Tensor, &Tensor) -> Result<Tensor> =
        |x, gain| candle_nn::ops::layer_norm(x, gain, &gain.zeros_like()?, 1e-5);
    let slow: fn(&Tensor, &Tensor) -> Result<Tensor> =
        |x, gain| candle_nn::ops::layer_norm_slow(x, gain, &gain.zeros_like()?, 1e-5);
    Decoder { norm: if defective { fused } else { slow }, ..Decoder::HEALTHY }.run(seed)
}
