//! A gradient that is held keeps the graph it was computed with, and so the activations.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Device, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-graph-kept",
    title: "Gradients keep the forward graph alive, so accumulating them keeps all activations",
    kind: Kind::Memory,
    report: Some("#1241"),
    reading: Some("medium: gradient accumulation runs straight into it"),
    reproduce,
    control,
    workaround: "detach() every gradient before holding it",
};

/// Whether the gradient of the second layer's weight still hangs on the graph.
fn tracked(detach: bool) -> Result<Verdict> {
    let ones = |n: usize| Tensor::ones((n, n), DType::F32, &Device::Cpu);
    let (first, second) = (Var::from_tensor(&ones(4)?)?, Var::from_tensor(&ones(4)?)?);
    let gradients = ones(4)?.matmul(&first)?.tanh()?.matmul(&second)?.sum_all()?.backward()?;
    let Some(gradient) = gradients.get(&second) else { return Ok(Verdict::Present("no gradient".to_owned())) };
    let gradient = if detach { gradient.detach() } else { gradient.clone() };
    let tracked = gradient.track_op();
    Ok(Verdict::when(tracked, format!("the gradient of the second weight is tracked: {tracked}")))
}

fn reproduce() -> Result<Verdict> {
    tracked(false)
}

fn control() -> Result<Verdict> {
    tracked(true)
}
