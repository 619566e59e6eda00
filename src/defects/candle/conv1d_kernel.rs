//! `conv1d` with a kernel that is not contiguous reads it in the wrong order.

use crate::defects::probe::tensor;
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-conv1d-kernel",
    title: "conv1d with a non-contiguous kernel computes a wrong value, and so does its weight gradient",
    kind: Kind::WrongGradient,
    report: Some("#3895"),
    reading: None,
    reproduce,
    control,
    workaround: "kernel.contiguous()",
};

/// Largest difference from the convolution by its definition, with batch 2.
fn difference(kernel: &Tensor) -> Result<f64> {
    let x = tensor(&[2, 3, 6], 1, DType::F64)?;
    let found: Vec<f64> = x.conv1d(kernel, 0, 1, 1, 1)?.flatten_all()?.to_vec1()?;
    let (x, k) = (x.to_vec3::<f64>()?, kernel.to_vec3::<f64>()?);
    let mut worst = 0f64;
    for (i, value) in found.iter().enumerate() {
        let (batch, out, at) = (i / 20, i / 5 % 4, i % 5);
        let sum: f64 =
            (0..3).flat_map(|c| (0..2).map(move |j| (c, j))).map(|(c, j)| x[batch][c][at + j] * k[out][c][j]).sum();
        worst = worst.max((value - sum).abs());
    }
    Ok(worst)
}

fn judge(kernel: &Tensor) -> Result<Verdict> {
    let worst = difference(kernel)?;
    Ok(Verdict::when(worst > 1e-9, format!("largest difference from the definition {worst:.2e}")))
}

fn kernel() -> Result<Tensor> {
    tensor(&[2, 3, 4], 2, DType::F64)?.permute((2, 1, 0))
}

fn reproduce() -> Result<Verdict> {
    judge(&kernel()?)
}

fn control() -> Result<Verdict> {
    judge(&kernel()?.contiguous()?)
}
