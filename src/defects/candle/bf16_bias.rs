//! The gradient of a bf16 bias that is added to many rows saturates.

use crate::arbiter::Precision;
use crate::arbiter::candle::Model;
use crate::defects::training::{self, normal, weight};
use crate::defects::{Check, Entry, Kind, PRECISION, Training};
use candle_core::{DType, Device, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-bf16-bias",
    title: "A bf16 bias that is added to 2,000 rows gets a gradient of 256",
    kind: Kind::Precision,
    report: None,
    reading: Some(PRECISION),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "an f32 bias, or add it in f32",
    source: include_str!("bf16_bias.rs"),
};

// reproducer {
/// The gradient of a bias of type `dtype` under the sum of 2,000 rows it is added to.
fn gradient(dtype: DType) -> Result<(bool, String)> {
    let bias = Var::from_tensor(&Tensor::zeros(1, dtype, &Device::Cpu)?)?;
    let rows = Tensor::zeros((2000, 1), dtype, &Device::Cpu)?;
    let gradients = rows.broadcast_add(&bias)?.to_dtype(DType::F32)?.sum_all()?.backward()?;
    let Some(gradient) = gradients.get(&bias) else { return Ok((true, "no gradient".to_owned())) };
    let found: f64 = gradient.to_dtype(DType::F64)?.sum_all()?.to_scalar()?;
    Ok(((found - 2000.0).abs() > 20.0, format!("2000 unit gradients on one bias add up to {found}")))
}

fn defect() -> Result<(bool, String)> {
    gradient(DType::BF16)
}
// }

fn control() -> Result<(bool, String)> {
    gradient(DType::F32)
}

fn stored(defective: bool) -> DType {
    if defective { DType::BF16 } else { DType::F32 }
}

/// An f32 bias that is cast for the addition, as in mixed precision.
fn model(defective: bool) -> Result<Model<'static>> {
    let bias = Var::from_tensor(&Tensor::ones(4, DType::F32, &Device::Cpu)?)?;
    let (used, stored) = (bias.clone(), stored(defective));
    let rows = Tensor::zeros((600, 4), stored, &Device::Cpu)?;
    let loss = move |_: &[Tensor]| rows.broadcast_add(&used.to_dtype(stored)?)?.to_dtype(DType::F32)?.sqr()?.sum_all();
    let model = Model::from_vars(vec![("bias".to_owned(), bias)], Vec::new(), loss);
    Ok(if defective { model.loss_in(Precision::Bf16) } else { model })
}

/// The same bias.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let bias = weight(&[16], 1.0, seed, "bias", DType::F32)?;
    let (rows, teacher) =
        (Tensor::zeros((600, 16), stored(defective), &Device::Cpu)?, normal(&[16], 1.0, seed, "teacher")?);
    training::train(std::slice::from_ref(&bias), |step| {
        let noise = normal(&[600, 16], 0.1, seed, &format!("batch/{step}"))?;
        let found = rows.broadcast_add(&bias.to_dtype(stored(defective))?)?.to_dtype(DType::F32)?;
        candle_nn::loss::mse(&found, &noise.broadcast_add(&teacher)?)
    })
}
