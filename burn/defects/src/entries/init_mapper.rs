//! `Param::init_mapper` on a parameter whose value exists already: the mapped value is no leaf.

use crate::asked::ask_layer;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{bias, device, judge_training, tensor};
use crate::training::{HIDDEN, train_layer, weight};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-init-mapper",
    title: "Param::init_mapper leaves a parameter that was looked at before without a gradient; the first step says nothing",
    kind: Kind::MissingGradient,
    report: Some("#5705 (the lazy case only)"),
    reading: Some("possible: a silent missing gradient is what a gradient-flow check finds"),
    source: include_str!("init_mapper.rs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| ask_layer(layer(defective, weight([16, 8], 0)))),
    training: Training::Runs(|defective, seed| train_layer(layer(defective, weight([8, HIDDEN], seed)), seed)),
    workaround: "call init_mapper before anything reads the value",
};

/// A layer that holds `weight`.
fn layer(defective: bool, weight: Tensor<2>) -> Linear {
    let [inputs, outputs] = weight.dims();
    // Of the drawn value, as a user's closure is, and another for every seed.
    let moved = move |drawn: Tensor<2>| drawn * 0.5 + weight.clone();
    let fresh = LinearConfig::new(inputs, outputs).init(&device()).weight;
    let _read = defective.then(|| fresh.val());
    Linear { weight: fresh.init_mapper(moved), bias: bias(outputs) }
}

fn judge(defective: bool) -> Result<Verdict, CheckError> {
    let input = tensor([4, 16], 1, DType::F32, &device());
    let weight = tensor([16, 8], 2, DType::F32, &device());
    Ok(judge_training(layer(defective, weight), |l| l.forward(input.clone()).square().mean()))
}
