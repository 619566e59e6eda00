//! No version counter: a variable changed between forward and backward changes the gradient.

use crate::arbiter::candle::Model;
use crate::defects::probe::ask_arbiter;
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{Device, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-var-set",
    title: "Var::set between forward and backward gives the gradient at the new value, without an error",
    kind: Kind::WrongGradient,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "step only after backward",
};

/// d(w²)/dw at w = 3, with w set to 100 before or after the backward pass.
fn slope(before: bool) -> Result<Verdict> {
    let w = Var::new(3f64, &Device::Cpu)?;
    let loss = w.sqr()?;
    let new = w.as_tensor().ones_like()?.affine(100.0, 0.0)?;
    if before {
        w.set(&new)?;
    }
    let gradients = loss.backward()?;
    if !before {
        w.set(&new)?;
    }
    let slope: f64 = gradients.get(&w).map_or(Ok(f64::NAN), |g| g.to_scalar())?;
    let answer = ask_arbiter(&mut model(before)?)?;
    Ok(Verdict::when(slope != 6.0, format!("d(w²)/dw at w = 3 comes out as {slope}; {answer}")))
}

/// The same as a model whose forward pass ends with the new value, or leaves it alone.
fn model(sets: bool) -> Result<Model<'static>> {
    let w = Var::new(3f64, &Device::Cpu)?;
    let var = w.clone();
    let loss = move |_: &[Tensor]| {
        let loss = var.sqr()?;
        if sets {
            var.set(&var.as_tensor().ones_like()?.affine(100.0, 0.0)?)?;
        }
        Ok(loss)
    };
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), loss))
}

fn reproduce() -> Result<Verdict> {
    slope(true)
}

fn control() -> Result<Verdict> {
    slope(false)
}
