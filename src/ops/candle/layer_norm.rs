use super::super::layer_norm as kernel;
use super::{Fused, Number, Op, check_types};
use candle_core::{Result, Tensor, bail};

struct LayerNorm(f64);

impl Fused for LayerNorm {
    const NAME: &'static str = "shikha-layer-norm";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; inputs[0].len()];
        kernel::forward(inputs[0], inputs[1], inputs[2], self.0, &mut out);
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T], _: &[bool]) -> Vec<Vec<T>> {
        let zeros = |i: usize| vec![T::ZERO; inputs[i].len()];
        let (mut dx, mut dgain, mut dbias) = (zeros(0), zeros(1), zeros(2));
        let gradients = kernel::Gradients { dx: &mut dx, dgain: &mut dgain, dbias: &mut dbias };
        kernel::backward(inputs[0], inputs[1], self.0, dout, gradients);
        vec![dx, dgain, dbias]
    }
}

/// LayerNorm over the last dimension of `x`, with `gain` and `bias` of that length; see
/// [`crate::ops::layer_norm`].
///
/// # Errors
/// When the lengths or dtypes do not fit.
pub fn layer_norm(x: &Tensor, gain: &Tensor, bias: &Tensor, epsilon: f64) -> Result<Tensor> {
    check_types(LayerNorm::NAME, &[x, gain, bias])?;
    let fits = gain.rank() == 1 && gain.elem_count() > 0 && x.dims().last() == gain.dims().last();
    if !fits || bias.dims() != gain.dims() {
        bail!(
            "layer_norm: gain {:?} and bias {:?} must have the length of the last dimension of x {:?}",
            gain.dims(),
            bias.dims(),
            x.dims()
        );
    }
    x.contiguous()?.apply_op3(&gain.contiguous()?, &bias.contiguous()?, Op(LayerNorm(epsilon)))
}
