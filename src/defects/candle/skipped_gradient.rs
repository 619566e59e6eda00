//! `Optimizer::step` passes over a variable that has no gradient.

use crate::arbiter::{Closure, Parameter, Questions, judge};
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

fn control() -> Result<Verdict> {
    let parameter = Parameter::new("w", [1]);
    let mut missing = Closure::new(vec![(parameter, vec![2.0])], |w, _| Ok((w[0][0], vec![None])));
    let verdict = judge(&mut missing, &Questions::default()).map_err(candle_core::Error::wrap)?;
    let named = verdict.findings.iter().any(|f| f.parameter == "w");
    Ok(Verdict::when(!named, verdict.report().trim().replace('\n', ";")))
}
