use super::super::swiglu as kernel;
use super::{Fused, Number, Op, check_types};
use candle_core::{Result, Tensor, bail};

struct Swiglu;

impl Fused for Swiglu {
    const NAME: &'static str = "shikha-swiglu";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; inputs[0].len()];
        kernel::forward(inputs[0], inputs[1], &mut out);
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T], _: &[bool]) -> Vec<Vec<T>> {
        let (mut dgate, mut dup) = (vec![T::ZERO; dout.len()], vec![T::ZERO; dout.len()]);
        kernel::backward(inputs[0], inputs[1], dout, &mut dgate, &mut dup);
        vec![dgate, dup]
    }
}

/// silu(`gate`)·`up`, element by element; see [`crate::ops::swiglu`].
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
