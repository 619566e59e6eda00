//! What the small models of the fault corpus are built from: seeded variables, and sites at which a
//! fault can be planted without changing what the forward pass computes.

use crate::rng::Stream;
use candle_core::{D, DType, Device, Result, Tensor, Var};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a variable starts.
#[derive(Debug, Clone, Copy)]
pub enum Start {
    /// Normal numbers of this standard deviation.
    Normal(f64),
    /// One number everywhere.
    Constant(f64),
}

/// What is done to the gradient that passes a site; the value that passes it stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tamper {
    /// No gradient passes.
    Cut,
    /// None passes through the first half of the last axis.
    CutHalf,
    /// It passes for the last row of the first axis only.
    CutButLast,
    /// Times a factor.
    Scale(f64),
    /// Shifted by one along the last axis.
    Roll,
    /// Rounded to bf16 on its way.
    Rounded,
    /// Computed in f16 after a scaling that pushes it towards underflow.
    Underflow,
    /// A little different on every pass.
    Noise(f64),
    /// Grows with every pass, as when it is added up and never cleared.
    Accumulated,
    /// NaN.
    NotFinite,
    /// The derivative of another formula; the site's op says which.
    Formula,
    /// Taken at weights other than those of the forward pass.
    Stale,
}

/// A fault in the backward pass at a named site.
#[derive(Debug, Clone, Copy)]
pub struct Plant {
    /// A parameter's name, or an op's.
    pub site: &'static str,
    /// What happens there.
    pub tamper: Tamper,
}

/// The variables of one model and the fault planted in it.
pub struct Kit {
    /// By name.
    pub vars: BTreeMap<String, Var>,
    plant: Option<Plant>,
    compute: DType,
    passes: AtomicU64,
    shift: f64,
}

impl Kit {
    /// Variables of `dtype` drawn from `seed`; the model computes in `compute`.
    ///
    /// # Errors
    /// What Candle says.
    pub fn new(
        variables: &[(&str, &[usize], Start)],
        seed: u64,
        dtype: DType,
        compute: DType,
        plant: Option<Plant>,
    ) -> Result<Self> {
        let mut vars = BTreeMap::new();
        for (name, shape, start) in variables {
            let stream = Stream::new(seed, name);
            let number = |i: usize| match start {
                Start::Normal(deviation) => deviation * stream.normal(i as u64),
                Start::Constant(number) => *number,
            };
            let numbers: Vec<f64> = (0..shape.iter().product()).map(number).collect();
            let tensor = Tensor::from_vec(numbers, *shape, &Device::Cpu)?.to_dtype(dtype)?;
            vars.insert((*name).to_owned(), Var::from_tensor(&tensor)?);
        }
        Ok(Kit { vars, plant, compute, passes: AtomicU64::new(0), shift: 0.0 })
    }

