//! The case of attention.

use super::{Case, Number, Results};
use crate::ops::attention::{self, Saved, Shape};
use crate::ops::cuda::{self, Attention, Backend};

/// Attention, forward and backward: batch, time, heads, key heads, width of a head.
pub fn case<B: Backend + 'static, T: Number>(sizes: [usize; 5]) -> Case<B> {
    Case::new::<T>("attention", &sizes, move |b| -> Result<Results, String> {
        let [batch, time, heads, kv_heads, head_dim] = sizes;
        let shape = Shape { batch, time, heads, kv_heads, head_dim };
        let rows = batch * time;
        let (n, kv, sums) = (rows * heads * head_dim, rows * kv_heads * head_dim, rows * heads);
        let (q, dout) = (b.random::<T>("q", n)?, b.random::<T>("dout", n)?);
        let (k, v) = (b.random::<T>("k", kv)?, b.random::<T>("v", kv)?);
        let (out, dq) = (b.empty::<T>(n)?, b.empty::<T>(n)?);
        let (dk, dv) = (b.empty::<T>(kv)?, b.empty::<T>(kv)?);
        let (log_sum_exp, delta) = (b.empty::<f32>(sums)?, b.empty::<f32>(sums)?);
        let (vq, vk, vv, vdout) = (b.values(q)?, b.values(k)?, b.values(v)?, b.values(dout)?);
        let (mut want, mut want_sums) = (vec![0.0; n], vec![0.0; sums]);
        attention::forward(&vq, &vk, &vv, &shape, &mut want, &mut want_sums);
        let saved = Saved { out: &want, log_sum_exp: &want_sums };
        let (mut want_dq, mut want_dk, mut want_dv) = (vec![0.0; n], vec![0.0; kv], vec![0.0; kv]);
        let d = (&mut want_dq, &mut want_dk, &mut want_dv);
        attention::backward(&vq, &vk, &vv, saved, &vdout, &shape, d.0, d.1, d.2);
        let inputs = Attention { q: q.place, k: k.place, v: v.place, shape };
        b.run([cuda::attention_forward(inputs, out.place, log_sum_exp.place)])?;
        let gradients = [dq.place, dk.place, dv.place];
        let kept = [log_sum_exp.place, delta.place];
        b.run(cuda::attention_backward(inputs, [out.place, dout.place], kept, gradients))?;
        Ok(vec![
            (b.values(out)?, want),
            (b.values(log_sum_exp)?, want_sums),
            (b.values(dq)?, want_dq),
            (b.values(dk)?, want_dk),
            (b.values(dv)?, want_dv),
        ])
    })
}
