use super::super::linear_cross_entropy as kernel;
use super::{Number, check_types, numbers};
use crate::ops::{IGNORE, Precision};
use candle_core::{CpuStorage, CustomOp2, DType, Device, Layout, Result, Shape, Tensor, bail};
use std::sync::OnceLock;

/// The forward pass leaves the gradients here, so that the logits are computed once and never kept.
struct LinearCrossEntropy {
    shape: kernel::Shape,
    targets: Vec<u32>,
    counted: usize,
    /// Whether an input is tracked; if not, the gradients are not computed.
    wanted: bool,
    gradients: OnceLock<[Tensor; 2]>,
}

impl LinearCrossEntropy {
    fn mean<T: Number>(&self, s1: &CpuStorage, l1: &Layout, s2: &CpuStorage, l2: &Layout) -> Result<CpuStorage> {
        let (x, w) = (numbers::<T>(self.name(), s1, l1)?, numbers::<T>(self.name(), s2, l2)?);
        let counted = self.counted as f64;
        if !self.wanted {
            let nats: f64 = kernel::per_row(x, w, &self.targets, self.shape).iter().sum();
            return Ok(T::to_cpu_storage_owned(vec![<T as crate::ops::Real>::from_f64(nats / counted)]));
        }
        let (mut dx, mut dw) = (vec![T::ZERO; x.len()], vec![T::ZERO; w.len()]);
        let (targets, shape) = (&self.targets, self.shape);
        let (nats, _) = kernel::forward_backward(x, w, targets, shape, 1.0 / counted, &mut dx, &mut dw);
        let dx = Tensor::from_vec(dx, l1.shape(), &Device::Cpu)?;
        let dw = Tensor::from_vec(dw, l2.shape(), &Device::Cpu)?;
        // One op serves one application, so nothing can be there yet.
        let _ = self.gradients.set([dx, dw]);
        Ok(T::to_cpu_storage_owned(vec![<T as crate::ops::Real>::from_f64(nats / counted)]))
    }
}

impl CustomOp2 for LinearCrossEntropy {
    fn name(&self) -> &'static str {
        "shikha-linear-cross-entropy"
    }
    fn cpu_fwd(&self, s1: &CpuStorage, l1: &Layout, s2: &CpuStorage, l2: &Layout) -> Result<(CpuStorage, Shape)> {
        let loss = match s1 {
            CpuStorage::F64(_) => self.mean::<f64>(s1, l1, s2, l2)?,
            _ => self.mean::<f32>(s1, l1, s2, l2)?,
        };
        Ok((loss, Shape::from(())))
    }
    fn bwd(&self, x: &Tensor, w: &Tensor, _: &Tensor, dout: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let Some([dx, dw]) = self.gradients.get() else {
            bail!("{}: the backward pass was called before the forward pass", self.name());
        };
        let factor = dout.to_dtype(DType::F64)?.to_scalar::<f64>()?;
        // The loss itself is most often what is differentiated: then there is nothing to scale.
        let scaled = |g: &Tensor| if factor == 1.0 { Ok(g.clone()) } else { g.affine(factor, 0.0) };
        let of = |input: &Tensor, g: &Tensor| input.track_op().then(|| scaled(g)).transpose();
        Ok((of(x, dx)?, of(w, dw)?))
    }
}

/// Mean cross-entropy in nats of the logits `x`·`weight`ᵀ, a scalar; `x` `[.., inputs]`, `weight`
/// `[vocabulary, inputs]`, `targets` u32 of the shape of `x` without its last dimension, where
/// [`IGNORE`] counts for nothing. The logits never exist as a whole; see
/// [`crate::ops::linear_cross_entropy`].
///
/// # Errors
/// When the shapes or dtypes do not fit, a target lies outside the vocabulary or all are ignored.
pub fn linear_cross_entropy(x: &Tensor, weight: &Tensor, targets: &Tensor) -> Result<Tensor> {
    check_types("linear_cross_entropy", &[x, weight])?;
    let (vocabulary, inputs) = weight.dims2()?;
    let fits = x.dims().split_last() == Some((&inputs, targets.dims())) && x.elem_count() > 0 && vocabulary > 0;
    if !fits || targets.dtype() != DType::U32 {
        bail!(
            "linear_cross_entropy: x {:?} must be [.., inputs], weight {:?} [vocabulary, inputs] and targets {:?} {:?} u32 with a target for each row of x",
            x.dims(),
            weight.dims(),
            targets.dims(),
            targets.dtype()
        );
    }
    let targets: Vec<u32> = targets.flatten_all()?.to_vec1()?;
    if let Some(target) = targets.iter().find(|t| **t != IGNORE && **t as usize >= vocabulary) {
        bail!("linear_cross_entropy: target {target} lies outside the vocabulary of {vocabulary}");
    }
    let counted = targets.iter().filter(|t| **t != IGNORE).count();
    if counted == 0 {
        bail!("linear_cross_entropy: every target is ignored, so there is no mean");
    }
    let shape = kernel::Shape { rows: targets.len(), inputs, vocabulary, precision: Precision::F32 };
    let wanted = x.track_op() || weight.track_op();
    let op = LinearCrossEntropy { shape, targets, counted, wanted, gradients: OnceLock::new() };
    x.contiguous()?.apply_op2(&weight.contiguous()?, op)
}
