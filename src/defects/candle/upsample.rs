//! `upsample_nearest2d`: the backward pass overwrites what other uses of the input have added.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-upsample-nearest2d",
    title: "upsample_nearest2d overwrites the gradient of other uses of its input",
    kind: Kind::WrongGradient,
    report: Some("#3507"),
    reading: None,
    reproduce,
    control,
    workaround: "unsqueeze and expand",
};

/// The input is used twice: upsampled, and as it is.
fn twice(x: &Tensor, upsampled: Tensor) -> Result<Tensor> {
    upsampled.sum_all()?.sqr()? + x.sqr()?.sum_all()?
}

fn reproduce() -> Result<Verdict> {
    judge_gradient(&|x| twice(x, x.upsample_nearest2d(4, 4)?), &tensor(&[1, 1, 2, 2], 1, DType::F64)?)
}

fn control() -> Result<Verdict> {
    let expanded = |x: &Tensor| x.reshape((1, 1, 2, 1, 2, 1))?.expand((1, 1, 2, 2, 2, 2))?.reshape((1, 1, 4, 4));
    judge_gradient(&|x| twice(x, expanded(x)?), &tensor(&[1, 1, 2, 2], 1, DType::F64)?)
}
