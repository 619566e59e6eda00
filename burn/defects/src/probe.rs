//! What the checks share: reproducible tensors, memory in use, and a verdict on a module's training.

use crate::catalogue::{CheckError, Verdict};
use burn::module::Param;
use burn::nn::Linear;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{DType, Device, Tensor, TensorData};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Burn's CPU backend with automatic differentiation, its random numbers starting at a fixed place.
pub fn device() -> Device {
    let device = Device::flex().autodiff();
    device.seed(7);
    device
}

/// Reproducible values in (-1, 1) that no small pattern fits, as a tensor of `shape` in `dtype` on `device`.
pub fn tensor<const D: usize>(shape: [usize; D], seed: u32, dtype: DType, device: &Device) -> Tensor<D> {
    let value = |i: usize| (1.7 * i as f64 + 0.37 * f64::from(seed) + 0.5).sin() * 0.9;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape).convert_dtype(dtype), (device, dtype))
}

/// The values of `tensor` in f64, row-major.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

/// Euclidean norm.
pub fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Largest absolute difference of two equally long lists; 0 for empty ones.
pub fn furthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// A bias of zeros, trained.
pub fn bias(width: usize) -> Option<Param<Tensor<1>>> {
    Some(Param::from_tensor(Tensor::zeros([width], (&device(), DType::F32))))
}

/// Resident memory of this process in bytes.
pub fn resident() -> Result<u64, CheckError> {
    let line = std::fs::read_to_string("/proc/self/statm").map_err(|e| CheckError::Memory(e.to_string()))?;
    let pages = line.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| CheckError::Memory(format!("unexpected content `{}`", line.trim())))?;
    // 4 KiB pages: what Linux has on every CPU these checks are run on.
    Ok(4096 * pages)
}

/// One SGD step on the loss of a layer with a bias: present when its weight has no gradient or does not move.
///
/// The evidence says too whether a second step runs, for some of these mistakes announce themselves there.
pub fn judge_training(layer: Linear, loss: impl Fn(&Linear) -> Tensor<1>) -> Verdict {
    let (tape, before) = (loss(&layer).backward(), numbers(layer.weight.val()));
    let weight = layer.weight.val().grad(&tape).map(|g| norm(&numbers(g)));
    let bias = layer.bias.as_ref().and_then(|b| b.val().grad(&tape)).map(|g| norm(&numbers(g)));
    let layer = SgdConfig::new().init().step(0.1, layer.clone(), GradientsParams::from_grads(tape, &layer));
    let moved = furthest(&before, &numbers(layer.weight.val()));
    let again = catch_unwind(AssertUnwindSafe(|| loss(&layer).backward()));
    let tell = |norm: Option<f64>| norm.map_or("NO gradient".to_owned(), |n| format!("gradient of norm {n:.3}"));
    let evidence = format!(
        "weight: {}, moved by {moved:.1e} in one SGD step; bias: {}; step 1 without an error, step 2 {}",
        tell(weight),
        tell(bias),
        if again.is_ok() { "too" } else { "panics" }
    );
    Verdict::when(weight.is_none() || moved == 0.0, evidence)
}
