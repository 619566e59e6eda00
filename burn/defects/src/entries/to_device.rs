//! `Module::to_device` after first use: the moved parameters are no leaves.

use crate::asked::ask_layer;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{bias, device, judge_training, tensor};
use crate::training::{HIDDEN, train_layer, weight};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-to-device",
    title: "Module::to_device after first use, even to the same device, leaves every parameter without a gradient; the first step says nothing",
    kind: Kind::MissingGradient,
    report: Some("documented behaviour"),
    reading: None,
    source: include_str!("to_device.rs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| ask_layer(layer(defective, weight([16, 8], 0)))),
    training: Training::Runs(|defective, seed| train_layer(layer(defective, weight([8, HIDDEN], seed)), seed)),
    workaround: "Module::fork, or move before first use",
};

/// A layer that holds `weight`.
fn layer(defective: bool, weight: Tensor<2>) -> Linear {
    let layer = Linear { bias: bias(weight.dims()[1]), weight: Param::from_tensor(weight) };
    if defective { layer.to_device(&device()) } else { layer.fork(&device()) }
}

fn judge(defective: bool) -> Result<Verdict, CheckError> {
    let input = tensor([4, 16], 1, DType::F32, &device());
    // Something that is trained, so that the loss has a tape at all.
    let anchor = tensor([8], 4, DType::F32, &device()).require_grad();
    let loss = |l: &Linear| (l.forward(input.clone()) + anchor.clone().unsqueeze()).square().mean();
    Ok(judge_training(layer(defective, tensor([16, 8], 2, DType::F32, &device())), loss))
}
