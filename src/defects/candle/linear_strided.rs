//! `Linear` on a batch that is not contiguous makes the gradient of its weight once a sequence.
//!
//! In Candle 0.8.4 the contiguous input takes the slow way too, so nothing is slower there than another.

use crate::arbiter::candle::Model;
use crate::defects::probe::tensor;
use crate::defects::training::{self, normal, weight};
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_nn::Linear;
use std::time::Instant;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-linear-strided",
    title: "Linear on a batch that is not contiguous makes a weight gradient a sequence and adds them up: many times slower",
    kind: Kind::Speed,
    report: None,
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "contiguous() before the layer",
    source: include_str!("linear_strided.rs"),
};

// reproducer {
/// Seconds of the fastest of five passes, forward and backward, over `x`.
fn seconds(x: &Tensor) -> Result<f64> {
    let w = Var::from_tensor(&Tensor::ones((1024, 256), DType::F32, &Device::Cpu)?)?;
    let layer = Linear::new(w.as_tensor().clone(), None);
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let started = Instant::now();
        layer.forward(x)?.sum_all()?.backward()?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// The first 4 of 5 positions of every sequence, contiguous or as they are, beside the contiguous ones.
fn ratio(contiguous: bool) -> Result<(bool, String)> {
    let x = Tensor::ones((64, 5, 256), DType::F32, &Device::Cpu)?.narrow(1, 0, 4)?;
    let ratio = seconds(&if contiguous { x.contiguous()? } else { x.clone() })? / seconds(&x.contiguous()?)?;
    Ok((ratio > 5.0, format!("a step takes {ratio:.1} times as long as on the contiguous input")))
}

fn defect() -> Result<(bool, String)> {
    ratio(false)
}
// }

fn control() -> Result<(bool, String)> {
    ratio(true)
}

/// All but the last position of every sequence.
fn input(x: &Tensor, defective: bool) -> Result<Tensor> {
    let x = x.narrow(1, 0, x.dim(1)? - 1)?;
    if defective { Ok(x) } else { x.contiguous() }
}

fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::from_tensor(&tensor(&[5, 4], 1, DType::F64)?)?;
    let (layer, x) = (Linear::new(w.as_tensor().clone(), None), tensor(&[2, 4, 4], 2, DType::F64)?);
    let loss = move |_: &[Tensor]| layer.forward(&input(&x, defective)?)?.sqr()?.sum_all();
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let w = weight(&[4, 8], 0.5, seed, "w", DType::F32)?;
    let (layer, teacher) = (Linear::new(w.as_tensor().clone(), None), normal(&[4, 8], 0.5, seed, "teacher")?);
    let teacher = Linear::new(teacher, None);
    training::train(std::slice::from_ref(&w), |step| {
        let x = normal(&[8, 5, 8], 1.0, seed, &format!("batch/{step}"))?;
        candle_nn::loss::mse(&layer.forward(&input(&x, defective)?)?, &teacher.forward(&input(&x, false)?)?)
    })
}
