//! `Param::map`: the mapped tensor is a result, no leaf, so the parameter is never trained.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{device, judge_training, tensor};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-param-map",
    title: "Param::map (for instance to scale a weight at the start) leaves the parameter without a gradient; the first step says nothing, the second panics",
    kind: Kind::MissingGradient,
    report: None,
    reading: Some("possible: a silent missing gradient is what a gradient-flow check finds"),
    reproduce,
    control,
    workaround: "end the closure with .detach().require_grad()",
};

fn reproduce() -> Result<Verdict, CheckError> {
    judge(|weight| weight * 0.02)
}

fn control() -> Result<Verdict, CheckError> {
    judge(|weight| (weight * 0.02).detach().require_grad())
}

/// The scaling of residual projections at the start of training, as GPT-2 has it.
fn judge(scale: fn(Tensor<2>) -> Tensor<2>) -> Result<Verdict, CheckError> {
    let device = device();
    let Linear { weight, bias } = LinearConfig::new(16, 8).init(&device);
    let layer = Linear { weight: weight.map(scale), bias };
    let input = tensor([4, 16], 1, DType::F32, &device);
    Ok(judge_training(layer, |l| l.forward(input.clone()).square().mean()))
}
