//! `scatter_add`: the first input loses the gradient of the places that were added to.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-scatter-add",
    title: "scatter_add takes from its first input the gradient of places that were added to",
    kind: Kind::WrongGradient,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "add a scattered tensor of zeros to the first input",
};

fn places() -> Result<Tensor> {
    Tensor::new(&[[2u32, 0, 1, 1], [1, 3, 3, 0]], &Device::Cpu)
}

fn reproduce() -> Result<Verdict> {
    let source = tensor(&[2, 4], 2, DType::F64)?;
    judge_gradient(&|x| x.scatter_add(&places()?, &source, 1), &tensor(&[2, 4], 1, DType::F64)?)
}

fn control() -> Result<Verdict> {
    let source = tensor(&[2, 4], 2, DType::F64)?;
    let zeros = Tensor::zeros((2, 4), DType::F64, &Device::Cpu)?;
    judge_gradient(&|x| x + zeros.scatter_add(&places()?, &source, 1)?, &tensor(&[2, 4], 1, DType::F64)?)
}
