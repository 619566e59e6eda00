//! Clipping by norm looks at one tensor at a time and so changes the direction of the whole gradient.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{norm, numbers};
use burn::grad_clipping::GradientClipping;
use burn::tensor::{Device, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-clip-per-tensor",
    title: "gradient clipping by norm clips each tensor by itself, not the gradient as a whole",
    kind: Kind::Interface,
    report: None,
    reading: None,
    reproduce: || judge(|[large, small]| [large, small].map(|g| GradientClipping::Norm(1.0).clip_gradient(g))),
    control: || {
        judge(|gradients| {
            let whole = gradients.iter().map(|g| norm(&numbers(g.clone())).powi(2)).sum::<f64>().sqrt();
            gradients.map(|g| g * (1.0 / whole).min(1.0))
        })
    },
    workaround: "compute the norm over all tensors and scale them all by one factor",
};

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
