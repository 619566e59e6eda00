//! `ops::softmax_last_dim`: fused, applied without a backward pass, so attention scores never learn.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{D, DType, Result};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-softmax-last-dim",
    title: "ops::softmax_last_dim gives no gradient: all query and key projections stay as initialised",
    kind: Kind::MissingGradient,
    report: Some("#3569"),
    reading: Some("near certain as a class: the abstract names fused kernels that silently give no gradient"),
    reproduce,
    control,
    workaround: "ops::softmax(x, D::Minus1)",
};

fn reproduce() -> Result<Verdict> {
    judge_gradient(&candle_nn::ops::softmax_last_dim, &tensor(&[3, 6], 1, DType::F32)?)
}

fn control() -> Result<Verdict> {
    judge_gradient(&|x| candle_nn::ops::softmax(x, D::Minus1), &tensor(&[3, 6], 1, DType::F64)?)
}
