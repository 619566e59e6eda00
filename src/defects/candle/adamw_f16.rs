//! AdamW in f16: its ε of 1e-8 is zero there, so a zero gradient divides zero by zero.

use crate::arbiter::candle::Model;
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, Kind, PRECISION, Training};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-adamw-f16",
    title: "AdamW on f16 variables makes NaN of every weight whose gradient is zero, in one step",
    kind: Kind::Precision,
    report: None,
    reading: Some(PRECISION),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "f32 variables, cast in the forward pass",
    source: include_str!("adamw_f16.rs"),
};

// reproducer {
/// A weight of 1 after one step with a gradient of 0.
fn weight(dtype: DType) -> Result<(bool, String)> {
    let w = Var::from_tensor(&Tensor::ones(1, dtype, &Device::Cpu)?)?;
    let mut optimizer = AdamW::new(vec![w.clone()], ParamsAdamW::default())?;
    optimizer.backward_step(&(w.as_tensor() * w.zeros_like()?)?.sum_all()?)?;
    let end: f64 = w.to_dtype(DType::F64)?.sum_all()?.to_scalar()?;
    Ok((!end.is_finite(), format!("after one step with a gradient of 0 the weight went from 1 to {end}")))
}

fn defect() -> Result<(bool, String)> {
    weight(DType::F16)
}
// }

fn control() -> Result<(bool, String)> {
    weight(DType::F32)
}

/// One number of the variable is not used by the batch, as the row of a token that does not occur.
fn model(defective: bool) -> Result<Model<'static>> {
    let dtype = if defective { DType::F16 } else { DType::F32 };
    let w = Var::from_tensor(&Tensor::ones(4, dtype, &Device::Cpu)?)?;
    let (used, mut optimizer) = (w.clone(), AdamW::new(vec![w.clone()], ParamsAdamW::default())?);
    let loss = move |_: &[Tensor]| used.narrow(0, 0, 3)?.to_dtype(DType::F32)?.sqr()?.sum_all();
    let model = Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss);
    Ok(model.optimizer(move |gradients| optimizer.step(gradients)))
}

/// A decoder whose variables are f16; it computes in f32 all the same.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let stored = if defective { DType::F16 } else { DType::F32 };
    Decoder { stored, ..Decoder::HEALTHY }.run(seed)
}
