use super::super::softmax as kernel;
use super::{Fused, Number, Op, check_types};
use candle_core::{Result, Tensor, bail};

struct Softmax(usize);

impl Fused for Softmax {
    const NAME: &'static str = "shikha-softmax";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; inputs[0].len()];
        kernel::forward(inputs[0], &mut out, self.0);
        out
    }
    fn backward<T: Number>(&self, _: &[&[T]], out: &[T], dout: &[T], _: &[bool]) -> Vec<Vec<T>> {
        let mut dx = vec![T::ZERO; out.len()];
        kernel::backward(out, dout, &mut dx, self.0);
        vec![dx]
    }
}

/// Softmax over the last dimension of `x`; see [`crate::ops::softmax`].
///
/// # Errors
/// When `x` has no last dimension, it is empty or the dtype is not f32 or f64.
pub fn softmax_last_dim(x: &Tensor) -> Result<Tensor> {
    check_types(Softmax::NAME, &[x])?;
    match x.dims().last() {
        Some(width) if *width > 0 => x.contiguous()?.apply_op1(Op(Softmax(*width))),
        _ => bail!("softmax_last_dim: x {:?} needs a last dimension that is not empty", x.dims()),
    }
}
