//! A mixture of experts: a router sends each position to its best expert, weighted by its share.

use super::family::Family;
use super::kit::{Kit, Start, normal};
use crate::arbiter::Expectation;
use crate::rng::Stream;
use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::ops;

const WIDTH: usize = 6;
const EXPERTS: usize = 3;
const ROWS: usize = 10;

const MATRIX: Start = Start::Normal(0.4);

macro_rules! family {
    ($name:expr, $loss:expr, $expectations:expr) => {
        Family {
            name: $name,
            variables: &[
                ("input", &[WIDTH, WIDTH], MATRIX),
                ("router", &[EXPERTS, WIDTH], Start::Normal(1.0)),
                ("experts", &[EXPERTS, WIDTH, WIDTH], MATRIX),
                ("output", &[WIDTH, WIDTH], MATRIX),
            ],
            expectations: $expectations,
            inputs,
            loss: $loss,
        }
    };
}

/// Whatever the router chooses: an expert may get no position of the probe.
pub const MIXTURE: Family = family!("mixture of experts", |kit, inputs| run(kit, inputs, false), &[]);

/// The last expert never gets a position, as is declared.
pub const IDLE_EXPERT: Family = family!(
    "mixture of experts, one idle",
    |kit, inputs| run(kit, inputs, true),
    &[("experts", Expectation::SparseRows)]
);

/// Vectors `[ROWS, WIDTH]` and what to make of them.
fn inputs(stream: &Stream, dtype: DType) -> Result<Vec<Tensor>> {
    let both = normal(stream, &[2, ROWS, WIDTH], dtype)?;
    Ok(vec![both.get(0)?, both.get(1)?])
}

/// 1 where expert `expert` has the largest logit of a row, else 0, `[ROWS, 1]`; the last can be kept out.
fn chosen(logits: &Tensor, expert: usize, idle: bool) -> Result<Tensor> {
    let rows: Vec<Vec<f64>> = logits.detach().to_dtype(DType::F64)?.to_vec2()?;
    let experts = if idle { EXPERTS - 1 } else { EXPERTS };
    let best = |row: &Vec<f64>| (0..experts).fold(0, |best, e| if row[e] > row[best] { e } else { best });
    let mask: Vec<f64> = rows.iter().map(|row| f64::from(best(row) == expert)).collect();
    Tensor::from_vec(mask, (ROWS, 1), &Device::Cpu)?.to_dtype(logits.dtype())
}

fn run(kit: &Kit, inputs: &[Tensor], idle: bool) -> Result<Tensor> {
    let x = kit.site("input-out", inputs[0].matmul(&kit.get("input")?.t()?)?.tanh()?)?;
    let logits = x.matmul(&kit.get("router")?.t()?)?;
    let shares = ops::softmax(&logits, D::Minus1)?;
    let shares = kit.formula("shares", shares.clone(), || shares.detach() * &logits)?;
    let experts = kit.get("experts")?;
    let mut sum = x.zeros_like()?;
    for expert in 0..EXPERTS {
        let share = shares.narrow(1, expert, 1)?.broadcast_mul(&chosen(&logits, expert, idle)?)?;
        let out = x.matmul(&experts.get(expert)?.t()?)?.tanh()?;
        sum = (sum + out.broadcast_mul(&share)?)?;
    }
    let y = (&x + kit.site("mixed", sum)?)?.matmul(&kit.get("output")?.t()?)?;
    kit.site("loss", (y - &inputs[1])?.sqr()?.mean_all()?)
}
