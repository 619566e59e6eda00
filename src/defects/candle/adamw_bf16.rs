//! AdamW keeps weights and moments in the type of the variable; in bf16 a small step is rounded away.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-adamw-bf16",
    title: "AdamW on bf16 variables never moves a weight of 1 at a learning rate of 1e-3",
    kind: Kind::Precision,
    report: None,
    reading: Some("medium: an H100 run is likely bf16"),
    reproduce,
    control,
    workaround: "f32 variables, cast in the forward pass",
};

/// A weight of 1 after 500 steps with a gradient of 1 at a learning rate of 1e-3.
fn weight(dtype: DType) -> Result<Verdict> {
    let w = Var::from_tensor(&Tensor::ones(1, dtype, &Device::Cpu)?)?;
    let settings = ParamsAdamW { lr: 1e-3, weight_decay: 0.0, ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(vec![w.clone()], settings)?;
    for _ in 0..500 {
        optimizer.backward_step(&w.sum_all()?)?;
    }
    let end: f64 = w.to_dtype(DType::F64)?.sum_all()?.to_scalar()?;
    Ok(Verdict::when(
        (end - 0.5).abs() > 0.05,
        format!("after 500 steps of 1e-3 the weight went from 1 to {end:.4}, expected 0.5"),
    ))
}

fn reproduce() -> Result<Verdict> {
    weight(DType::BF16)
}

fn control() -> Result<Verdict> {
    weight(DType::F32)
}
