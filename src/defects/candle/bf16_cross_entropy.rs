//! The cross-entropy of bf16 logits inherits the saturating sum.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-bf16-cross-entropy",
    title: "cross_entropy of uniform bf16 logits over 32,000 tokens is far from ln(32,000)",
    kind: Kind::Precision,
    report: Some("#3727"),
    reading: None,
    reproduce,
    control,
    workaround: "cast the logits to f32",
};

fn loss(dtype: DType) -> Result<Verdict> {
    let logits = Tensor::zeros((2, 32_000), DType::BF16, &Device::Cpu)?.to_dtype(dtype)?;
    let targets = Tensor::new(&[1u32, 2], &Device::Cpu)?;
    let loss: f64 = candle_nn::loss::cross_entropy(&logits, &targets)?.to_dtype(DType::F64)?.to_scalar()?;
    let exact = 32_000f64.ln();
    Ok(Verdict::when((loss - exact).abs() > 0.1, format!("loss {loss:.2} nats, exact {exact:.2}")))
}

fn reproduce() -> Result<Verdict> {
    loss(DType::BF16)
}

fn control() -> Result<Verdict> {
    loss(DType::F32)
}
