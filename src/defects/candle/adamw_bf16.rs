//! AdamW keeps weights and moments in the type of the variable; in bf16 a small step is rounded away.

use crate::arbiter::candle::Model;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, Kind, PRECISION, Training};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-adamw-bf16",
    title: "AdamW on bf16 variables never moves a weight of 1 at a learning rate of 1e-3",
    kind: Kind::Precision,
    report: None,
    reading: Some(PRECISION),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "f32 variables, cast in the forward pass",
    source: include_str!("adamw_bf16.rs"),
};

// reproducer {
fn optimizer(w: &Var) -> Result<AdamW> {
    AdamW::new(vec![w.clone()], ParamsAdamW { lr: 1e-3, weight_decay: 0.0, ..ParamsAdamW::default() })
}

/// A weight of 1 after 500 steps with a gradient of 1 at a learning rate of 1e-3.
fn weight(dtype: DType) -> Result<(bool, String)> {
    let w = Var::from_tensor(&Tensor::ones(1, dtype, &Device::Cpu)?)?;
    let mut optimizer = optimizer(&w)?;
    for _ in 0..500 {
        optimizer.backward_step(&w.sum_all()?)?;
    }
    let end: f64 = w.to_dtype(DType::F64)?.sum_all()?.to_scalar()?;
    let seen = format!("after 500 steps of 1e-3 the weight went from 1 to {end:.4}, expected 0.5");
    Ok(((end - 0.5).abs() > 0.05, seen))
}

fn defect() -> Result<(bool, String)> {
    weight(DType::BF16)
}
// }

fn control() -> Result<(bool, String)> {
    weight(DType::F32)
}

fn model(defective: bool) -> Result<Model<'static>> {
    let dtype = if defective { DType::BF16 } else { DType::F32 };
    let w = Var::from_tensor(&Tensor::ones(4, dtype, &Device::Cpu)?)?;
    let (used, mut optimizer) = (w.clone(), optimizer(&w)?);
    let loss = move |_: &[Tensor]| used.to_dtype(DType::F32)?.sqr()?.sum_all();
    let model = Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss);
    Ok(model.optimizer(move |gradients| optimizer.step(gradients)))
}

/// A decoder whose variables are bf16; it computes in f32 all the same.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let stored = if defective { DType::BF16 } else { DType::F32 };
    Decoder { stored, ..Decoder::HEALTHY }.run(seed)
}
