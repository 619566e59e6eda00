//! `Param::initialized`: takes any tensor, also one that is no leaf.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{device, judge_training, tensor};
use burn::module::{Param, ParamId};
use burn::nn::Linear;
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-param-initialized",
    title: "Param::initialized takes a tensor that is no leaf and never trains it, in silence",
    kind: Kind::MissingGradient,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "Param::from_tensor, which asks for the gradient itself",
};

fn reproduce() -> Result<Verdict, CheckError> {
    judge(|weight| Param::initialized(ParamId::new(), weight))
}

fn control() -> Result<Verdict, CheckError> {
    judge(Param::from_tensor)
}

fn judge(parameter: fn(Tensor<2>) -> Param<Tensor<2>>) -> Result<Verdict, CheckError> {
    let device = device();
    let weight = parameter(tensor([16, 8], 2, DType::F32, &device));
    let bias = Some(Param::from_tensor(tensor([8], 3, DType::F32, &device)));
    let input = tensor([4, 16], 1, DType::F32, &device);
    Ok(judge_training(Linear { weight, bias }, |l| l.forward(input.clone()).square().mean()))
}
