//! Clipping by norm squares before it sums: a large gradient is clipped to nothing.

use crate::asked::ask_with;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{device, norm, numbers, tensor};
use crate::training::{by, weight};
use burn::grad_clipping::{GradientClipping, GradientClippingConfig};
use burn::module::Param;
use burn::nn::Linear;
use burn::optim::SgdConfig;
use burn::tensor::{DType, Device, FloatDType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-clip-overflow",
    title: "gradient clipping by norm turns a large gradient into zero and an infinite one into NaN, in silence",
    kind: Kind::Precision,
    report: None,
    reading: None,
    source: include_str!("clip_overflow.rs"),
    reproduce: || judge(Some),
    control: || judge(|gradient| finite(&gradient).then(|| gradient.cast(FloatDType::F64))),
    arbiter: Asked::Model(|defective| {
        // The same layer and step; only the scale of the loss makes its gradient large.
        let scale = if defective { 1e22 } else { 1.0 };
        let clipping = Some(GradientClippingConfig::Norm(1.0));
        let layer = Linear { weight: Param::from_tensor(weight([16, 8], 0)), bias: None };
        let input = |n: usize| tensor([4, 16], 1 + n as u32, DType::F32, &device());
        let loss = move |layer: &Linear, n: usize| layer.forward(input(n)).square().mean() * scale;
        ask_with(layer, loss, by(SgdConfig::new().with_gradient_clipping(clipping).init(), 0.1), None)
    }),
    training: Training::NoCurve("it takes a gradient above 1e19, which a healthy run beside it has not"),
    workaround: "check that gradients are finite, and clip in f64",
};

fn finite(gradient: &Tensor<1>) -> bool {
    numbers(gradient.clone()).iter().all(|g| g.is_finite())
}

/// `prepare` may refuse a gradient; whoever trains then stops or leaves out the step.
fn judge(prepare: fn(Tensor<1>) -> Option<Tensor<1>>) -> Result<Verdict, CheckError> {
    let clip = |values: [f32; 2]| {
        let gradient = prepare(Tensor::from_floats(values, &Device::flex()))?;
        Some(numbers(GradientClipping::Norm(1.0).clip_gradient(gradient)))
    };
    let (large, infinite) = (clip([1e20, 1.0]), clip([f32::INFINITY, 1.0]));
    let length = large.as_deref().map_or(0.0, norm);
    let tell = |clipped: &Option<Vec<f64>>| clipped.as_ref().map_or("a refusal".to_owned(), |c| format!("{c:?}"));
    let evidence = format!(
        "[1e20, 1] clipped at 1 gives {}, of norm {length:.3}; [inf, 1] gives {}",
        tell(&large),
        tell(&infinite)
    );
    let not_a_number = infinite.is_some_and(|c| c.iter().any(|v| v.is_nan()));
    Ok(Verdict::when((length - 1.0).abs() > 1e-3 || not_a_number, evidence))
}
