//! A gradient that is held keeps the graph it was computed with, and so the activations.

use crate::arbiter::candle::Model;
use crate::defects::training::{Decoder, STEPS, adamw, scalar};
use crate::defects::{Check, Entry, Kind, MEMORY, Training};
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::Optimizer;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-graph-kept",
    title: "Gradients keep the forward graph alive, so accumulating them keeps all activations",
    kind: Kind::Memory,
    report: Some("#1241"),
    reading: Some(MEMORY),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "detach() every gradient before holding it",
    source: include_str!("graph_kept.rs"),
};

// reproducer {
fn ones() -> Result<Tensor> {
    Tensor::ones((4, 4), DType::F32, &Device::Cpu)
}

/// Whether the gradient of the second layer's weight still hangs on the graph.
fn tracked(detach: bool) -> Result<(bool, String)> {
    let (first, second) = (Var::from_tensor(&ones()?)?, Var::from_tensor(&ones()?)?);
    let gradients = ones()?.matmul(&first)?.tanh()?.matmul(&second)?.sum_all()?.backward()?;
    let Some(gradient) = gradients.get(&second) else { return Ok((true, "no gradient".to_owned())) };
    let gradient = if detach { gradient.detach() } else { gradient.clone() };
    let tracked = gradient.track_op();
    Ok((tracked, format!("the gradient of the second weight is tracked: {tracked}")))
}

fn defect() -> Result<(bool, String)> {
    tracked(false)
}
// }

fn control() -> Result<(bool, String)> {
    tracked(true)
}

/// The optimizer's gradients are held from step to step, as they are or detached.
fn model(defective: bool) -> Result<Model<'static>> {
    let (first, second) = (Var::from_tensor(&ones()?)?, Var::from_tensor(&ones()?)?);
    let vars = [first.clone(), second.clone()];
    let (mut optimizer, mut held) = (adamw(&vars)?, Vec::new());
    let named = vec![("first".to_owned(), first.clone()), ("second".to_owned(), second.clone())];
    let loss = move |_: &[Tensor]| (ones()? * 0.1)?.matmul(&first)?.tanh()?.matmul(&second)?.sqr()?.sum_all();
    Ok(Model::from_vars(named, Vec::new(), loss).optimizer(move |gradients| {
        let of = |var: &Var| gradients.get(var).map(|g| if defective { g.clone() } else { g.detach() });
        held.extend(vars.iter().filter_map(of));
        optimizer.step(gradients)
    }))
}

/// Two batches a step, their gradients added up, detached or not.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let vars = Decoder::HEALTHY.vars(seed)?;
    let mut optimizer = adamw(&vars)?;
    let step = |step: usize| {
        let losses = [2 * step, 2 * step + 1].map(|batch| Decoder::HEALTHY.loss_of(&vars, seed, batch));
        let [first, second] = losses;
        let (first, second) = (first?, second?);
        let (mut sum, other) = (first.backward()?, second.backward()?);
        for var in &vars {
            if let (Some(a), Some(b)) = (sum.get(var).cloned(), other.get(var)) {
                let both = if defective { (a + b)? } else { (a.detach() + b.detach())? };
                sum.insert(var, (both * 0.5)?);
            }
        }
        optimizer.step(&sum)?;
        Ok((scalar(&first)? + scalar(&second)?) / 2.0)
    };
    (0..STEPS / 2).map(step).collect()
}
