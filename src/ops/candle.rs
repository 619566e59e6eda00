//! The kernels as differentiable Candle ops on the CPU, in place of `candle_nn`'s fused ones, which
//! return no gradient.
//!
//! Inputs may lie in memory in any order. The backward pass builds new tensors, so that no gradient
//! keeps a graph alive; every input gets one, as Candle panics where a tracked input gets none.

use super::{Real, attention, rms_norm as norm, swiglu as gate};
use candle_core::{CpuStorage, CustomOp2, CustomOp3, DType, Layout, Result, Shape, Tensor, WithDType, bail};

/// f32 and f64, as both the kernels and Candle know them.
trait Number: Real + WithDType {}
impl Number for f32 {}
impl Number for f64 {}

/// An op over flat row-major inputs whose output has the shape of the first.
trait Fused: Send + Sync + 'static {
    const NAME: &'static str;
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T>;
    /// One gradient per input.
    fn backward<T: Number>(&self, inputs: &[&[T]], out: &[T], dout: &[T]) -> Vec<Vec<T>>;
}

struct Op<F>(F);

fn run<F: Fused>(op: &F, inputs: &[(&CpuStorage, &Layout)]) -> Result<(CpuStorage, Shape)> {
    fn typed<T: Number, F: Fused>(op: &F, inputs: &[(&CpuStorage, &Layout)]) -> Result<CpuStorage> {
        let slices = inputs.iter().map(|(storage, layout)| match layout.contiguous_offsets() {
            Some((start, end)) => Ok(&storage.as_slice::<T>()?[start..end]),
            None => bail!("{}: an input is not contiguous; call .contiguous() first", F::NAME),
        });
        Ok(T::to_cpu_storage_owned(op.forward(&slices.collect::<Result<Vec<_>>>()?)))
    }
    let storage = match inputs[0].0 {
        CpuStorage::F64(_) => typed::<f64, F>(op, inputs)?,
        _ => typed::<f32, F>(op, inputs)?,
    };
    Ok((storage, inputs[0].1.shape().clone()))
}

fn gradients<F: Fused>(op: &F, inputs: &[&Tensor], out: &Tensor, dout: &Tensor) -> Result<Vec<Option<Tensor>>> {
    fn typed<T: Number, F: Fused>(op: &F, inputs: &[&Tensor], out: &Tensor, dout: &Tensor) -> Result<Vec<Tensor>> {
        let values = |tensor: &Tensor| tensor.flatten_all()?.to_vec1::<T>();
        let flat = inputs.iter().map(|tensor| values(tensor)).collect::<Result<Vec<_>>>()?;
        let slices: Vec<&[T]> = flat.iter().map(Vec::as_slice).collect();
        let gradients = op.backward(&slices, &values(out)?, &values(dout)?);
        gradients.into_iter().zip(inputs).map(|(g, x)| Tensor::from_vec(g, x.shape(), x.device())).collect()
    }
    let found = match out.dtype() {
        DType::F64 => typed::<f64, F>(op, inputs, out, dout)?,
        _ => typed::<f32, F>(op, inputs, out, dout)?,
    };
    Ok(found.into_iter().map(Some).collect())
}

impl<F: Fused> CustomOp2 for Op<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }
    fn cpu_fwd(&self, s1: &CpuStorage, l1: &Layout, s2: &CpuStorage, l2: &Layout) -> Result<(CpuStorage, Shape)> {
        run(&self.0, &[(s1, l1), (s2, l2)])
    }
    fn bwd(&self, a: &Tensor, b: &Tensor, out: &Tensor, dout: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let mut found = gradients(&self.0, &[a, b], out, dout)?;
        let second = found.pop().flatten();
        Ok((found.pop().flatten(), second))
    }
}

impl<F: Fused> CustomOp3 for Op<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }
    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
        s3: &CpuStorage,
        l3: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        run(&self.0, &[(s1, l1), (s2, l2), (s3, l3)])
    }
    fn bwd(
        &self,
        a: &Tensor,
        b: &Tensor,
        c: &Tensor,
        out: &Tensor,
        dout: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let mut found = gradients(&self.0, &[a, b, c], out, dout)?;
        let (third, second) = (found.pop().flatten(), found.pop().flatten());
        Ok((found.pop().flatten(), second, third))
    }
}

