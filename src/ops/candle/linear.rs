use super::super::linear as kernel;
use super::{Fused, Number, Op, check_types};
use crate::ops::Precision;
use candle_core::{Result, Shape, Tensor, bail};

struct Linear(kernel::Shape);

impl Fused for Linear {
    const NAME: &'static str = "shikha-linear";
    fn shape(&self, inputs: &[&Shape]) -> Shape {
        let dims = inputs[0].dims();
        Shape::from([&dims[..dims.len() - 1], &[self.0.outputs]].concat())
    }
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        let mut out = vec![T::ZERO; self.0.rows * self.0.outputs];
        kernel::forward(inputs[0], inputs[1], &mut out, self.0, false);
        if let Some(bias) = inputs.get(2) {
            kernel::add_bias(&mut out, bias);
        }
        out
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T], wanted: &[bool]) -> Vec<Vec<T>> {
        let zeros = |i: usize| vec![T::ZERO; if wanted[i] { inputs[i].len() } else { 0 }];
        let mut gradients: Vec<Vec<T>> = (0..inputs.len()).map(zeros).collect();
        if wanted[0] {
            kernel::backward_input(dout, inputs[1], &mut gradients[0], self.0, false);
        }
        if wanted[1] {
            kernel::backward_weight(dout, inputs[0], &mut gradients[1], self.0);
        }
        if wanted.get(2) == Some(&true) {
            kernel::backward_bias(dout, &mut gradients[2]);
        }
        gradients
    }
}

/// x·Wᵀ + b over the last dimension of `x` `[.., inputs]`, with `weight` `[outputs, inputs]` and `bias`
/// `[outputs]`: `[.., outputs]`; see [`crate::ops::linear`].
///
/// # Errors
/// When the shapes or dtypes do not fit.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let tensors: Vec<&Tensor> = [x, weight].into_iter().chain(bias).collect();
    check_types(Linear::NAME, &tensors)?;
    let (outputs, inputs) = weight.dims2()?;
    if x.dims().last() != Some(&inputs) || x.elem_count() == 0 || outputs == 0 {
        bail!("linear: the last dimension of x {:?} must be the second of weight {:?}", x.dims(), weight.dims());
    }
    if let Some(bias) = bias.filter(|bias| bias.dims() != [outputs]) {
        bail!("linear: bias {:?} must have one number for each row of weight {:?}", bias.dims(), weight.dims());
    }
    let op = Op(Linear(kernel::Shape { rows: x.elem_count() / inputs, inputs, outputs, precision: Precision::F32 }));
    let (x, weight) = (x.contiguous()?, weight.contiguous()?);
    match bias {
        Some(bias) => x.apply_op3(&weight, &bias.contiguous()?, op),
        None => x.apply_op2(&weight, op),
    }
}
