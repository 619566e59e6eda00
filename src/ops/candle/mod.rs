//! The kernels as differentiable Candle ops on the CPU, in place of `candle_nn`'s fused ones, which
//! return no gradient.
//!
//! Inputs may lie in memory in any order. The backward pass builds new tensors, so that no gradient
//! keeps a graph alive; every tracked input gets one, as Candle panics where one gets none.

mod attention;
mod embedding;
mod layer_norm;
mod linear;
mod linear_cross_entropy;
pub mod optimizer;
mod rms_norm;
mod rope;
mod softmax;
mod swiglu;

pub use attention::causal_attention;
pub use embedding::embedding;
pub use layer_norm::layer_norm;
pub use linear::linear;
pub use linear_cross_entropy::linear_cross_entropy;
pub use rms_norm::rms_norm;
pub use rope::{rope, rope_interleaved, rope_thd};
pub use softmax::softmax_last_dim;
pub use swiglu::swiglu;

use super::Real;
use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, DType, Layout, Result, Shape, Storage, Tensor, WithDType, bail,
};

/// f32 and f64, as both the kernels and Candle know them.
trait Number: Real + WithDType {}
impl Number for f32 {}
impl Number for f64 {}

/// An op over flat row-major inputs.
trait Fused: Send + Sync + 'static {
    const NAME: &'static str;
    /// Shape of the output; that of the first input unless an op says otherwise.
    fn shape(&self, inputs: &[&Shape]) -> Shape {
        inputs[0].clone()
    }
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T>;
    /// One gradient per input; where `wanted` says no, it is dropped and may stay empty.
    fn backward<T: Number>(&self, inputs: &[&[T]], out: &[T], dout: &[T], wanted: &[bool]) -> Vec<Vec<T>>;
}

struct Op<F>(F);

/// The numbers of a contiguous tensor, where they lie.
fn numbers<'a, T: Number>(name: &str, storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [T]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<T>()?[start..end]),
        None => bail!("{name}: an input is not contiguous; call .contiguous() first"),
    }
}

fn run<F: Fused>(op: &F, inputs: &[(&CpuStorage, &Layout)]) -> Result<(CpuStorage, Shape)> {
    fn typed<T: Number, F: Fused>(op: &F, inputs: &[(&CpuStorage, &Layout)]) -> Result<CpuStorage> {
        let slices = inputs.iter().map(|(storage, layout)| numbers::<T>(F::NAME, storage, layout));
        Ok(T::to_cpu_storage_owned(op.forward(&slices.collect::<Result<Vec<_>>>()?)))
    }
    let storage = match inputs[0].0 {
        CpuStorage::F64(_) => typed::<f64, F>(op, inputs)?,
        _ => typed::<f32, F>(op, inputs)?,
    };
    let shapes: Vec<&Shape> = inputs.iter().map(|(_, layout)| layout.shape()).collect();
    Ok((storage, op.shape(&shapes)))
}

/// The gradients of `N` inputs, read where they lie: nothing is copied but a `dout` in another order.
fn gradients<F: Fused, const N: usize>(
    op: &F,
    inputs: [&Tensor; N],
    out: &Tensor,
    dout: &Tensor,
) -> Result<[Option<Tensor>; N]> {
    fn typed<T: Number, F: Fused, const N: usize>(
        op: &F,
        inputs: [&Tensor; N],
        out: &Tensor,
        dout: &Tensor,
    ) -> Result<[Option<Tensor>; N]> {
        let wanted = inputs.map(Tensor::track_op);
        let guards: Vec<_> = inputs.iter().chain([&out, &dout]).map(|tensor| tensor.storage_and_layout()).collect();
        let slices = guards.iter().map(|(storage, layout)| match &**storage {
            Storage::Cpu(storage) => numbers::<T>(F::NAME, storage, layout),
            _ => bail!("{}: only the CPU is supported; move the tensor with .to_device()", F::NAME),
        });
        let slices = slices.collect::<Result<Vec<_>>>()?;
        let mut found = [const { None }; N];
        let gradients = op.backward(&slices[..N], slices[N], slices[N + 1], &wanted);
        for (i, gradient) in gradients.into_iter().enumerate().filter(|(i, _)| wanted[*i]) {
            found[i] = Some(Tensor::from_vec(gradient, inputs[i].shape(), inputs[i].device())?);
        }
        Ok(found)
    }
    let dout = dout.contiguous()?;
    match out.dtype() {
        DType::F64 => typed::<f64, F, N>(op, inputs, out, &dout),
        _ => typed::<f32, F, N>(op, inputs, out, &dout),
    }
}

impl<F: Fused> CustomOp1 for Op<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }
    fn cpu_fwd(&self, s: &CpuStorage, l: &Layout) -> Result<(CpuStorage, Shape)> {
        run(&self.0, &[(s, l)])
    }
    fn bwd(&self, a: &Tensor, out: &Tensor, dout: &Tensor) -> Result<Option<Tensor>> {
        let [first] = gradients(&self.0, [a], out, dout)?;
        Ok(first)
    }
}

impl<F: Fused> CustomOp2 for Op<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }
    fn cpu_fwd(&self, s1: &CpuStorage, l1: &Layout, s2: &CpuStorage, l2: &Layout) -> Result<(CpuStorage, Shape)> {
        run(&self.0, &[(s1, l1), (s2, l2)])
    }
    fn bwd(&self, a: &Tensor, b: &Tensor, out: &Tensor, dout: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok(gradients(&self.0, [a, b], out, dout)?.into())
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
        Ok(gradients(&self.0, [a, b, c], out, dout)?.into())
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
