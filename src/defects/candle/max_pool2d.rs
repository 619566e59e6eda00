//! `max_pool2d`: the gradient of the largest element is divided by the size of the window.

use crate::defects::probe::tensor;
use crate::defects::training::sandwich;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-max-pool2d",
    title: "max_pool2d divides the gradient by the size of the window",
    kind: Kind::WrongGradient,
    report: None,
    reading: None,
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "reshape and max",
    source: include_str!("max_pool2d.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[1, 1, 4, 4], 1, DType::F64)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    x.max_pool2d(2)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    x.reshape((x.dim(0)?, 1, 2, 2, 2, 2))?.max(5)?.max(3)
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    sandwich(if defective { defect } else { control }, &[16, 1, 4, 4], seed)
}
