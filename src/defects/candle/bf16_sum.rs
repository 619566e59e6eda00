//! Sums of bf16 tensors are accumulated in bf16 on the CPU: they stop growing.

use crate::arbiter::Precision;
use crate::arbiter::candle::Model;
use crate::defects::probe::tensor;
use crate::defects::training::{self, normal, weight};
use crate::defects::{Check, Entry, Kind, PRECISION, Training};
use candle_core::{DType, Device, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-bf16-sum",
    title: "The sum of 32,000 bf16 ones on the CPU is 256",
    kind: Kind::Precision,
    report: Some("#3727"),
    reading: Some(PRECISION),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "cast to f32 before the sum",
    source: include_str!("bf16_sum.rs"),
};

// reproducer {
fn sum(through: DType) -> Result<(bool, String)> {
    let ones = Tensor::ones(32_000, DType::BF16, &Device::Cpu)?;
    let sum: f64 = ones.to_dtype(through)?.sum_all()?.to_dtype(DType::F64)?.to_scalar()?;
    Ok(((sum - 32_000.0).abs() > 320.0, format!("the sum of 32,000 ones is {sum}")))
}

fn defect() -> Result<(bool, String)> {
    sum(DType::BF16)
}
// }

fn control() -> Result<(bool, String)> {
    sum(DType::F32)
}

/// A mean square over 2,048 bf16 numbers.
fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::from_tensor(&tensor(&[2048], 1, DType::F32)?)?;
    let (used, through) = (w.clone(), if defective { DType::BF16 } else { DType::F32 });
    let loss = move |_: &[Tensor]| {
        let squares = used.to_dtype(DType::BF16)?.sqr()?.to_dtype(through)?;
        (squares.sum_all()?.to_dtype(DType::F32)? / 2048.0)?.sqr()
    };
    let model = Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss);
    Ok(if defective { model.loss_in(Precision::Bf16) } else { model })
}

/// The mean squared error of 2,048 bf16 numbers.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let w = weight(&[8, 32], 0.3, seed, "w", DType::F32)?;
    let teacher = normal(&[8, 32], 0.7, seed, "teacher")?;
    let through = if defective { DType::BF16 } else { DType::F32 };
    training::train(std::slice::from_ref(&w), |step| {
        let x = normal(&[64, 8], 1.0, seed, &format!("batch/{step}"))?;
        let error = (x.matmul(&w)? - x.matmul(&teacher)?)?.to_dtype(DType::BF16)?.sqr()?;
        error.to_dtype(through)?.sum_all()?.to_dtype(DType::F32)? / 2048.0
    })
}
