//! An encoder: LayerNorm, attention in both directions with biases, GELU, a class from the mean.

use super::family::Family;
use super::kit::{Kit, Start, below, cross_entropy, normal};
use crate::arbiter::Expectation;
use crate::rng::Stream;
use candle_core::{D, DType, Result, Tensor};
use candle_nn::ops;

const WIDTH: usize = 8;
const TIME: usize = 5;
const BATCH: usize = 3;
const CLASSES: usize = 4;

const MATRIX: Start = Start::Normal(0.3);
const BIAS: Start = Start::Normal(0.1);

/// Softmax does not feel a key's bias: it adds the same number to all scores of a query.
pub const ENCODER: Family = Family {
    name: "encoder",
    variables: &[
        ("norm1.gain", &[WIDTH], Start::Constant(1.0)),
        ("norm1.bias", &[WIDTH], BIAS),
        ("q", &[WIDTH, WIDTH], MATRIX),
        ("q.bias", &[WIDTH], BIAS),
        ("k", &[WIDTH, WIDTH], MATRIX),
        ("k.bias", &[WIDTH], BIAS),
        ("v", &[WIDTH, WIDTH], MATRIX),
        ("v.bias", &[WIDTH], BIAS),
        ("norm2.gain", &[WIDTH], Start::Constant(1.0)),
        ("norm2.bias", &[WIDTH], BIAS),
        ("up", &[16, WIDTH], MATRIX),
        ("up.bias", &[16], BIAS),
        ("down", &[WIDTH, 16], MATRIX),
        ("class", &[CLASSES, WIDTH], MATRIX),
        ("class.bias", &[CLASSES], BIAS),
    ],
    expectations: &[("k.bias", Expectation::Zero)],
    inputs,
    loss,
};

/// Vectors `[BATCH, TIME, WIDTH]` and classes `[BATCH]`.
fn inputs(stream: &Stream, dtype: DType) -> Result<Vec<Tensor>> {
    Ok(vec![normal(stream, &[BATCH, TIME, WIDTH], dtype)?, below(stream, &[BATCH], CLASSES as u64)?])
}

fn affine(kit: &Kit, x: &Tensor, weight: &'static str, bias: &'static str) -> Result<Tensor> {
    x.contiguous()?.broadcast_matmul(&kit.get(weight)?.t()?)?.broadcast_add(&kit.get(bias)?)
}

/// Removes mean and deviation; the wrong derivative takes both for constants.
fn layer_norm(kit: &Kit, x: &Tensor, site: &'static str, gain: &'static str, bias: &'static str) -> Result<Tensor> {
    let mean = x.mean_keepdim(D::Minus1)?;
    let centred = x.broadcast_sub(&mean)?;
    let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + 1e-5)?.sqrt()?;
    let normed = centred.broadcast_div(&deviation)?;
    let normed = kit.formula(site, normed, || x.broadcast_sub(&mean.detach())?.broadcast_div(&deviation.detach()))?;
    normed.broadcast_mul(&kit.get(gain)?)?.broadcast_add(&kit.get(bias)?)
}

fn loss(kit: &Kit, inputs: &[Tensor]) -> Result<Tensor> {
    let x = &inputs[0];
    let normed = kit.site("normed", layer_norm(kit, x, "layer-norm", "norm1.gain", "norm1.bias")?)?;
    let q = affine(kit, &normed, "q", "q.bias")?;
    let k = affine(kit, &normed, "k", "k.bias")?;
    let v = affine(kit, &normed, "v", "v.bias")?;
    let scores = (q.matmul(&k.transpose(1, 2)?)? / (WIDTH as f64).sqrt())?;
    let weights = kit.site("weights", ops::softmax(&scores, D::Minus1)?)?;
    let x = (x + kit.site("mixed", weights.matmul(&v)?)?)?;
    let normed = layer_norm(kit, &x, "layer-norm-2", "norm2.gain", "norm2.bias")?;
    let up = affine(kit, &normed, "up", "up.bias")?;
    let active = kit.formula("gelu", up.gelu_erf()?, || up.gelu())?;
    let x = (&x + active.broadcast_matmul(&kit.get("down")?.t()?)?)?;
    let pooled = kit.formula("pooled", x.mean(1)?, || x.sum(1))?;
    let logits = affine(kit, &pooled, "class", "class.bias")?;
    kit.site("loss", cross_entropy(&logits, &inputs[1])?)
}
