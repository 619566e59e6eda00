//! `attention::flash_attn` on the CPU: its output is built from plain numbers, so the graph ends there.

use crate::defects::probe::{judge_gradient, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{D, DType, Result, Tensor};
use candle_nn::attention::{AttnMask, flash_attn};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-flash-attention-cpu",
    title: "CPU flash attention gives no gradient to queries, keys or values, without an error",
    kind: Kind::MissingGradient,
    report: None,
    reading: Some("low to medium: the first thing one tries for speed"),
    reproduce,
    control,
    workaround: "composed attention with ops::softmax",
};

/// Keys and values [batch, time, heads, head_dim], as flash attention takes them.
fn keys_and_values() -> Result<(Tensor, Tensor)> {
    Ok((tensor(&[1, 5, 2, 4], 2, DType::F32)?, tensor(&[1, 5, 2, 4], 3, DType::F32)?))
}

fn reproduce() -> Result<Verdict> {
    let (k, v) = keys_and_values()?;
    let attend = |q: &Tensor| flash_attn::<f32>(q, &k, &v, 0.5, AttnMask::None, None, None);
    judge_gradient(&attend, &tensor(&[1, 5, 2, 4], 1, DType::F32)?)
}

fn control() -> Result<Verdict> {
    let (k, v) = keys_and_values()?;
    let heads = |x: &Tensor| x.transpose(1, 2)?.contiguous();
    let attend = |q: &Tensor| {
        let scores = (heads(q)?.matmul(&heads(&k)?.t()?.contiguous()?)? * 0.5)?;
        candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&heads(&v)?)
    };
    judge_gradient(&attend, &tensor(&[1, 5, 2, 4], 1, DType::F32)?)
}
