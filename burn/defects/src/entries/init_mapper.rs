//! `Param::init_mapper` on a parameter whose value exists already: the mapped value is no leaf.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{device, judge_training, tensor};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::DType;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-init-mapper",
    title: "Param::init_mapper leaves a parameter that was looked at before without a gradient; the first step says nothing",
    kind: Kind::MissingGradient,
    report: Some("#5705 (the lazy case only)"),
    reading: Some("possible: a silent missing gradient is what a gradient-flow check finds"),
    reproduce: || judge(true),
    control: || judge(false),
    workaround: "call init_mapper before anything reads the value",
};

fn judge(look: bool) -> Result<Verdict, CheckError> {
    let device = device();
    let Linear { weight, bias } = LinearConfig::new(16, 8).init(&device);
    if look {
        let _ = weight.val();
    }
    let layer = Linear { weight: weight.init_mapper(|w| w * 0.02), bias };
    let input = tensor([4, 16], 1, DType::F32, &device);
    Ok(judge_training(layer, |l| l.forward(input.clone()).square().mean()))
}
