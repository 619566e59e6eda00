//! The gradient of a bf16 embedding row that occurs often saturates.

use crate::arbiter::Precision;
use crate::arbiter::candle::Model;
use crate::defects::training::{self, normal, weight};
use crate::defects::{Check, Entry, Kind, PRECISION, Training};
use crate::ops::embedding;
use candle_core::{DType, Device, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-bf16-embedding",
    title: "A bf16 embedding row that occurs 2,000 times gets a gradient of 256",
    kind: Kind::Precision,
    report: None,
    reading: Some(PRECISION),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "an f32 table, or ops::embedding",
    source: include_str!("bf16_embedding.rs"),
};

// reproducer {
const TIMES: usize = 2000;

fn judge(found: f64) -> (bool, String) {
    let seen = format!("{TIMES} unit gradients on one row add up to {found}");
    ((found - TIMES as f64).abs() > 20.0, seen)
}

fn defect() -> Result<(bool, String)> {
    let table = Var::from_tensor(&Tensor::zeros((3, 1), DType::BF16, &Device::Cpu)?)?;
    let ids = Tensor::ones(TIMES, DType::U32, &Device::Cpu)?;
    let gradients = table.index_select(&ids, 0)?.to_dtype(DType::F32)?.sum_all()?.backward()?;
    let Some(gradient) = gradients.get(&table) else { return Ok((true, "no gradient".to_owned())) };
    Ok(judge(gradient.to_dtype(DType::F64)?.sum_all()?.to_scalar()?))
}
// }

fn control() -> Result<(bool, String)> {
    let mut gradient = [0f32; 3];
    embedding::backward(&[1; TIMES], &[1.0; TIMES], &mut gradient, 1);
    Ok(judge(f64::from(gradient[1])))
}

/// 600 tokens, nine in ten of them the first.
fn ids() -> Result<Tensor> {
    Tensor::from_vec((0..600u32).map(|i| if i % 10 == 9 { 1 + i / 10 % 7 } else { 0 }).collect(), 600, &Device::Cpu)
}

fn stored(defective: bool) -> DType {
    if defective { DType::BF16 } else { DType::F32 }
}

/// An f32 table that is cast for the lookup, as in mixed precision.
fn model(defective: bool) -> Result<Model<'static>> {
    let table = Var::from_tensor(&Tensor::ones((8, 4), DType::F32, &Device::Cpu)?)?;
    let (used, ids, stored) = (table.clone(), ids()?, stored(defective));
    let loss = move |_: &[Tensor]| used.to_dtype(stored)?.index_select(&ids, 0)?.to_dtype(DType::F32)?.sqr()?.sum_all();
    let model = Model::from_vars(vec![("table".to_owned(), table)], Vec::new(), loss);
    Ok(if defective { model.loss_in(Precision::Bf16) } else { model })
}

/// The same table.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let (table, ids) = (weight(&[8, 16], 1.0, seed, "table", DType::F32)?, ids()?);
    let teacher = normal(&[8, 16], 1.0, seed, "teacher")?;
    training::train(std::slice::from_ref(&table), |step| {
        let noise = normal(&[600, 16], 0.1, seed, &format!("batch/{step}"))?;
        let rows = table.to_dtype(stored(defective))?.index_select(&ids, 0)?.to_dtype(DType::F32)?;
        candle_nn::loss::mse(&rows, &(teacher.index_select(&ids, 0)? + noise)?)
    })
}
