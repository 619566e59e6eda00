//! A small decoder as a Candle user writes it, with `candle_nn`'s fused ops: which of its parameters get
//! no gradient? Then the same decoder with shikha's ops, and with ops composed of plain tensor ops.
//!
//!     cargo run --release --example swap_ops

use candle_core::{DType, Device, Result, Tensor, Var};
use shikha::ops::candle::{self, optimizer};
use shikha::ops::composed;
use shikha::rng::Stream;
use std::collections::BTreeMap;
use std::time::Instant;

const VOCABULARY: usize = 512;
const WIDTH: usize = 128;
const HEADS: usize = 4;
const LAYERS: usize = 2;
const TIME: usize = 64;
const BATCH: usize = 4;
const STEPS: u32 = 10;

/// The ops that are swapped.
struct Ops {
    name: &'static str,
    rms_norm: fn(&Tensor, &Tensor) -> Result<Tensor>,
    rope: fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
    softmax: fn(&Tensor) -> Result<Tensor>,
}

const THEIRS: Ops = Ops {
    name: "candle_nn, fused",
    rms_norm: |x, gain| candle_nn::ops::rms_norm(x, gain, 1e-5),
    rope: candle_nn::rotary_emb::rope,
    softmax: candle_nn::ops::softmax_last_dim,
};
const OURS: Ops = Ops {
    name: "shikha",
    rms_norm: |x, gain| candle::rms_norm(x, gain, 1e-5),
    rope: candle::rope,
    softmax: candle::softmax_last_dim,
};
const COMPOSED: Ops = Ops {
    name: "composed",
    rms_norm: |x, gain| composed::rms_norm(x, gain, 1e-5),
    rope: composed::rope,
    softmax: composed::softmax_last_dim,
};

type Parameters = BTreeMap<String, Var>;

fn parameters() -> Result<Parameters> {
    let mut shapes = vec![("embed".to_owned(), vec![VOCABULARY, WIDTH]), ("norm".to_owned(), vec![WIDTH])];
    for layer in 0..LAYERS {
        for part in ["q", "k", "v", "o", "ffn"] {
            shapes.push((format!("{layer}.{part}"), vec![WIDTH, WIDTH]));
        }
        shapes.push((format!("{layer}.attention_norm"), vec![WIDTH]));
        shapes.push((format!("{layer}.ffn_norm"), vec![WIDTH]));
    }
    let made = shapes.into_iter().map(|(name, shape)| {
        let stream = Stream::new(1, &name);
        let normal = |i: usize| if shape.len() == 1 { 1.0 } else { 0.05 * stream.normal(i as u64) as f32 };
        let values: Vec<f32> = (0..shape.iter().product()).map(normal).collect();
        Ok((name, Var::from_vec(values, shape, &Device::Cpu)?))
    });
    made.collect()
}

fn linear(x: &Tensor, weight: &Var) -> Result<Tensor> {
    x.broadcast_matmul(&weight.t()?)
}

fn attention(ops: &Ops, vars: &Parameters, layer: usize, x: &Tensor) -> Result<Tensor> {
    let width = WIDTH / HEADS;
    let angles: Vec<f32> = (0..TIME * width / 2)
        .map(|i| (i / (width / 2)) as f32 * 1e4f32.powf(-2.0 * (i % (width / 2)) as f32 / width as f32))
        .collect();
    let angles = Tensor::from_vec(angles, (TIME, width / 2), &Device::Cpu)?;
    let (cos, sin) = (angles.cos()?, angles.sin()?);
    let heads = |part: &str| {
        let y = linear(x, &vars[&format!("{layer}.{part}")])?;
        y.reshape((BATCH, TIME, HEADS, width))?.transpose(1, 2)?.contiguous()
    };
    let (q, k) = ((ops.rope)(&heads("q")?, &cos, &sin)?, (ops.rope)(&heads("k")?, &cos, &sin)?);
    let scores = (q.matmul(&k.t()?)? / (width as f64).sqrt())?;
    let future = (0..TIME * TIME).map(|i| if i % TIME > i / TIME { -1e9f32 } else { 0.0 });
    let mask = Tensor::from_iter(future, &Device::Cpu)?.reshape((TIME, TIME))?;
    let mixed = (ops.softmax)(&scores.broadcast_add(&mask)?)?.matmul(&heads("v")?)?;
    linear(&mixed.transpose(1, 2)?.reshape((BATCH, TIME, WIDTH))?, &vars[&format!("{layer}.o")])
}

/// Mean loss in nats of the next token.
fn loss(ops: &Ops, vars: &Parameters, ids: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let mut x = vars["embed"].index_select(ids, 0)?.reshape((BATCH, TIME, WIDTH))?;
    for layer in 0..LAYERS {
        let norm = |x: &Tensor, part: &str| (ops.rms_norm)(x, &vars[&format!("{layer}.{part}")]);
        x = (&x + attention(ops, vars, layer, &norm(&x, "attention_norm")?)?)?;
        x = (&x + linear(&norm(&x, "ffn_norm")?, &vars[&format!("{layer}.ffn")])?.silu()?)?;
    }
    let x = (ops.rms_norm)(&x, &vars["norm"])?;
    candle_nn::loss::cross_entropy(&linear(&x, &vars["embed"])?.flatten_to(1)?, targets)
}

fn main() -> Result<()> {
    let stream = Stream::new(2, "tokens");
    let token = |i: usize| ((stream.normal(i as u64).abs() * 150.0) as u32).min(VOCABULARY as u32 - 1);
    let tokens: Vec<u32> = (0..=BATCH * TIME).map(token).collect();
    let (ids, targets) = (&tokens[..BATCH * TIME], &tokens[1..]);
    let (ids, targets) = (Tensor::new(ids, &Device::Cpu)?, Tensor::new(targets, &Device::Cpu)?);
    for ops in [THEIRS, OURS, COMPOSED] {
        let vars = parameters()?;
        let gradients = loss(&ops, &vars, &ids, &targets)?.backward()?;
        let without: Vec<&str> =
            vars.iter().filter(|(_, var)| gradients.get(var).is_none()).map(|(n, _)| &**n).collect();
        println!("{}: {} of {} parameters get no gradient", ops.name, without.len(), vars.len());
        if !without.is_empty() {
            println!("    {}", without.join(" "));
        }
        let named = vars.iter().map(|(name, var)| (name.clone(), var.clone())).collect();
        let mut optimizer = optimizer::AdamW::new(named, optimizer::Settings::default(), optimizer::matrices_decay)?;
        if let Err(error) = optimizer.step(&gradients, 1e-3) {
            // The first line: a backtrace may follow.
            println!("    not trained: {}", error.to_string().lines().next().unwrap_or_default());
            continue;
        }
        let (start, mut last) = (Instant::now(), 0.0);
        for _ in 0..STEPS {
            let nats = loss(&ops, &vars, &ids, &targets)?;
            optimizer.step(&nats.backward()?, 1e-3)?;
            last = nats.to_dtype(DType::F64)?.to_scalar::<f64>()?;
        }
        let seconds = start.elapsed().as_secs_f64() / f64::from(STEPS);
        println!("    {seconds:.4} seconds per step; loss {last:.3} nats after {STEPS} steps");
    }
    Ok(())
}
