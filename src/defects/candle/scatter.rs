//! `scatter`: the overwritten places of the first input still get a gradient.

use crate::defects::probe::tensor;
use crate::defects::training::sandwich;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-scatter",
    title: "scatter gives its first input the gradient of places that were overwritten",
    kind: Kind::WrongGradient,
    report: None,
    reading: None,
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "mask the first input and add a one-hot product",
    source: include_str!("scatter.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[2, 4], 1, DType::F64)
}

/// Places 2 and 0 of every even row, 1 and 3 of every odd one, take the numbers of `source`.
fn places(rows: usize) -> Result<Tensor> {
    let places: Vec<u32> = [2, 0, 1, 3].into_iter().cycle().take(2 * rows).collect();
    Tensor::from_vec(places, (rows, 2), &Device::Cpu)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    let source = tensor(&[x.dim(0)?, 2], 2, x.dtype())?;
    x.scatter(&places(x.dim(0)?)?, &source, 1)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    let rows = x.dim(0)?;
    let kept: Vec<f64> = [0., 1., 0., 1., 1., 0., 1., 0.].into_iter().cycle().take(4 * rows).collect();
    let kept = Tensor::from_vec(kept, (rows, 4), &Device::Cpu)?.to_dtype(x.dtype())?;
    let placed = kept.zeros_like()?.scatter(&places(rows)?, &tensor(&[rows, 2], 2, x.dtype())?, 1)?;
    (x * kept)? + placed
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let op = if defective { defect } else { control };
    sandwich(|x| op(x)?.tanh(), &[16, 4], seed)
}
