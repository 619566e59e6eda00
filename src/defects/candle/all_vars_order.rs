//! `VarMap` is a hash map, so state that is saved by position lands on another tensor.

use crate::arbiter::candle::Model;
use crate::arbiter::{Reference, Rule};
use crate::defects::training::normal;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Error, Result, Tensor, Var};
use candle_nn::{Init, VarMap};
use std::collections::BTreeMap;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-all-vars-order",
    title: "VarMap::all_vars gives another order in every map, so state kept by position is mixed up",
    kind: Kind::Reproducibility,
    report: None,
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::NoCurve("one curve cannot show that a second run would differ"),
    workaround: "sort by name",
    source: include_str!("all_vars_order.rs"),
};

// reproducer {
fn map() -> Result<VarMap> {
    let map = VarMap::new();
    for size in 1..=8usize {
        map.get(size, &format!("layer{size}"), Init::Const(0.0), DType::F32, &Device::Cpu)?;
    }
    Ok(map)
}

fn judge(sizes: impl Fn() -> Result<Vec<usize>>) -> Result<(bool, String)> {
    let orders = (0..10).map(|_| sizes()).collect::<Result<Vec<_>>>()?;
    let other = orders.iter().filter(|order| **order != orders[0]).count();
    Ok((other > 0, format!("{other} of 9 equal maps list their 8 variables in another order")))
}

fn defect() -> Result<(bool, String)> {
    judge(|| Ok(map()?.all_vars().iter().map(|v| v.elem_count()).collect()))
}
// }

/// The variables by name.
fn sorted(map: &VarMap) -> Result<Vec<Var>> {
    let data = map.data().lock().map_err(|e| Error::Msg(e.to_string()))?;
    Ok(data.iter().collect::<BTreeMap<_, _>>().into_values().cloned().collect())
}

fn control() -> Result<(bool, String)> {
    judge(|| Ok(sorted(&map()?)?.iter().map(|v| v.elem_count()).collect()))
}

const RULE: Rule = Rule::AdamW { learning_rate: 0.05, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };

/// Six variables of one size. Between steps the moments of AdamW are saved and loaded by position, into
/// a map of the same names that lists its variables in its own order, or by name.
fn model(defective: bool) -> Result<Model<'static>> {
    let names: Vec<String> = (1..=6).map(|i| format!("layer{i}")).collect();
    let fresh = move |names: &[String]| -> Result<Vec<usize>> {
        let map = VarMap::new();
        for (i, name) in names.iter().enumerate() {
            map.get(1, name, Init::Const(i as f64), DType::F64, &Device::Cpu)?;
        }
        let listed = if defective { map.all_vars() } else { sorted(&map)? };
        listed.iter().map(|var| Ok(var.to_vec1::<f64>()?[0] as usize)).collect()
    };
    let vars = (0..6).map(|i| Var::from_tensor(&normal(&[4], 1.0, i, "w")?.to_dtype(DType::F64)?));
    let vars = vars.collect::<Result<Vec<_>>>()?;
    let (used, known) = (vars.clone(), names.clone());
    let mut moments: Vec<Reference> = vars.iter().map(|_| Reference::new(4)).collect();
    let step = {
        let vars = vars.clone();
        move |gradients: &GradStore| {
            let (before, after) = (fresh(&known)?, fresh(&known)?);
            let saved: Vec<Reference> = before.iter().map(|i| moments[*i].clone()).collect();
            after.iter().zip(saved).for_each(|(i, state)| moments[*i] = state);
            for (var, state) in vars.iter().zip(&mut moments) {
                let gradient = gradients.get(var).map_or(Ok(vec![0.0; 4]), |g| g.to_vec1::<f64>())?;
                let change = state.change(RULE, &var.to_vec1::<f64>()?, &gradient);
                var.set(&(var.as_tensor() + Tensor::new(change, &Device::Cpu)?)?)?;
            }
            Ok(())
        }
    };
    let loss = move |_: &[Tensor]| {
        let terms = used.iter().enumerate().map(|(i, w)| w.sqr()?.sum_all()? * (1.0 + i as f64));
        terms.reduce(|a, b| a? + b?).unwrap_or_else(|| Tensor::new(0f64, &Device::Cpu))
    };
    Ok(Model::from_vars(names.into_iter().zip(vars).collect(), Vec::new(), loss).optimizer(step).rule(RULE))
}
