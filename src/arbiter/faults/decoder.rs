//! A decoder: RMSNorm, rotary causal attention, SwiGLU, with its own or a tied output layer.

use super::family::Family;
use super::kit::{Kit, Start, below, cross_entropy};
use crate::rng::Stream;
use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{ops, rotary_emb};

const VOCABULARY: usize = 13;
const WIDTH: usize = 8;
const HEADS: usize = 2;
const TIME: usize = 6;
const BATCH: usize = 2;

const MATRIX: Start = Start::Normal(0.3);
const ONE: Start = Start::Constant(1.0);

macro_rules! variables {
    ($($extra:expr),*) => {
        &[
            ("embedding", &[VOCABULARY, WIDTH], Start::Normal(0.5)),
            ("attention.norm", &[WIDTH], ONE),
            ("attention.q", &[WIDTH, WIDTH], MATRIX),
            ("attention.k", &[WIDTH, WIDTH], MATRIX),
            ("attention.v", &[WIDTH, WIDTH], MATRIX),
            ("attention.o", &[WIDTH, WIDTH], MATRIX),
            ("mlp.norm", &[WIDTH], ONE),
            ("mlp.gate", &[12, WIDTH], MATRIX),
            ("mlp.up", &[12, WIDTH], MATRIX),
            ("mlp.down", &[WIDTH, 12], MATRIX),
            ("norm", &[WIDTH], ONE),
            $($extra),*
        ]
    };
}

/// With an output layer of its own.
pub const DECODER: Family = Family {
    name: "decoder",
    variables: variables!(("head", &[VOCABULARY, WIDTH], MATRIX)),
    expectations: &[],
    inputs,
    loss: |kit, inputs| run(kit, inputs, "head"),
};

/// With the embedding as its output layer.
pub const TIED_DECODER: Family = Family {
    name: "tied decoder",
    variables: variables!(),
    expectations: &[],
    inputs,
    loss: |kit, inputs| run(kit, inputs, "embedding"),
};

/// Tokens `[BATCH, TIME]` and their successors; three tokens of the vocabulary never occur in them.
fn inputs(stream: &Stream, _: DType) -> Result<Vec<Tensor>> {
    let tokens = below(stream, &[BATCH, TIME + 1], VOCABULARY as u64 - 3)?;
    Ok(vec![tokens.narrow(1, 0, TIME)?.contiguous()?, tokens.narrow(1, 1, TIME)?.contiguous()?])
}

fn run(kit: &Kit, inputs: &[Tensor], head: &str) -> Result<Tensor> {
    let ids = inputs[0].flatten_all()?;
    let mut x = kit.site("lookup", embed(kit, &ids)?)?;
    let normed = rms_norm(kit, "attention.norm", &x)?;
    x = (&x + kit.site("attention", attention(kit, &normed)?)?)?;
    let normed = rms_norm(kit, "mlp.norm", &x)?;
    let gate = normed.matmul(&kit.get("mlp.gate")?.t()?)?;
    let up = normed.matmul(&kit.get("mlp.up")?.t()?)?;
    let slope = ops::sigmoid(&gate)?.detach();
    let silu = kit.formula("silu", ops::silu(&gate)?, || &gate * &slope)?;
    x = (&x + kit.site("mlp", (silu * up)?.matmul(&kit.get("mlp.down")?.t()?)?)?)?;
    let hidden = kit.site("hidden", rms_norm(kit, "norm", &x)?)?;
    let head = kit.get_at(head, "output")?;
    let logits = kit.site("logits", hidden.matmul(&head.t()?)?)?;
    kit.site("loss", cross_entropy(&logits, &inputs[1].flatten_all()?)?)
}

/// Rows of the table; the wrong derivative keeps only the last occurrence of a token.
fn embed(kit: &Kit, ids: &Tensor) -> Result<Tensor> {
    let rows = kit.get("embedding")?.index_select(ids, 0)?;
    kit.formula("duplicates", rows.clone(), || {
        let tokens: Vec<u32> = ids.to_vec1()?;
        let last: Vec<f64> = (0..tokens.len()).map(|i| f64::from(!tokens[i + 1..].contains(&tokens[i]))).collect();
        let mask = Tensor::from_vec(last, (tokens.len(), 1), &Device::Cpu)?.to_dtype(rows.dtype())?;
        rows.broadcast_mul(&mask)
    })
}

/// x·gain/√(mean x² + 10⁻⁵); the wrong derivative takes the root for a constant.
fn rms_norm(kit: &Kit, gain: &'static str, x: &Tensor) -> Result<Tensor> {
    let root = (x.sqr()?.mean_keepdim(D::Minus1)? + 1e-5)?.sqrt()?;
    let weight = kit.get(gain)?;
    let normed = x.broadcast_div(&root)?.broadcast_mul(&weight)?;
    let site = if gain == "norm" { "rms-norm" } else { "inner-norm" };
    kit.formula(site, normed, || x.broadcast_div(&root.detach())?.broadcast_mul(&weight))
}

fn attention(kit: &Kit, x: &Tensor) -> Result<Tensor> {
    let head = WIDTH / HEADS;
    let split = |x: Tensor| x.reshape((BATCH, TIME, HEADS, head))?.transpose(1, 2)?.contiguous();
    let project = |name| split(x.matmul(&kit.get(name)?.t()?)?);
    let (q, k, v) = (project("attention.q")?, project("attention.k")?, project("attention.v")?);
    let (q, k) = (turn(kit, "rope-q", &q)?, turn(kit, "rope-k", &k)?);
    let products = q.matmul(&k.transpose(2, 3)?)?;
    let root = (head as f64).sqrt();
    let scores = kit.formula("scores", (&products / root)?, || Ok(products.clone()))?;
    let scores = scores.broadcast_add(&mask(scores.dtype())?)?;
    let weights = ops::softmax(&scores, D::Minus1)?;
    let weights = kit.formula("softmax", weights.clone(), || weights.detach() * &scores)?;
    let mixed = kit.site("values", weights.matmul(&v)?)?;
    let merged = mixed.transpose(1, 2)?.contiguous()?.reshape((BATCH * TIME, WIDTH))?;
    merged.matmul(&kit.get("attention.o")?.t()?)
}

/// Rotates the pairs of every head; the wrong derivative turns the wrong way.
fn turn(kit: &Kit, site: &'static str, x: &Tensor) -> Result<Tensor> {
    let half = WIDTH / HEADS / 2;
    let angle = |i: usize| (i / half) as f64 * 100f64.powf(-((i % half) as f64) / half as f64);
    let angles: Vec<f64> = (0..TIME * half).map(angle).collect();
    let angles = Tensor::from_vec(angles, (TIME, half), &Device::Cpu)?;
    let (cos, sin) = (angles.cos()?.to_dtype(x.dtype())?, angles.sin()?.to_dtype(x.dtype())?);
    kit.formula(site, rotary_emb::rope_slow(x, &cos, &sin)?, || rotary_emb::rope_slow(x, &cos, &sin.neg()?))
}

/// 0 on and below the diagonal, −10⁴ above it.
fn mask(dtype: DType) -> Result<Tensor> {
    let mask: Vec<f64> = (0..TIME * TIME).map(|i| if i % TIME > i / TIME { -1e4 } else { 0.0 }).collect();
    Tensor::from_vec(mask, (TIME, TIME), &Device::Cpu)?.to_dtype(dtype)
}
