//! `Linear` on an input that is not contiguous copies its weight for every sequence of the batch.

use crate::arbiter::candle::Model;
use crate::defects::probe::tensor;
use crate::defects::training::{normal, sandwich};
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_nn::Linear;
use std::time::Instant;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-linear-strided",
    title: "Linear on a transposed batch copies its weight once a sequence: far slower than on the contiguous one",
    kind: Kind::Speed,
    report: None,
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "contiguous() before the layer",
    source: include_str!("linear_strided.rs"),
};

// reproducer {
/// Seconds of the fastest of three passes over `[64, 4, 256]`, which is a transposed tensor or a contiguous one.
fn seconds(layer: &Linear, contiguous: bool) -> Result<f64> {
    let x = Tensor::ones((64, 256, 4), DType::F32, &Device::Cpu)?.transpose(1, 2)?;
    let x = if contiguous { x.contiguous()? } else { x };
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let started = Instant::now();
        layer.forward(&x)?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn ratio(contiguous: bool) -> Result<(bool, String)> {
    let layer = Linear::new(Tensor::ones((2048, 256), DType::F32, &Device::Cpu)?, None);
    let (base, other) = (seconds(&layer, true)?, seconds(&layer, contiguous)?);
    let ratio = other / base;
    Ok((ratio > 2.5, format!("{ratio:.1} times the time of the contiguous input")))
}

fn defect() -> Result<(bool, String)> {
    ratio(false)
}
// }

fn control() -> Result<(bool, String)> {
    ratio(true)
}

/// Rows of a batch of two, transposed or not.
fn input(x: &Tensor, defective: bool) -> Result<Tensor> {
    let transposed = x.transpose(1, 2)?.contiguous()?.transpose(1, 2)?;
    if defective { Ok(transposed) } else { transposed.contiguous() }
}

fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::from_tensor(&tensor(&[5, 4], 1, DType::F64)?)?;
    let (layer, x) = (Linear::new(w.as_tensor().clone(), None), tensor(&[2, 3, 4], 2, DType::F64)?);
    let loss = move |_: &[Tensor]| layer.forward(&input(&x, defective)?)?.sqr()?.sum_all();
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let layer = Linear::new(normal(&[8, 8], 0.3, seed, "layer")?, None);
    sandwich(|x| layer.forward(&input(x, defective)?)?.tanh(), &[16, 2, 8], seed)
}
