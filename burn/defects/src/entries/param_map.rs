//! `Param::map`: the mapped tensor is a result, no leaf, so the parameter is never trained.

use crate::asked::ask_layer;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{bias, device, judge_training, tensor};
use crate::training::{HIDDEN, train_layer, weight};
use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-param-map",
    title: "Param::map (for instance to scale a weight at the start) leaves the parameter without a gradient; the first step says nothing, the second panics",
    kind: Kind::MissingGradient,
    report: None,
    reading: Some("possible: a silent missing gradient is what a gradient-flow check finds"),
    source: include_str!("param_map.rs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| ask_layer(layer(defective, weight([16, 8], 0)))),
    training: Training::Runs(|defective, seed| train_layer(layer(defective, weight([8, HIDDEN], seed)), seed)),
    workaround: "end the closure with .detach().require_grad()",
};

/// A layer that holds `weight`.
fn layer(defective: bool, weight: Tensor<2>) -> Linear {
    let bias = bias(weight.dims()[1]);
    // The scaling of residual projections at the start of training, as GPT-2 has it.
    let scaled = |w: Tensor<2>| w * 0.5;
    let weight = Param::from_tensor(weight);
    let weight = if defective { weight.map(scaled) } else { weight.map(|w| scaled(w).detach().require_grad()) };
    Linear { weight, bias }
}

fn judge(defective: bool) -> Result<Verdict, CheckError> {
    let input = tensor([4, 16], 1, DType::F32, &device());
    let layer = layer(defective, tensor([16, 8], 2, DType::F32, &device()));
    Ok(judge_training(layer, |l| l.forward(input.clone()).square().mean()))
}
