//! Label smoothing builds its targets in the device's default dtype, whatever the logits are.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{device, numbers, tensor};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{DType, FloatDType, Int, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-cross-entropy-dtype",
    title: "cross-entropy with label smoothing or class weights panics on logits that are not the default dtype",
    kind: Kind::Crash,
    report: None,
    reading: None,
    reproduce: || judge(|logits| logits),
    control: || judge(|logits| logits.cast(FloatDType::F32)),
    workaround: "cast the logits to f32 before the loss",
};

fn judge(prepare: fn(Tensor<2>) -> Tensor<2>) -> Result<Verdict, CheckError> {
    let device = device();
    let logits = tensor([3, 5], 1, DType::BF16, &device);
    let targets = Tensor::<1, Int>::from_ints([0, 4, 2], &device);
    let loss = CrossEntropyLossConfig::new().with_smoothing(Some(0.1)).init(&device);
    // A panic ends the process here and is the evidence.
    let value = numbers(loss.forward(prepare(logits), targets));
    let evidence = format!("bf16 logits with label smoothing 0.1: loss {value:.4?}");
    Ok(Verdict::when(!value.iter().all(|v| v.is_finite()), evidence))
}
