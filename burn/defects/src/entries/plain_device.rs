//! A part of the model built on a device without automatic differentiation.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{device, judge_training, tensor};
use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{DType, Device};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-plain-device",
    title: "parameters built on a device without autodiff mix with the others and are never trained, in silence",
    kind: Kind::MissingGradient,
    report: None,
    reading: None,
    reproduce: || judge(&Device::flex()),
    control: || judge(&device()),
    workaround: "one autodiff device for the whole model",
};

fn judge(first: &Device) -> Result<Verdict, CheckError> {
    let weight = Param::from_tensor(tensor([16, 8], 2, DType::F32, first));
    let bias = Some(Param::from_tensor(tensor([8], 3, DType::F32, &device())));
    let input = tensor([4, 16], 1, DType::F32, &device());
    Ok(judge_training(Linear { weight, bias }, |l| l.forward(input.clone()).square().mean()))
}
