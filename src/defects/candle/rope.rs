//! `rotary_emb::rope`: fused, applied without a backward pass, so queries and keys stay untrained.

use crate::defects::probe::tensor;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, FUSED, Kind, Training};
use candle_core::{DType, Result, Tensor};
use candle_nn::rotary_emb;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-rope",
    title: "rotary_emb::rope gives no gradient: all query and key projections stay as initialised",
    kind: Kind::MissingGradient,
    report: Some("#3568"),
    reading: Some(FUSED),
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "rotary_emb::rope_slow",
    source: include_str!("rope.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[1, 2, 5, 4], 1, DType::F32)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    let angles = tensor(&[5, 2], 2, DType::F32)?;
    rotary_emb::rope(x, &angles.cos()?, &angles.sin()?)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    let angles = tensor(&[5, 2], 2, DType::F32)?;
    rotary_emb::rope_slow(x, &angles.cos()?, &angles.sin()?)
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let turn = if defective { rotary_emb::rope } else { rotary_emb::rope_slow };
    Decoder { turn, ..Decoder::HEALTHY }.run(seed)
}
