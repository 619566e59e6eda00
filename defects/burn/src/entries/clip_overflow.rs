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
    reproduce: || judge(|gradient| gradient),
    control: || judge(|gradient| gradient.cast(FloatDType::F64)),
    workaround: "check that gradients are finite, and clip in f64",
};

fn judge(prepare: fn(Tensor<1>) -> Tensor<1>) -> Result<Verdict, CheckError> {
    let clip = |values: [f32; 2]| {
        let gradient = prepare(Tensor::from_floats(values, &Device::flex()));
        numbers(GradientClipping::Norm(1.0).clip_gradient(gradient))
    };
    let (large, infinite) = (clip([1e20, 1.0]), clip([f32::INFINITY, 1.0]));
    let length = norm(&large);
    let evidence = format!("[1e20, 1] clipped at 1 gives {large:?}, of norm {length:.3}; [inf, 1] gives {infinite:?}");
    Ok(Verdict::when((length - 1.0).abs() > 1e-3, evidence))
}