/// Refuses what the kernels do not compute in, and mixtures.
fn check_types(name: &str, tensors: &[&Tensor]) -> Result<()> {
    let first = tensors[0].dtype();
    if !matches!(first, DType::F32 | DType::F64) {
        bail!("{name}: dtype {first:?} is not supported; convert to f32 or f64 with .to_dtype()");
    }
    match tensors.iter().find(|tensor| tensor.dtype() != first) {
        Some(other) => bail!("{name}: dtypes {first:?} and {:?} differ; convert one with .to_dtype()", other.dtype()),
        None => Ok(()),
    }
}

struct RmsNorm(f64);

impl Fused for RmsNorm {
    const NAME: &'static str = "shikha-rms-norm";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; inputs[0].len()];
        let mut inverse = vec![T::ZERO; out.len() / inputs[1].len()];
        norm::forward(inputs[0], inputs[1], self.0, &mut out, &mut inverse);
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T]) -> Vec<Vec<T>> {
        let (x, gain) = (inputs[0], inputs[1]);
        let (mut out, mut inverse) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len() / gain.len()]);
        norm::forward(x, gain, self.0, &mut out, &mut inverse);
        let (mut dx, mut dgain) = (vec![T::ZERO; x.len()], vec![T::ZERO; gain.len()]);
        norm::backward(x, gain, &inverse, dout, &mut dx, &mut dgain);
        vec![dx, dgain]
    }
}

/// RMSNorm over the last dimension of `x`, with `gain` of that length; see [`super::rms_norm`].
///
/// # Errors
/// When the lengths or dtypes do not fit.
pub fn rms_norm(x: &Tensor, gain: &Tensor, epsilon: f64) -> Result<Tensor> {
    check_types(RmsNorm::NAME, &[x, gain])?;
    if gain.rank() != 1 || gain.elem_count() == 0 || x.dims().last() != gain.dims().last() {
        bail!("rms_norm: gain {:?} must have the length of the last dimension of x {:?}", gain.dims(), x.dims());
    }
    x.contiguous()?.apply_op2(&gain.contiguous()?, Op(RmsNorm(epsilon)))
}

struct Swiglu;

impl Fused for Swiglu {
    const NAME: &'static str = "shikha-swiglu";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; inputs[0].len()];
        gate::forward(inputs[0], inputs[1], &mut out);
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T]) -> Vec<Vec<T>> {
        let (mut dgate, mut dup) = (vec![T::ZERO; dout.len()], vec![T::ZERO; dout.len()]);
        gate::backward(inputs[0], inputs[1], dout, &mut dgate, &mut dup);
        vec![dgate, dup]
    }
}

/// silu(`gate`)·`up`, element by element; see [`super::swiglu`].
///
/// # Errors
/// When the shapes or dtypes differ.
pub fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    check_types(Swiglu::NAME, &[gate, up])?;
    if gate.dims() != up.dims() {
        bail!("swiglu: gate {:?} and up {:?} must have the same shape", gate.dims(), up.dims());
    }
    gate.contiguous()?.apply_op2(&up.contiguous()?, Op(Swiglu))
}

struct Attention(attention::Shape);

impl Fused for Attention {
    const NAME: &'static str = "shikha-causal-attention";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; inputs[0].len()];
        let mut sums = vec![T::ZERO; self.0.batch * self.0.heads * self.0.time];
        attention::forward(inputs[0], inputs[1], inputs[2], &self.0, &mut out, &mut sums);
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T]) -> Vec<Vec<T>> {
        let [q, k, v] = [inputs[0], inputs[1], inputs[2]];
        // A custom op has one output, so the log-sum-exp is computed again.
        let mut out = vec![T::ZERO; q.len()];
        let mut sums = vec![T::ZERO; self.0.batch * self.0.heads * self.0.time];
        attention::forward(q, k, v, &self.0, &mut out, &mut sums);
        let [mut dq, mut dk, mut dv] = [q, k, v].map(|x| vec![T::ZERO; x.len()]);
        let saved = attention::Saved { out: &out, log_sum_exp: &sums };
        attention::backward(q, k, v, saved, dout, &self.0, &mut dq, &mut dk, &mut dv);
        vec![dq, dk, dv]
    }
}

/// Causal attention of `q` `[batch, heads, time, head_dim]` over `k` and `v`
/// `[batch, kv_heads, time, head_dim]`, scaled by 1/√head_dim; see [`super::attention`].
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
    let op = Op(Attention(attention::Shape { batch, time, heads, kv_heads, head_dim }));
    rows(q)?.apply_op3(&rows(k)?, &rows(v)?, op)?.transpose(1, 2)
}
