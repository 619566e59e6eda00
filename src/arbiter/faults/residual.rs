//! A residual network on vectors: healthy models that look ill at the first step.

use super::family::Family;
use super::kit::{Kit, Start, normal};
use crate::arbiter::Expectation;
use crate::rng::Stream;
use candle_core::{DType, Device, Result, Tensor};

const WIDTH: usize = 6;
const ROWS: usize = 8;

const MATRIX: Start = Start::Normal(0.4);

macro_rules! family {
    ($name:expr, $out:expr, $expectations:expr, $loss:expr) => {
        Family {
            name: $name,
            variables: &[
                ("input", &[WIDTH, WIDTH], MATRIX),
                ("branch.in", &[9, WIDTH], MATRIX),
                ("branch.bias", &[9], Start::Normal(0.1)),
                ("branch.out", &[WIDTH, 9], $out),
                ("output", &[2, WIDTH], MATRIX),
            ],
            expectations: $expectations,
            inputs,
            loss: $loss,
        }
    };
}

/// Plain.
pub const RESIDUAL: Family = family!("residual", MATRIX, &[], |kit, inputs| run(kit, inputs, 1.0, false));

/// The branch's last matrix starts at zero, so what lies before it gets no gradient at first.
pub const ZERO_BRANCH: Family = family!(
    "residual, branch from zero",
    Start::Constant(0.0),
    &[("branch.in", Expectation::ZeroAtFirst), ("branch.bias", Expectation::ZeroAtFirst)],
    |kit, inputs| run(kit, inputs, 1.0, false)
);

/// A loss, and so gradients, ten million times smaller than usual.
pub const TINY: Family = family!("residual, tiny gradients", MATRIX, &[], |kit, inputs| run(kit, inputs, 1e-7, false));

/// Dropout whose mask comes from the seed.
pub const DROPOUT: Family = family!("residual, seeded dropout", MATRIX, &[], |kit, inputs| run(kit, inputs, 1.0, true));

/// The input layer is kept out of training.
pub const FROZEN_INPUT: Family =
    family!("residual, frozen input layer", MATRIX, &[("input", Expectation::Held)], |kit, inputs| run(
        kit, inputs, 1.0, false
    ));

/// Vectors `[ROWS, WIDTH]` and what to make of them `[ROWS, 2]`.
fn inputs(stream: &Stream, dtype: DType) -> Result<Vec<Tensor>> {
    let both = normal(stream, &[ROWS, WIDTH + 2], dtype)?;
    Ok(vec![both.narrow(1, 0, WIDTH)?.contiguous()?, both.narrow(1, WIDTH, 2)?.contiguous()?])
}

fn dropout(x: &Tensor) -> Result<Tensor> {
    let stream = Stream::new(5, "dropout");
    let mask: Vec<f64> =
        (0..x.elem_count()).map(|i| if stream.uniform(i as u64) < 0.3 { 0.0 } else { 1.0 / 0.7 }).collect();
    x * Tensor::from_vec(mask, x.shape(), &Device::Cpu)?.to_dtype(x.dtype())?
}

fn run(kit: &Kit, inputs: &[Tensor], scale: f64, drop: bool) -> Result<Tensor> {
    let x = kit.site("input-out", inputs[0].matmul(&kit.get("input")?.t()?)?.tanh()?)?;
    let inner = x.matmul(&kit.get("branch.in")?.t()?)?.broadcast_add(&kit.get("branch.bias")?)?;
    let inner = kit.formula("tanh", inner.tanh()?, || Ok(inner.clone()))?;
    let inner = if drop { dropout(&inner)? } else { inner };
    let x = (&x + kit.site("branch", inner.matmul(&kit.get("branch.out")?.t()?)?)?)?;
    let y = x.matmul(&kit.get("output")?.t()?)?;
    kit.site("loss", ((y - &inputs[1])?.sqr()?.mean_all()? * scale)?)
}
