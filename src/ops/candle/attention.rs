use super::super::attention as kernel;
use super::{Fused, Number, Op, check_types};
use candle_core::{Result, Tensor, bail};

struct Attention(kernel::Shape);

impl Attention {
    /// Output and log-sum-exp.
    fn outputs<T: Number>(&self, inputs: &[&[T]]) -> (Vec<T>, Vec<T>) {
        let mut out = vec![T::ZERO; inputs[0].len()];
        let mut sums = vec![T::ZERO; self.0.batch * self.0.heads * self.0.time];
        kernel::forward(inputs[0], inputs[1], inputs[2], &self.0, &mut out, &mut sums);
        (out, sums)
    }
}

impl Fused for Attention {
    const NAME: &'static str = "shikha-causal-attention";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        self.outputs(inputs).0
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T], _: &[bool]) -> Vec<Vec<T>> {
        let [q, k, v] = [inputs[0], inputs[1], inputs[2]];
        // A custom op has one output, so the log-sum-exp is computed again.
        let (out, sums) = self.outputs(inputs);
        let [mut dq, mut dk, mut dv] = [q, k, v].map(|x| vec![T::ZERO; x.len()]);
        let saved = kernel::Saved { out: &out, log_sum_exp: &sums };
        kernel::backward(q, k, v, saved, dout, &self.0, &mut dq, &mut dk, &mut dv);
        vec![dq, dk, dv]
    }
}

/// Causal attention of `q` `[batch, heads, time, head_dim]` over `k` and `v`
/// `[batch, kv_heads, time, head_dim]`, scaled by 1/√head_dim; see [`crate::ops::attention`].
///
/// # Errors
/// When the shapes or dtypes do not fit.
pub fn causal_attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor> {
    check_types(Attention::NAME, &[q, k, v])?;
    let (batch, heads, time, head_dim) = q.dims4()?;
    let (_, kv_heads, _, _) = k.dims4()?;
    let fits = k.dims() == [batch, kv_heads, time, head_dim] && v.dims() == k.dims();
    if !fits || q.elem_count() == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
        bail!(
            "causal_attention: q {:?}, k {:?}, v {:?} must be [batch, heads, time, head_dim] with equal k and v whose heads divide those of q",
            q.dims(),
            k.dims(),
            v.dims()
        );
    }
    let rows = |tensor: &Tensor| tensor.transpose(1, 2)?.contiguous();
    let op = Op(Attention(kernel::Shape { batch, time, heads, kv_heads, head_dim }));
    rows(q)?.apply_op3(&rows(k)?, &rows(v)?, op)?.transpose(1, 2)
}
