//! `ops::softmax_last_dim`: fused, applied without a backward pass, so attention scores never learn.

use crate::defects::probe::tensor;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, FUSED, Kind, Training};
use candle_core::{D, DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-softmax-last-dim",
    title: "ops::softmax_last_dim gives no gradient: all query and key projections stay as initialised",
    kind: Kind::MissingGradient,
    report: Some("#3569"),
    reading: Some(FUSED),
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "ops::softmax(x, D::Minus1)",
    source: include_str!("softmax_last_dim.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[3, 6], 1, DType::F32)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::softmax_last_dim(x)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::softmax(x, D::Minus1)
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let softmax = if defective { defect } else { control };
    Decoder { softmax, ..Decoder::HEALTHY }.run(seed)
}
