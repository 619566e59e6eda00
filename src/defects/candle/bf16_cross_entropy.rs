//! The cross-entropy of bf16 logits inherits the saturating sum.

use crate::arbiter::Precision;
use crate::arbiter::candle::Model;
use crate::defects::probe::tensor;
use crate::defects::training::{self, normal, weight};
use crate::defects::{Check, Entry, Kind, PRECISION, Training};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::loss::cross_entropy;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-bf16-cross-entropy",
    title: "cross_entropy of uniform bf16 logits over 32,000 tokens is far from ln(32,000)",
    kind: Kind::Precision,
    report: Some("#3727"),
    reading: Some(PRECISION),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "cast the logits to f32",
    source: include_str!("bf16_cross_entropy.rs"),
};

// reproducer {
fn loss(dtype: DType) -> Result<(bool, String)> {
    let logits = Tensor::zeros((2, 32_000), DType::BF16, &Device::Cpu)?.to_dtype(dtype)?;
    let targets = Tensor::new(&[1u32, 2], &Device::Cpu)?;
    let loss: f64 = cross_entropy(&logits, &targets)?.to_dtype(DType::F64)?.to_scalar()?;
    let exact = 32_000f64.ln();
    Ok(((loss - exact).abs() > 0.1, format!("loss {loss:.2} nats, exact {exact:.2}")))
}

fn defect() -> Result<(bool, String)> {
    loss(DType::BF16)
}
// }

fn control() -> Result<(bool, String)> {
    loss(DType::F32)
}

const VOCABULARY: usize = 2000;

/// The loss of hidden states [rows, 8] under a head, its logits cast to bf16.
fn head(x: &Tensor, head: &Tensor, targets: &Tensor, through: DType) -> Result<Tensor> {
    let logits = x.matmul(head)?.to_dtype(DType::BF16)?.to_dtype(through)?;
    cross_entropy(&logits, targets)?.to_dtype(DType::F32)
}

fn through(defective: bool) -> DType {
    if defective { DType::BF16 } else { DType::F32 }
}

fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::from_tensor(&tensor(&[8, VOCABULARY], 1, DType::F32)?)?;
    let (used, through) = (w.clone(), through(defective));
    let (x, targets) = (tensor(&[3, 8], 2, DType::F32)?, Tensor::new(&[1u32, 2, 1999], &Device::Cpu)?);
    let loss = move |_: &[Tensor]| head(&x, &used, &targets, through);
    let model = Model::from_vars(vec![("head".to_owned(), w)], Vec::new(), loss);
    Ok(if defective { model.loss_in(Precision::Bf16) } else { model })
}

/// Tells eight sources apart in a vocabulary of 2,000.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let w = weight(&[8, VOCABULARY], 0.3, seed, "head", DType::F32)?;
    let targets = Tensor::from_vec((0..8u32).map(|i| 17 * i).collect(), 8, &Device::Cpu)?;
    training::train(std::slice::from_ref(&w), |step| {
        let noise = normal(&[8, 8], 0.1, seed, &format!("batch/{step}"))?;
        head(&(Tensor::eye(8, DType::F32, &Device::Cpu)? + noise)?, &w, &targets, through(defective))
    })
}
