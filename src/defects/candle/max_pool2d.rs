//! `max_pool2d`: the gradient of the largest element is divided by the size of the window.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-max-pool2d",
    title: "max_pool2d divides the gradient by the size of the window",
    kind: Kind::WrongGradient,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "reshape and max",
};

fn reproduce() -> Result<Verdict> {
    judge_gradient(&|x| x.max_pool2d(2), &tensor(&[1, 1, 4, 4], 1, DType::F64)?)
}

fn control() -> Result<Verdict> {
    let pooled = |x: &Tensor| x.reshape((1, 1, 2, 2, 2, 2))?.max(5)?.max(3);
    judge_gradient(&pooled, &tensor(&[1, 1, 4, 4], 1, DType::F64)?)
}
