//! `Module::to_device` after first use: the moved parameters are no leaves.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{device, judge_training, tensor};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{DType, Device};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-to-device",
    title: "Module::to_device after first use, even to the same device, leaves every parameter without a gradient; the first step says nothing",
    kind: Kind::MissingGradient,
    report: Some("documented behaviour"),
    reading: None,
    reproduce: || judge(Linear::to_device),
    control: || judge(Linear::fork),
    workaround: "Module::fork, or move before first use",
};

fn judge(moved: fn(Linear, &Device) -> Linear) -> Result<Verdict, CheckError> {
    let device = device();
    let layer = LinearConfig::new(16, 8).init(&device);
    let input = tensor([4, 16], 1, DType::F32, &device);
    let _ = layer.forward(input.clone());
    // Something that is trained, so that the loss has a tape at all.
    let anchor = tensor([8], 4, DType::F32, &device).require_grad();
    let loss = |l: &Linear| (l.forward(input.clone()) + anchor.clone().unsqueeze()).square().mean();
    Ok(judge_training(moved(layer, &device), loss))
}