    /// The variable called `name`, in the type the model computes in; a site of its own.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&self, name: &'static str) -> Result<Tensor> {
        self.get_at(name, name)
    }

    /// The same under another site's name, for a second use of a tied variable.
    ///
    /// # Errors
    /// When there is none.
    pub fn get_at(&self, name: &str, site: &'static str) -> Result<Tensor> {
        let Some(var) = self.vars.get(name) else { candle_core::bail!("no variable called `{name}`") };
        let x = var.as_tensor().to_dtype(self.compute)?;
        self.site(site, if self.shift == 0.0 { x } else { (x * (1.0 + self.shift))? })
    }

    /// Passes `x` on, with its gradient tampered with if the fault is planted here.
    ///
    /// # Errors
    /// What Candle says.
    pub fn site(&self, site: &'static str, x: Tensor) -> Result<Tensor> {
        match self.plant {
            Some(plant) if plant.site == site => self.tampered(x, plant.tamper),
            _ => Ok(x),
        }
    }

    fn tampered(&self, x: Tensor, tamper: Tamper) -> Result<Tensor> {
        let other = match tamper {
            Tamper::Cut => return Ok(x.detach()),
            Tamper::CutHalf => x.broadcast_mul(&half_mask(x.dim(D::Minus1)?, x.dtype())?)?,
            Tamper::CutButLast => {
                let (rows, last) = (x.dim(0)?, x.narrow(0, x.dim(0)? - 1, 1)?);
                return Tensor::cat(&[x.narrow(0, 0, rows - 1)?.detach(), last], 0);
            }
            Tamper::Scale(factor) => (&x * factor)?,
            Tamper::Roll => x.roll(1, D::Minus1)?,
            Tamper::Rounded => x.to_dtype(DType::BF16)?.to_dtype(x.dtype())?,
            Tamper::Underflow => ((&x * 1e4)?.to_dtype(DType::F16)?.to_dtype(x.dtype())? * 1e-4)?,
            Tamper::Noise(size) => (&x * (1.0 + size * self.next_pass()))?,
            Tamper::Accumulated => (&x * self.next_pass())?,
            // √0 stays 0 but has no finite slope.
            Tamper::NotFinite => return &x.detach() + (&x - x.detach())?.sqrt()?,
            Tamper::Formula | Tamper::Stale => return Ok(x),
        };
        with_derivative_of(&x, &other)
    }

    /// The value of `right`, with its own derivative or, if [`Tamper::Formula`] is planted at `site`, that
    /// of `wrong`.
    ///
    /// # Errors
    /// What Candle says.
    pub fn formula(&self, site: &'static str, right: Tensor, wrong: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
        match self.plant {
            Some(Plant { site: at, tamper: Tamper::Formula }) if at == site => with_derivative_of(&right, &wrong()?),
            _ => self.site(site, right),
        }
    }

    /// The loss of `model`; with [`Tamper::Stale`], its derivative at other weights.
    ///
    /// # Errors
    /// What `model` says.
    pub fn loss(&self, model: &dyn Fn(&Kit, &[Tensor]) -> Result<Tensor>, inputs: &[Tensor]) -> Result<Tensor> {
        let loss = model(self, inputs)?;
        if !matches!(self.plant, Some(Plant { tamper: Tamper::Stale, .. })) {
            return Ok(loss);
        }
        let (vars, passes) = (self.vars.clone(), AtomicU64::new(0));
        let elsewhere = Kit { vars, plant: None, compute: self.compute, passes, shift: 0.05 };
        with_derivative_of(&loss, &model(&elsewhere, inputs)?)
    }

    fn next_pass(&self) -> f64 {
        (self.passes.fetch_add(1, Ordering::Relaxed) + 1) as f64
    }
}

/// The value of `value` with the derivative of `derivative`.
fn with_derivative_of(value: &Tensor, derivative: &Tensor) -> Result<Tensor> {
    value.detach() + (derivative - derivative.detach())?
}

/// 0 for the first half of an axis, 1 for the rest.
fn half_mask(length: usize, dtype: DType) -> Result<Tensor> {
    let mask: Vec<f64> = (0..length).map(|i| f64::from(2 * i >= length)).collect();
    Tensor::from_vec(mask, length, &Device::Cpu)?.to_dtype(dtype)
}

/// Normal numbers `[shape]` for a probe.
///
/// # Errors
/// What Candle says.
pub fn normal(stream: &Stream, shape: &[usize], dtype: DType) -> Result<Tensor> {
    let numbers: Vec<f64> = (0..shape.iter().product()).map(|i: usize| stream.normal(i as u64)).collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)
}

/// Numbers below `bound` `[shape]` for a probe.
///
/// # Errors
/// What Candle says.
pub fn below(stream: &Stream, shape: &[usize], bound: u64) -> Result<Tensor> {
    let numbers: Vec<u32> =
        (0..shape.iter().product()).map(|i: usize| stream.below((1 << 32) + i as u64, bound) as u32).collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu)
}

/// Mean over rows of −ln softmax(logits)\[target\], with targets `[rows]`.
///
/// # Errors
/// What Candle says.
pub fn cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let log = candle_nn::ops::log_softmax(logits, D::Minus1)?;
    log.gather(&targets.unsqueeze(1)?, 1)?.mean_all()?.neg()
}
