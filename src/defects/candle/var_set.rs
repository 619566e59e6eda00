//! No version counter: a variable changed between forward and backward changes the gradient.

use crate::arbiter::candle::Model;
use crate::defects::training::{RATE, STEPS, normal, scalar, weight};
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::{Optimizer, SGD, loss::mse};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-var-set",
    title: "Var::set between forward and backward gives the gradient at the new value, without an error",
    kind: Kind::WrongGradient,
    report: None,
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "step only after backward",
    source: include_str!("var_set.rs"),
};

// reproducer {
/// d(w²)/dw at w = 3, with w set to 100 before or after the backward pass.
fn slope(before: bool) -> Result<(bool, String)> {
    let w = Var::new(3f64, &Device::Cpu)?;
    let loss = w.sqr()?;
    let new = Tensor::new(100f64, &Device::Cpu)?;
    if before {
        w.set(&new)?;
    }
    let gradients = loss.backward()?;
    if !before {
        w.set(&new)?;
    }
    let slope: f64 = gradients.get(&w).map_or(Ok(f64::NAN), |g| g.to_scalar())?;
    Ok((slope != 6.0, format!("d(w²)/dw at w = 3 comes out as {slope}")))
}

fn defect() -> Result<(bool, String)> {
    slope(true)
}
// }

fn control() -> Result<(bool, String)> {
    slope(false)
}

/// A model whose forward pass ends with the new value, or leaves it alone.
fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::new(3f64, &Device::Cpu)?;
    let var = w.clone();
    let loss = move |_: &[Tensor]| {
        let loss = var.sqr()?;
        if defective {
            var.set(&Tensor::new(100f64, &Device::Cpu)?)?;
        }
        Ok(loss)
    };
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

/// Weight decay by hand, before the backward pass or after it.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let [a, b] = [("a", [8, 32]), ("b", [32, 4])].map(|(name, shape)| weight(&shape, 0.4, seed, name, DType::F32));
    let (a, b) = (a?, b?);
    let teacher = normal(&[8, 4], 0.7, seed, "teacher")?;
    let mut optimizer = SGD::new(vec![a.clone(), b.clone()], 20.0 * RATE)?;
    let decay = || [&a, &b].iter().try_for_each(|var| var.set(&(var.as_tensor() * 0.98)?));
    let step = |step: usize| {
        let x = normal(&[16, 8], 1.0, seed, &format!("batch/{step}"))?;
        let loss = mse(&x.matmul(&a)?.tanh()?.matmul(&b)?, &x.matmul(&teacher)?.tanh()?)?;
        if defective {
            decay()?;
        }
        let gradients = loss.backward()?;
        if !defective {
            decay()?;
        }
        optimizer.step(&gradients)?;
        scalar(&loss)
    };
    (0..STEPS).map(step).collect()
}
