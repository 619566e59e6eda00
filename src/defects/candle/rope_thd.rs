//! `rotary_emb::rope_thd`: fused, applied without a backward pass, so queries and keys stay untrained.

use crate::defects::probe::tensor;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, FUSED, Kind, Training};
use candle_core::{DType, Result, Tensor};
use candle_nn::rotary_emb;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-rope-thd",
    title: "rotary_emb::rope_thd gives no gradient, and there is no slow version of it",
    kind: Kind::MissingGradient,
    report: Some("#3568"),
    reading: Some(FUSED),
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "rotary_emb::rope_slow on the transposed input",
    source: include_str!("rope_thd.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[1, 5, 2, 4], 1, DType::F32)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    let angles = tensor(&[5, 2], 2, DType::F32)?;
    rotary_emb::rope_thd(x, &angles.cos()?, &angles.sin()?)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    let angles = tensor(&[5, 2], 2, DType::F32)?;
    slow(x, &angles.cos()?, &angles.sin()?)
}

/// On the transposed input.
fn slow(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    rotary_emb::rope_slow(&x.transpose(1, 2)?.contiguous()?, cos, sin)?.transpose(1, 2)?.contiguous()
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let fused: fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor> =
        |x, cos, sin| rotary_emb::rope_thd(&x.transpose(1, 2)?.contiguous()?, cos, sin)?.transpose(1, 2)?.contiguous();
    let turn = if defective { fused } else { rotary_emb::rope_slow };
    Decoder { turn, ..Decoder::HEALTHY }.run(seed)
}
