//! What the checks share: reproducible tensors, memory in use, and a verdict on a module's training.

use crate::catalogue::{CheckError, Verdict};
use crate::gradients::{Seen, collect};
use burn::module::Module;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{DType, Device, Tensor, TensorData};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Burn's CPU backend with automatic differentiation, its random numbers starting at a fixed place.
pub fn device() -> Device {
    let device = Device::flex().autodiff();
    device.seed(7);
    device
}

/// Reproducible values in (-1, 1) that no small pattern fits.
pub fn values(count: usize, seed: u32) -> Vec<f64> {
    (0..count).map(|i| (1.7 * i as f64 + 0.37 * f64::from(seed) + 0.5).sin() * 0.9).collect()
}

/// [`values`] as a tensor of `shape` in `dtype` on `device`.
pub fn tensor<const D: usize>(shape: [usize; D], seed: u32, dtype: DType, device: &Device) -> Tensor<D> {
    let data = TensorData::new(values(shape.iter().product(), seed), shape).convert_dtype(dtype);
    Tensor::from_data(data, (device, dtype))
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

/// Resident memory of this process in bytes.
pub fn resident() -> Result<u64, CheckError> {
    let line = std::fs::read_to_string("/proc/self/statm").map_err(|e| CheckError::Memory(e.to_string()))?;
    let pages = line.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
    // 4 KiB pages: what Linux has on every CPU these checks are run on.
    pages.map(|p| p * 4096).ok_or_else(|| CheckError::Memory(format!("unexpected content `{}`", line.trim())))
}

/// One SGD step on `loss`: present when a parameter has no gradient or does not move.
///
/// Evidence: for each parameter, whether it asks for a gradient, its gradient's norm and its largest move;
/// and whether a further step runs, for some of these mistakes announce themselves there.
pub fn judge_training<M: Module>(module: M, loss: impl Fn(&M) -> Tensor<1>) -> Verdict {
    let mut gradients = loss(&module).backward();
    let before = collect(&module, &gradients);
    let taken = GradientsParams::from_module(&mut gradients, &module);
    let module = SgdConfig::new().init().step(0.1, module, taken);
    let after = collect(&module, &gradients);
    let dead = |(old, new): (&Seen, &Seen)| old.gradient.is_none() || furthest(&old.values, &new.values) == 0.0;
    let pairs = || before.iter().zip(&after);
    let mut evidence: Vec<String> = pairs().map(|(old, new)| describe(old, new)).collect();
    let again = catch_unwind(AssertUnwindSafe(|| loss(&module).backward())).is_ok();
    evidence.push(format!("step 1 without an error, step 2 {}", if again { "too" } else { "panics" }));
    Verdict::when(pairs().any(dead), evidence.join("; "))
}

fn describe(old: &Seen, new: &Seen) -> String {
    let gradient = match &old.gradient {
        Some(values) => format!("gradient of norm {:.3}", norm(values)),
        None => "NO gradient".to_owned(),
    };
    let flag = if old.requires_grad { "" } else { " (requires_grad is false)" };
    let moved = furthest(&old.values, &new.values);
    format!("{} {:?}: {gradient}{flag}, moved by {moved:.1e} in one SGD step", old.name, old.shape)
}
