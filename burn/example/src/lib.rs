//! A small model as a user of Burn writes it: two layers with an RMSNorm between them.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig, RmsNorm, RmsNormConfig};
use burn::tensor::{Device, Tensor, activation};

/// How the second layer's weight starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// As Burn starts it.
    Default,
    /// Scaled by `Param::map`, which leaves a tensor that is no leaf.
    Mapped,
}

/// From 6 features to 2 numbers.
#[derive(Module, Debug)]
pub struct Regressor {
    first: Linear,
    norm: RmsNorm,
    second: Linear,
}

impl Regressor {
    /// A regressor on an autodiff device.
    pub fn new(start: Start, device: &Device) -> Self {
        let mut second = LinearConfig::new(8, 2).init(device);
        if start == Start::Mapped {
            second.weight = second.weight.map(|weight| weight * 0.5);
        }
        Regressor { first: LinearConfig::new(6, 8).init(device), norm: RmsNormConfig::new(8).init(device), second }
    }

    /// Mean squared error of `x` `[batch, 6]` against `y` `[batch, 2]`; with `cut`, as if the norm had no
    /// backward pass.
    pub fn loss(&self, x: Tensor<2>, y: Tensor<2>, cut: bool) -> Tensor<1> {
        let normed = self.norm.forward(self.first.forward(x));
        let normed = if cut { normed.detach() } else { normed };
        (self.second.forward(activation::tanh(normed)) - y).square().mean()
    }
}
