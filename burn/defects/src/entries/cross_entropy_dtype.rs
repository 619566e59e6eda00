//! Label smoothing builds its targets in the device's default dtype, whatever the logits are.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{device, numbers, tensor};
use crate::training::{RATE, adamw, by, train};
use burn::module::{Module, Param};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{DType, FloatDType, Int, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-cross-entropy-dtype",
    title: "cross-entropy with label smoothing or class weights panics on logits that are not the default dtype",
    kind: Kind::Crash,
    report: None,
    reading: None,
    source: include_str!("cross_entropy_dtype.rs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| ask(logits(), move |l: &Logits, _| loss(l.logits.val(), defective))),
    training: Training::Runs(|defective, _| {
        train(logits(), by(adamw(), RATE), |l: &Logits, _| loss(l.logits.val(), defective))
    }),
    workaround: "cast the logits to f32 before the loss",
};

#[derive(Module, Debug)]
struct Logits {
    logits: Param<Tensor<2>>,
}

fn logits() -> Logits {
    Logits { logits: Param::from_tensor(tensor([3, 5], 1, DType::BF16, &device())) }
}

/// Cross-entropy with label smoothing of logits as they are, or in f32.
fn loss(logits: Tensor<2>, defective: bool) -> Tensor<1> {
    let logits = if defective { logits } else { logits.cast(FloatDType::F32) };
    let device = logits.device();
    let targets = Tensor::<1, Int>::from_ints([0, 4, 2], &device);
    CrossEntropyLossConfig::new().with_smoothing(Some(0.1)).init(&device).forward(logits, targets)
}

fn judge(defective: bool) -> Result<Verdict, CheckError> {
    // A panic ends the process here and is the evidence.
    let value = numbers(loss(tensor([3, 5], 1, DType::BF16, &device()), defective));
    let evidence = format!("bf16 logits with label smoothing 0.1: loss {value:.4?}");
    Ok(Verdict::when(!value.iter().all(|v| v.is_finite()), evidence))
}
