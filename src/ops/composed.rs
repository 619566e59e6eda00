//! The slow twin of each op of [`super::candle`] in plain Candle ops, whose gradients Candle derives
//! itself: what the fused ops are tested and measured against.
//!
//! # Errors
//! Each function gives Candle's error when the shapes or dtypes do not fit.

use super::IGNORE;
use candle_core::{D, Result, Tensor};
use candle_nn::{ops, rotary_emb};

/// Twin of [`super::candle::rms_norm`].
pub fn rms_norm(x: &Tensor, gain: &Tensor, epsilon: f64) -> Result<Tensor> {
    let mean = (x.sqr()?.mean_keepdim(D::Minus1)? + epsilon)?;
    x.broadcast_div(&mean.sqrt()?)?.broadcast_mul(gain)
}

/// Twin of [`super::candle::layer_norm`].
pub fn layer_norm(x: &Tensor, gain: &Tensor, bias: &Tensor, epsilon: f64) -> Result<Tensor> {
    let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
    let variance = (centred.sqr()?.mean_keepdim(D::Minus1)? + epsilon)?;
    centred.broadcast_div(&variance.sqrt()?)?.broadcast_mul(gain)?.broadcast_add(bias)
}

/// Twin of [`super::candle::swiglu`].
pub fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    ops::silu(gate)? * up
}

/// Twin of [`super::candle::softmax_last_dim`].
pub fn softmax_last_dim(x: &Tensor) -> Result<Tensor> {
    ops::softmax(x, D::Minus1)
}

/// Twin of [`super::candle::rope`].
pub fn rope(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    rotary_emb::rope_slow(x, cos, sin)
}

/// Twin of [`super::candle::rope_interleaved`].
pub fn rope_interleaved(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    rotary_emb::rope_i_slow(x, cos, sin)
}

/// Twin of [`super::candle::rope_thd`].
pub fn rope_thd(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    rope(&x.transpose(1, 2)?, cos, sin)?.transpose(1, 2)
}

/// Twin of [`super::candle::causal_attention`]; keeps the whole matrix of time × time.
pub fn causal_attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    let (batch, heads, time, head_dim) = q.dims4()?;
    let kv_heads = k.dim(1)?;
    let spread = |t: &Tensor| {
        let shape = (batch, kv_heads, heads / kv_heads, time, head_dim);
        t.unsqueeze(2)?.broadcast_as(shape)?.reshape((batch, heads, time, head_dim))
    };
    let scores = (q.contiguous()?.matmul(&spread(k)?.t()?.contiguous()?)? / (head_dim as f64).sqrt())?;
    let hidden = |i: usize| if i % time > i / time { f64::NEG_INFINITY } else { 0.0 };
    let mask = Tensor::from_vec((0..time * time).map(hidden).collect(), (time, time), q.device())?;
    let scores = scores.broadcast_add(&mask.to_dtype(q.dtype())?)?;
    ops::softmax(&scores, D::Minus1)?.matmul(&spread(v)?)
}

/// Twin of [`super::candle::embedding`].
pub fn embedding(ids: &Tensor, table: &Tensor) -> Result<Tensor> {
    let shape = [ids.dims(), &[table.dim(1)?]].concat();
    table.contiguous()?.index_select(&ids.flatten_all()?, 0)?.reshape(shape)
}

/// Twin of [`super::candle::linear`].
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let (outputs, inputs) = weight.dims2()?;
    let shape = [&x.dims()[..x.rank().saturating_sub(1)], &[outputs]].concat();
    let y = x.reshape(((), inputs))?.matmul(&weight.t()?)?.reshape(shape)?;
    bias.map_or(Ok(y.clone()), |bias| y.broadcast_add(bias))
}

/// Twin of [`super::candle::linear_cross_entropy`]; keeps all logits.
pub fn linear_cross_entropy(x: &Tensor, weight: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let logits = linear(x, weight, None)?.reshape(((), weight.dim(0)?))?;
    let log = ops::log_softmax(&logits, D::Minus1)?;
    let targets: Vec<u32> = targets.flatten_all()?.to_vec1()?;
    let rows: Vec<u32> = (0..targets.len() as u32).filter(|i| targets[*i as usize] != IGNORE).collect();
    let kept: Vec<u32> = targets.into_iter().filter(|target| *target != IGNORE).collect();
    let count = kept.len();
    let log = log.index_select(&Tensor::from_vec(rows, count, x.device())?, 0)?;
    let picked = log.gather(&Tensor::from_vec(kept, (count, 1), x.device())?, 1)?;
    picked.neg()?.mean_all()
}
