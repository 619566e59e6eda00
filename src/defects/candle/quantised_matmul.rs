//! `QMatMul` gives no gradient to its input, so an adapter over quantised layers freezes all below.

use crate::defects::probe::tensor;
use crate::defects::training::{normal, sandwich};
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-quantised-matmul",
    title: "QMatMul gives no gradient to its input",
    kind: Kind::MissingGradient,
    report: Some("#2729"),
    reading: None,
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "dequantise, then matmul",
    source: include_str!("quantised_matmul.rs"),
};

// reproducer {
fn input() -> Result<Tensor> {
    tensor(&[2, 32], 1, DType::F32)
}

fn weight() -> Result<QTensor> {
    QTensor::quantize(&tensor(&[4, 32], 2, DType::F32)?, GgmlDType::Q8_0)
}

fn defect(x: &Tensor) -> Result<Tensor> {
    QMatMul::from_qtensor(weight()?)?.forward(x)
}
// }

fn control(x: &Tensor) -> Result<Tensor> {
    x.matmul(&weight()?.dequantize(&Device::Cpu)?.t()?)
}

/// A quantised layer in the middle, as under an adapter.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let weight = QTensor::quantize(&normal(&[32, 32], 0.2, seed, "quantised")?, GgmlDType::Q8_0)?;
    let dequantised = weight.dequantize(&Device::Cpu)?.t()?;
    let layer = QMatMul::from_qtensor(weight)?;
    let middle = |x: &Tensor| if defective { layer.forward(x)?.tanh() } else { x.matmul(&dequantised)?.tanh() };
    sandwich(middle, &[16, 32], seed)
}
