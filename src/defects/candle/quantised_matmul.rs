//! `QMatMul` gives no gradient to its input, so an adapter over quantised layers freezes all below.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Module, Result};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-quantised-matmul",
    title: "QMatMul gives no gradient to its input",
    kind: Kind::MissingGradient,
    report: Some("#2729"),
    reading: None,
    reproduce,
    control,
    workaround: "dequantise, then matmul",
};

fn reproduce() -> Result<Verdict> {
    let weight = QTensor::quantize(&tensor(&[4, 32], 2, DType::F32)?, GgmlDType::Q8_0)?;
    let layer = QMatMul::from_qtensor(weight)?;
    judge_gradient(&|x| layer.forward(x), &tensor(&[2, 32], 1, DType::F32)?)
}

fn control() -> Result<Verdict> {
    let weight = QTensor::quantize(&tensor(&[4, 32], 2, DType::F32)?, GgmlDType::Q8_0)?;
    let weight = weight.dequantize(&candle_core::Device::Cpu)?;
    judge_gradient(&|x| x.matmul(&weight.t()?), &tensor(&[2, 32], 1, DType::F32)?)
}
