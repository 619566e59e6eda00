//! Gradients are computed and kept for tensors that are no variables: data, masks, frozen weights.

use crate::arbiter::candle::Model;
use crate::defects::training::{STEPS, normal, scalar, weight};
use crate::defects::{Check, Entry, Kind, MEMORY, Training};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{Optimizer, SGD, loss::mse};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-constant-gradients",
    title: "backward computes and keeps a gradient for data and frozen weights that share an op with a variable",
    kind: Kind::Memory,
    report: Some("#3773"),
    reading: Some(MEMORY),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "take the gradients of the variables out of the store and drop it",
    source: include_str!("constants.rs"),
};

// reproducer {
/// Numbers in gradients after one product of data and a variable; that of the data dropped or not.
fn kept(drop_data: bool) -> Result<(bool, String)> {
    let w = Var::from_tensor(&Tensor::ones((4, 1), DType::F32, &Device::Cpu)?)?;
    let data = Tensor::ones((1000, 4), DType::F32, &Device::Cpu)?;
    let mut gradients = data.matmul(&w)?.sqr()?.sum_all()?.backward()?;
    if drop_data {
        gradients.remove(&data);
    }
    let numbers: usize = [w.as_tensor(), &data].map(|t| gradients.get(t).map_or(0, Tensor::elem_count)).iter().sum();
    Ok((numbers > 4, format!("one variable of 4 numbers; gradients of {numbers} are held")))
}

fn defect() -> Result<(bool, String)> {
    kept(false)
}
// }

fn control() -> Result<(bool, String)> {
    kept(true)
}

fn model(_: bool) -> Result<Model<'static>> {
    let w = weight(&[4, 1], 1.0, 1, "w", DType::F64)?;
    let (used, data) = (w.clone(), normal(&[20, 4], 1.0, 1, "data")?.to_dtype(DType::F64)?);
    let loss = move |_: &[Tensor]| data.matmul(&used)?.sqr()?.sum_all();
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

/// The store is handed to the optimizer as it is, or only the gradient of the variable.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let (w, teacher) = (weight(&[8, 4], 0.5, seed, "w", DType::F32)?, normal(&[8, 4], 0.7, seed, "teacher")?);
    let mut optimizer = SGD::new(vec![w.clone()], 0.1)?;
    let step = |step: usize| {
        let x = normal(&[16, 8], 1.0, seed, &format!("batch/{step}"))?;
        let loss = mse(&x.matmul(&w)?, &x.matmul(&teacher)?)?;
        let mut gradients = loss.backward()?;
        if !defective {
            gradients.remove(&x);
        }
        optimizer.step(&gradients)?;
        scalar(&loss)
    };
    (0..STEPS).map(step).collect()
}
