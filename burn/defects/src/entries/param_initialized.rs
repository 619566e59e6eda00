//! `Param::initialized`: takes any tensor, also one that is no leaf.

use crate::asked::ask_layer;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{bias, device, judge_training, tensor};
use crate::training::{HIDDEN, train_layer, weight};
use burn::module::{Param, ParamId};
use burn::nn::Linear;
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-param-initialized",
    title: "Param::initialized takes a tensor that is no leaf and never trains it, in silence",
    kind: Kind::MissingGradient,
    report: None,
    reading: None,
    source: include_str!("param_initialized.rs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| ask_layer(layer(defective, weight([16, 8], 0)))),
    training: Training::Runs(|defective, seed| train_layer(layer(defective, weight([8, HIDDEN], seed)), seed)),
    workaround: "Param::from_tensor, which asks for the gradient itself",
};

/// A layer that holds `weight`.
fn layer(defective: bool, weight: Tensor<2>) -> Linear {
    let bias = bias(weight.dims()[1]);
    let weight = if defective { Param::initialized(ParamId::new(), weight) } else { Param::from_tensor(weight) };
    Linear { weight, bias }
}

fn judge(defective: bool) -> Result<Verdict, CheckError> {
    let input = tensor([4, 16], 1, DType::F32, &device());
    let layer = layer(defective, tensor([16, 8], 2, DType::F32, &device()));
    Ok(judge_training(layer, |l| l.forward(input.clone()).square().mean()))
}
