use super::super::rms_norm as kernel;
use super::{Fused, Number, Op, check_types};
use candle_core::{Result, Tensor, bail};

struct RmsNorm(f64);

impl Fused for RmsNorm {
    const NAME: &'static str = "shikha-rms-norm";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; inputs[0].len()];
        let mut inverse = vec![T::ZERO; out.len() / inputs[1].len()];
        kernel::forward(inputs[0], inputs[1], self.0, &mut out, &mut inverse);
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T], _: &[bool]) -> Vec<Vec<T>> {
        let (x, gain) = (inputs[0], inputs[1]);
        // A custom op has one output, so the inverse root mean squares are computed again.
        let (mut out, mut inverse) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len() / gain.len()]);
        kernel::forward(x, gain, self.0, &mut out, &mut inverse);
        let (mut dx, mut dgain) = (vec![T::ZERO; x.len()], vec![T::ZERO; gain.len()]);
        kernel::backward(x, gain, &inverse, dout, &mut dx, &mut dgain);
        vec![dx, dgain]
    }
}

/// RMSNorm over the last dimension of `x`, with `gain` of that length; see [`crate::ops::rms_norm`].
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
