//! `scatter_add`: the first input loses the gradient of the places that were added to.

use crate::defects::probe::tensor;
use crate::defects::training::sandwich;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-scatter-add",
    title: "scatter_add takes from its first input the gradient of places that were added to",
    kind: Kind::PartialGradient,
    report: None,
    reading: None,
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "add a scattered tensor of zeros to the first input",
    source: include_str!("scatter_add.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[2, 4], 1, DType::F64)
}

/// Every even row is added to at 2, 0, 1, every odd one at 1, 3, 0; one of them twice.
fn places(rows: usize) -> Result<Tensor> {
    let places: Vec<u32> = [2, 0, 1, 1, 1, 3, 3, 0].into_iter().cycle().take(4 * rows).collect();
    Tensor::from_vec(places, (rows, 4), &Device::Cpu)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    x.scatter_add(&places(x.dim(0)?)?, &tensor(x.dims(), 2, x.dtype())?, 1)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    let source = tensor(x.dims(), 2, x.dtype())?;
    x + x.zeros_like()?.scatter_add(&places(x.dim(0)?)?, &source, 1)?
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let op = if defective { defect } else { control };
    sandwich(|x| op(x)?.tanh(), &[16, 4], seed)
}
