//! `Linear` on a transposed batch: the product stacks the sequences as if their rows were contiguous.

use crate::arbiter::candle::Model;
use crate::defects::probe::tensor;
use crate::defects::training::{self, normal, weight};
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Module, Result, Tensor, Var};
use candle_nn::Linear;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-linear-transposed",
    title: "Linear on a transposed batch gives wrong numbers on the CPU, and a wrong gradient, without an error",
    kind: Kind::WrongValue,
    report: Some("#3758"),
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "contiguous() before the layer",
    source: include_str!("linear_transposed.rs"),
};

// reproducer {
/// The same numbers `[batch, time, width]` with the strides of a transposed tensor.
fn transposed(x: &Tensor) -> Result<Tensor> {
    x.transpose(1, 2)?.contiguous()?.transpose(1, 2)
}

/// Largest difference of Linear over `[2, 3, 4]` from the sum of products that defines it.
fn difference(x: Tensor) -> Result<(bool, String)> {
    let w = tensor(&[5, 4], 1, DType::F64)?;
    let found = Linear::new(w.clone(), None).forward(&x)?.to_vec3::<f64>()?;
    let (x, w) = (x.to_vec3::<f64>()?, w.to_vec2::<f64>()?);
    let mut worst = 0f64;
    for (b, t, o) in (0..2).flat_map(|b| (0..3).flat_map(move |t| (0..5).map(move |o| (b, t, o)))) {
        let sum: f64 = (0..4).map(|i| x[b][t][i] * w[o][i]).sum();
        worst = worst.max((found[b][t][o] - sum).abs());
    }
    Ok((worst > 1e-9, format!("largest difference from the definition {worst:.2e}")))
}

fn defect() -> Result<(bool, String)> {
    difference(transposed(&tensor(&[2, 3, 4], 2, DType::F64)?)?)
}
// }

fn control() -> Result<(bool, String)> {
    difference(transposed(&tensor(&[2, 3, 4], 2, DType::F64)?)?.contiguous()?)
}

/// Laid out with the defect or without.
fn laid_out(x: &Tensor, defective: bool) -> Result<Tensor> {
    if defective { transposed(x) } else { transposed(x)?.contiguous() }
}

fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::from_tensor(&tensor(&[5, 4], 1, DType::F64)?)?;
    let (layer, x) = (Linear::new(w.as_tensor().clone(), None), tensor(&[2, 3, 4], 2, DType::F64)?);
    let loss = move |_: &[Tensor]| layer.forward(&laid_out(&x, defective)?)?.sqr()?.sum_all();
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

/// Learns another layer of the same form.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let w = weight(&[4, 8], 0.5, seed, "w", DType::F32)?;
    let (layer, teacher) = (Linear::new(w.as_tensor().clone(), None), normal(&[4, 8], 0.5, seed, "teacher")?);
    let teacher = Linear::new(teacher, None);
    training::train(std::slice::from_ref(&w), |step| {
        let x = normal(&[8, 5, 8], 1.0, seed, &format!("batch/{step}"))?;
        candle_nn::loss::mse(&layer.forward(&laid_out(&x, defective)?)?.tanh()?, &teacher.forward(&x)?.tanh()?)
    })
}
