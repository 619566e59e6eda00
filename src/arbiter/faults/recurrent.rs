//! A gated recurrent unit over a short sequence.

use super::family::Family;
use super::kit::{Kit, Start, normal};
use crate::rng::Stream;
use candle_core::{DType, Result, Tensor};
use candle_nn::ops;

const INPUTS: usize = 4;
const WIDTH: usize = 6;
const TIME: usize = 5;
const BATCH: usize = 3;

const MATRIX: Start = Start::Normal(0.4);
const BIAS: Start = Start::Normal(0.1);

/// Update and reset gates with their own weights, one output from the last state.
pub const RECURRENT: Family = Family {
    name: "recurrent",
    variables: &[
        ("update.x", &[WIDTH, INPUTS], MATRIX),
        ("update.h", &[WIDTH, WIDTH], MATRIX),
        ("update.bias", &[WIDTH], BIAS),
        ("reset.x", &[WIDTH, INPUTS], MATRIX),
        ("reset.h", &[WIDTH, WIDTH], MATRIX),
        ("reset.bias", &[WIDTH], BIAS),
        ("state.x", &[WIDTH, INPUTS], MATRIX),
        ("state.h", &[WIDTH, WIDTH], MATRIX),
        ("state.bias", &[WIDTH], BIAS),
        ("output", &[2, WIDTH], MATRIX),
    ],
    expectations: &[],
    inputs,
    loss,
};

/// Sequences `[TIME, BATCH, INPUTS]` and what to say at their end `[BATCH, 2]`.
fn inputs(stream: &Stream, dtype: DType) -> Result<Vec<Tensor>> {
    let count = TIME * BATCH * INPUTS;
    let both = normal(stream, &[count + BATCH * 2], dtype)?;
    let targets = both.narrow(0, count, BATCH * 2)?.reshape((BATCH, 2))?;
    Ok(vec![both.narrow(0, 0, count)?.reshape((TIME, BATCH, INPUTS))?, targets])
}

fn gate(kit: &Kit, x: &Tensor, h: &Tensor, names: [&'static str; 3]) -> Result<Tensor> {
    let sum = (x.matmul(&kit.get(names[0])?.t()?)? + h.matmul(&kit.get(names[1])?.t()?)?)?;
    sum.broadcast_add(&kit.get(names[2])?)
}

fn loss(kit: &Kit, inputs: &[Tensor]) -> Result<Tensor> {
    let mut h = Tensor::zeros((BATCH, WIDTH), inputs[0].dtype(), inputs[0].device())?;
    for time in 0..TIME {
        let x = inputs[0].get(time)?;
        let update = ops::sigmoid(&gate(kit, &x, &h, ["update.x", "update.h", "update.bias"])?)?;
        let raw = gate(kit, &x, &h, ["reset.x", "reset.h", "reset.bias"])?;
        let reset = ops::sigmoid(&raw)?;
        let reset = kit.formula("sigmoid", reset.clone(), || reset.detach() * &raw)?;
        let raw = gate(kit, &x, &(&reset * &h)?, ["state.x", "state.h", "state.bias"])?;
        let state = kit.formula("tanh", raw.tanh()?, || Ok(raw.clone()))?;
        // The state before is kept by 1 − update; cut here, nothing learns from the past.
        let past = kit.site("past", h.clone())?;
        h = (&past + (update * (state - &past)?)?)?;
    }
    let y = kit.site("last", h)?.matmul(&kit.get("output")?.t()?)?;
    kit.site("loss", (y - &inputs[1])?.sqr()?.mean_all()?)
}
