//! The gradient of a bf16 embedding row that occurs often saturates.

use crate::defects::{Entry, Kind, Verdict};
use crate::ops::embedding;
use candle_core::{DType, Device, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-bf16-embedding",
    title: "A bf16 embedding row that occurs 2,000 times gets a gradient of 256",
    kind: Kind::Precision,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "an f32 table, or ops::embedding",
};

const TIMES: usize = 2000;

fn judge(found: f64) -> Verdict {
    let evidence = format!("{TIMES} unit gradients on one row add up to {found}");
    Verdict::when((found - TIMES as f64).abs() > 20.0, evidence)
}

fn reproduce() -> Result<Verdict> {
    let table = Var::from_tensor(&Tensor::zeros((3, 1), DType::BF16, &Device::Cpu)?)?;
    let ids = Tensor::ones(TIMES, DType::U32, &Device::Cpu)?;
    let gradients = table.index_select(&ids, 0)?.to_dtype(DType::F32)?.sum_all()?.backward()?;
    let Some(gradient) = gradients.get(&table) else { return Ok(Verdict::Present("no gradient".to_owned())) };
    Ok(judge(gradient.to_dtype(DType::F64)?.sum_all()?.to_scalar()?))
}

fn control() -> Result<Verdict> {
    let mut gradient = [0f32; 3];
    embedding::backward(&[1; TIMES], &[1.0; TIMES], &mut gradient, 1);
    Ok(judge(f64::from(gradient[1])))
}
