//! `Optimizer::step` passes over a variable that has no gradient.

use crate::arbiter::candle::Model;
use crate::arbiter::{Closure, Parameter, Questions, judge};
use crate::defects::training::Decoder;
use crate::defects::{Check, Entry, FUSED, Kind, Training};
use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{Optimizer, SGD};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-skipped-gradient",
    title: "Optimizer::step leaves variables without a gradient as they are and reports success",
    kind: Kind::Interface,
    report: Some("#2168"),
    reading: Some(FUSED),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "look at every gradient before the first step: the arbiter",
    source: include_str!("skipped_gradient.rs"),
};

// reproducer {
/// One step on a loss that does not reach w.
fn defect() -> Result<(bool, String)> {
    let (w, other) = (Var::new(2f64, &Device::Cpu)?, Var::new(1f64, &Device::Cpu)?);
    let mut optimizer = SGD::new(vec![w.clone(), other.clone()], 0.1)?;
    optimizer.backward_step(&(w.as_tensor().detach() * other.as_tensor())?)?;
    let after: f64 = w.to_scalar()?;
    Ok((after == 2.0, format!("the step succeeded and the weight went from 2 to {after}")))
}
// }

fn control() -> Result<(bool, String)> {
    let parameter = Parameter::new("w", [1]);
    let mut missing = Closure::new(vec![(parameter, vec![2.0])], |w, _| Ok((w[0][0], vec![None])));
    let verdict = judge(&mut missing, &Questions::default()).map_err(candle_core::Error::wrap)?;
    let named = verdict.findings.iter().any(|f| f.parameter == "w");
    Ok((!named, verdict.report().trim().replace('\n', ";")))
}

fn model(defective: bool) -> Result<Model<'static>> {
    let (w, other) = (Var::new(2f64, &Device::Cpu)?, Var::new(1f64, &Device::Cpu)?);
    let mut optimizer = SGD::new(vec![w.clone(), other.clone()], 0.1)?;
    let named = vec![("w".to_owned(), w.clone()), ("other".to_owned(), other.clone())];
    let loss = move |_: &[Tensor]| {
        let w = if defective { w.as_tensor().detach() } else { w.as_tensor().clone() };
        w * other.as_tensor()
    };
    Ok(Model::from_vars(named, Vec::new(), loss).optimizer(move |gradients| optimizer.step(gradients)))
}

/// A decoder whose norms are detached: no step complains.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let detached: fn(&Tensor, &Tensor) -> Result<Tensor> = |x, gain| (Decoder::HEALTHY.norm)(&x.detach(), gain);
    let norm = if defective { detached } else { Decoder::HEALTHY.norm };
    Decoder { norm, ..Decoder::HEALTHY }.run(seed)
}
