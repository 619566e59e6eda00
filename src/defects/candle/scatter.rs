//! `scatter`: the overwritten places of the first input still get a gradient.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-scatter",
    title: "scatter gives its first input the gradient of places that were overwritten",
    kind: Kind::WrongGradient,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "mask the first input and add a one-hot product",
};

fn places() -> Result<Tensor> {
    Tensor::new(&[[2u32, 0], [1, 3]], &Device::Cpu)
}

fn reproduce() -> Result<Verdict> {
    let source = tensor(&[2, 2], 2, DType::F64)?;
    judge_gradient(&|x| x.scatter(&places()?, &source, 1), &tensor(&[2, 4], 1, DType::F64)?)
}

fn control() -> Result<Verdict> {
    let source = tensor(&[2, 2], 2, DType::F64)?;
    let composed = |x: &Tensor| {
        let kept = Tensor::new(&[[0f64, 1., 0., 1.], [1., 0., 1., 0.]], &Device::Cpu)?;
        let placed = Tensor::zeros((2, 4), DType::F64, &Device::Cpu)?.scatter(&places()?, &source, 1)?;
        (x * kept)? + placed
    };
    judge_gradient(&composed, &tensor(&[2, 4], 1, DType::F64)?)
}
