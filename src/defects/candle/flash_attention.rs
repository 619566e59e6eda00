//! CPU flash attention: its output is built from plain numbers, so the graph ends there.
// The newer name, attention::flash_attn, is not in the older versions of the matrix.
#![allow(deprecated)]

use crate::defects::probe::tensor;
use crate::defects::training::Decoder;
use crate::defects::{ATTENTION, Check, Entry, Kind, Training};
use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::cpu_flash_attention::run_flash_attn_cpu;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-flash-attention-cpu",
    title: "CPU flash attention gives no gradient to queries, keys or values, without an error",
    kind: Kind::MissingGradient,
    report: None,
    reading: Some(ATTENTION),
    check: Check::Gradient { defect, control, input },
    training: Training::Runs(train),
    workaround: "composed attention with ops::softmax",
    source: include_str!("flash_attention.rs"),
};

// reproducer {
/// Queries, keys and values are [batch, time, heads, head_dim].
fn input() -> Result<Tensor> {
    tensor(&[1, 5, 2, 4], 1, DType::F32)
}

fn defect(q: &Tensor) -> Result<Tensor> {
    let (k, v) = (tensor(&[1, 5, 2, 4], 2, DType::F32)?, tensor(&[1, 5, 2, 4], 3, DType::F32)?);
    run_flash_attn_cpu::<f32>(q, &k, &v, None, 0.5, None, None)
}
// }

/// [batch, time, heads, head_dim] to [batch, heads, time, head_dim] and back.
fn heads(x: &Tensor) -> Result<Tensor> {
    x.transpose(1, 2)?.contiguous()
}

fn control(q: &Tensor) -> Result<Tensor> {
    let (k, v) = (tensor(&[1, 5, 2, 4], 2, DType::F32)?, tensor(&[1, 5, 2, 4], 3, DType::F32)?);
    let scores = (heads(q)?.matmul(&heads(&k)?.t()?.contiguous()?)? * 0.5)?;
    candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&heads(&v)?)
}

/// Causal, over [batch, heads, time, head_dim].
fn fused(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let (time, width) = (q.dim(2)?, q.dim(3)?);
    let value = |i: usize| if i % time > i / time { f32::NEG_INFINITY } else { 0.0 };
    let mask = Tensor::from_vec((0..time * time).map(value).collect(), (time, time), &Device::Cpu)?;
    let scale = 1.0 / (width as f32).sqrt();
    let attend = |i: usize| {
        let one = |x: &Tensor| heads(&x.narrow(0, i, 1)?);
        run_flash_attn_cpu::<f32>(&one(q)?, &one(k)?, &one(v)?, Some(&mask), scale, None, None)
    };
    Tensor::cat(&(0..q.dim(0)?).map(attend).collect::<Result<Vec<_>>>()?, 0)
}

fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    Decoder { attend: defective.then_some(fused), ..Decoder::HEALTHY }.run(seed)
}
