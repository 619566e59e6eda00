//! `Optimizer::step` passes over a variable that has no gradient.

use crate::arbiter::{Expectation, Gradient, Parameter, Subject, judge};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{Device, Result, Var};
use candle_nn::{Optimizer, SGD};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-skipped-gradient",
    title: "Optimizer::step leaves variables without a gradient as they are and reports success",
    kind: Kind::Interface,
    report: Some("#2168"),
    reading: Some("part of the class of missing gradients: this is why they are silent"),
    reproduce,
    control,
    workaround: "look at every gradient before the first step: the arbiter",
};

/// One step on a loss that does not reach `w`; gives the weight before and after.
fn step() -> Result<(f64, f64)> {
    let w = Var::new(2f64, &Device::Cpu)?;
    let other = Var::new(1f64, &Device::Cpu)?;
    let mut optimizer = SGD::new(vec![w.clone(), other.clone()], 0.1)?;
    optimizer.backward_step(&(w.as_tensor().detach() * other.as_tensor())?)?;
    Ok((2.0, w.to_scalar()?))
}

fn reproduce() -> Result<Verdict> {
    let (before, after) = step()?;
    Ok(Verdict::when(before == after, format!("the step succeeded and the weight went from {before} to {after}")))
}

/// The same missing gradient, shown to the arbiter.
struct Missing;

impl Subject for Missing {
    fn show(&self, look: &mut dyn FnMut(&Parameter, Option<Gradient>)) {
        let parameter = Parameter { name: "w".to_owned(), shape: vec![1], expectation: Expectation::Trainable };
        look(&parameter, None);
    }
}

fn control() -> Result<Verdict> {
    let verdict = judge(&Missing);
    let named = verdict.findings.iter().any(|f| f.parameter == "w");
    Ok(Verdict::when(!named, verdict.report().trim().replace('\n', ";")))
}
