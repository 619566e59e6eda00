//! `upsample_nearest2d`: the backward pass overwrites what other uses of the input have added.

use crate::defects::probe::tensor;
use crate::defects::training::sandwich;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-upsample-nearest2d",
    title: "upsample_nearest2d overwrites the gradient of other uses of its input",
    kind: Kind::PartialGradient,
    report: Some("#3507"),
    reading: None,
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "unsqueeze and expand",
    source: include_str!("upsample.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[1, 1, 2, 2], 1, DType::F64)
}

/// The input is used twice: upsampled, and as it is.
fn twice(x: &Tensor, upsampled: Tensor) -> Result<Tensor> {
    upsampled.sum_all()?.sqr()? + x.sqr()?.sum_all()?
}

fn defect(x: &Tensor) -> Result<Tensor> {
    twice(x, x.upsample_nearest2d(4, 4)?)
}
// }

/// Each number four times.
fn expand(x: &Tensor) -> Result<Tensor> {
    let rows = x.dim(0)?;
    x.reshape((rows, 1, 2, 1, 2, 1))?.expand((rows, 1, 2, 2, 2, 2))?.reshape((rows, 1, 4, 4))
}

fn control(x: &Tensor) -> Result<Tensor> {
    twice(x, expand(x)?)
}

/// A skip connection around the upsampling.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let middle = |x: &Tensor| {
        let x = x.tanh()?;
        let large = if defective { x.upsample_nearest2d(4, 4)? } else { expand(&x)? };
        Tensor::cat(&[large.flatten_from(1)?, x.flatten_from(1)?], 1)
    };
    sandwich(middle, &[16, 1, 2, 2], seed)
}
