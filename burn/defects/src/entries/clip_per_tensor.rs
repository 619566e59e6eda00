//! Clipping by norm looks at one tensor at a time and so changes the direction of the whole gradient.

use crate::asked::ask_with;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{device, norm, numbers};
use crate::training::{HIDDEN, Net, RATE, by, train, weight};
use burn::grad_clipping::{GradientClipping, GradientClippingConfig};
use burn::module::Param;
use burn::nn::Linear;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{DType, Device, Gradients, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-clip-per-tensor",
    title: "gradient clipping by norm clips each tensor by itself, not the gradient as a whole",
    kind: Kind::Interface,
    report: None,
    reading: None,
    source: include_str!("clip_per_tensor.rs"),
    reproduce: || judge(|[large, small]| [large, small].map(|g| GradientClipping::Norm(1.0).clip_gradient(g))),
    control: || {
        judge(|gradients| {
            let whole = gradients.iter().map(|g| norm(&numbers(g.clone())).powi(2)).sum::<f64>().sqrt();
            gradients.map(|g| g * (1.0 / whole).min(1.0))
        })
    },
    arbiter: Asked::Model(|defective| {
        // No rule: what a clipped step should be is for the user to say, and both are steps.
        ask_with(net(0), |net: &Net, n| net.loss(0, n, (&device(), DType::F32), Tensor::tanh), step(defective), None)
    }),
    training: Training::Runs(|defective, seed| {
        train(net(seed), step(defective), |net: &Net, n| net.loss(seed, n, (&device(), DType::F32), Tensor::tanh))
    }),
    workaround: "compute the norm over all tensors and scale them all by one factor",
};

/// Clips at a norm that every batch exceeds.
const NORM: f32 = 0.05;

fn net(seed: u64) -> Net {
    let first = Linear { weight: Param::from_tensor(weight([8, HIDDEN], seed)), bias: None };
    Net::new(first, seed, (&device(), DType::F32))
}

/// A step of gradient descent whose gradient is clipped by tensor or as a whole.
fn step(defective: bool) -> Box<dyn FnMut(Net, Gradients) -> Net> {
    let rate = 50.0 * RATE;
    if defective {
        let clipping = Some(GradientClippingConfig::Norm(NORM));
        return Box::new(by(SgdConfig::new().with_gradient_clipping(clipping).init(), rate));
    }
    let mut optimizer = SgdConfig::new().init();
    Box::new(move |net: Net, mut tape| {
        let taken = GradientsParams::from_module(&mut tape, &net);
        let ids = [net.first.weight.id, net.second.weight.id];
        let gradients: Vec<Tensor<2>> = ids.iter().filter_map(|id| taken.get::<2>(*id)).collect();
        let whole = gradients.iter().map(|g| norm(&numbers(g.clone())).powi(2)).sum::<f64>().sqrt();
        let factor = (f64::from(NORM) / whole).min(1.0);
        let mut clipped = GradientsParams::new();
        ids.iter().zip(gradients).for_each(|(id, gradient)| clipped.register(*id, gradient * factor));
        optimizer.step(rate, net, clipped)
    })
}

fn judge(clip: fn([Tensor<1>; 2]) -> [Tensor<1>; 2]) -> Result<Verdict, CheckError> {
    let device = Device::flex();
    let gradients = [[3.0, 4.0], [0.3, 0.4]].map(|g| Tensor::<1>::from_floats(g, &device));
    let [large, small] = gradients.clone().map(|g| norm(&numbers(g)));
    let [clipped_large, clipped_small] = clip(gradients).map(|g| norm(&numbers(g)));
    let (before, after) = (large / small, clipped_large / clipped_small);
    let evidence = format!(
        "norms {large:.2} and {small:.2}, clipped at 1: {clipped_large:.3} and {clipped_small:.3}; their ratio went from \
         {before:.2} to {after:.2}"
    );
    Ok(Verdict::when((after / before - 1.0).abs() > 1e-3, evidence))
}
