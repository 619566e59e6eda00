//! A small model as a user of Candle writes it: two layers with an RMSNorm between them.

use candle_core::{Result, Tensor};
use candle_nn::{Linear, Module, VarBuilder, linear, loss, ops};

/// Which RMSNorm the model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// `ops::rms_norm_slow`, composed of differentiable ops.
    Composed,
    /// `ops::rms_norm`, fused and without a backward pass.
    Fused,
}

/// A classifier of 8 features into 3 classes.
pub struct Classifier {
    first: Linear,
    gain: Tensor,
    second: Linear,
    norm: Norm,
}

impl Classifier {
    /// A classifier whose variables come from `vb`.
    ///
    /// # Errors
    /// What Candle says.
    pub fn new(vb: VarBuilder, norm: Norm) -> Result<Self> {
        let gain = vb.get_with_hints(16, "gain", candle_nn::Init::Const(1.0))?;
        Ok(Classifier { first: linear(8, 16, vb.pp("first"))?, gain, second: linear(16, 3, vb.pp("second"))?, norm })
    }

    /// Mean cross-entropy of inputs `[batch, 8]` against classes `[batch]`, in nats.
    ///
    /// # Errors
    /// When the shapes do not fit.
    pub fn loss(&self, x: &Tensor, classes: &Tensor) -> Result<Tensor> {
        let hidden = self.first.forward(x)?;
        let hidden = match self.norm {
            Norm::Composed => ops::rms_norm_slow(&hidden, &self.gain, 1e-5)?,
            Norm::Fused => ops::rms_norm(&hidden, &self.gain, 1e-5)?,
        };
        loss::cross_entropy(&self.second.forward(&hidden.silu()?)?, classes)
    }
}
