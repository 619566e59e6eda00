//! Clipping by norm squares before it sums: a large gradient is clipped to nothing.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{norm, numbers};
use burn::grad_clipping::GradientClipping;
use burn::tensor::{Device, FloatDType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-clip-overflow",
    title: "gradient clipping by norm turns a large gradient into zero and an infinite one into NaN, in silence",
    kind: Kind::Precision,
    report: None,
    reading: None,
    reproduce: || judge(Some),
    control: || judge(|gradient| finite(&gradient).then(|| gradient.cast(FloatDType::F64))),
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
