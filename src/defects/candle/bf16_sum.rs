//! Sums of bf16 tensors are accumulated in bf16 on the CPU: they stop growing.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Device, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-bf16-sum",
    title: "The sum of 32,000 bf16 ones on the CPU is 256",
    kind: Kind::Precision,
    report: Some("#3727"),
    reading: Some("medium, with low precision as a class"),
    reproduce,
    control,
    workaround: "cast to f32 before the sum",
};

fn sum(through: DType) -> Result<Verdict> {
    let ones = Tensor::ones(32_000, DType::BF16, &Device::Cpu)?;
    let sum: f64 = ones.to_dtype(through)?.sum_all()?.to_dtype(DType::F64)?.to_scalar()?;
    Ok(Verdict::when((sum - 32_000.0).abs() > 320.0, format!("the sum of 32,000 ones is {sum}")))
}

fn reproduce() -> Result<Verdict> {
    sum(DType::BF16)
}

fn control() -> Result<Verdict> {
    sum(DType::F32)
}
