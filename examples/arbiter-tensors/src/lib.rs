//! One training step of a small model, dumped. Candle stands for any framework here: what matters is
//! that parameters, gradients and the parameters after the step go into three safetensors files under
//! the same names.

use candle_core::{DType, Device, Result, Tensor, Var, safetensors};
use candle_nn::{Optimizer, SGD, ops};
use std::collections::HashMap;
use std::path::Path;

/// Runs one step and writes `parameters.safetensors`, `gradients.safetensors` and `after.safetensors` to
/// `directory`; with `fused`, through `ops::rms_norm`, which has no backward pass.
///
/// # Errors
/// What Candle says.
pub fn dump_step(directory: &Path, fused: bool) -> Result<()> {
    let normal = |shape: (usize, usize)| Tensor::randn(0f32, 0.5f32, shape, &Device::Cpu);
    let vars = HashMap::from([
        ("first", Var::from_tensor(&normal((6, 8))?)?),
        ("gain", Var::ones(8, DType::F32, &Device::Cpu)?),
        ("second", Var::from_tensor(&normal((8, 2))?)?),
    ]);
    save(directory, "parameters", vars.iter().map(|(name, var)| (*name, var.as_tensor().copy())))?;
    let hidden = normal((5, 6))?.matmul(vars["first"].as_tensor())?;
    let gain = vars["gain"].as_tensor();
    let normed = if fused { ops::rms_norm(&hidden, gain, 1e-5) } else { ops::rms_norm_slow(&hidden, gain, 1e-5) }?;
    let loss = (normed.matmul(vars["second"].as_tensor())? - 1.0)?.sqr()?.mean_all()?;
    let gradients = loss.backward()?;
    let found = vars.iter().filter_map(|(name, var)| Some((*name, gradients.get(var)?.contiguous())));
    save(directory, "gradients", found)?;
    SGD::new(vars.values().cloned().collect(), 0.01)?.step(&gradients)?;
    save(directory, "after", vars.iter().map(|(name, var)| (*name, var.as_tensor().copy())))
}

fn save<'a>(directory: &Path, name: &str, tensors: impl Iterator<Item = (&'a str, Result<Tensor>)>) -> Result<()> {
    let tensors = tensors.map(|(name, tensor)| Ok((name, tensor?))).collect::<Result<HashMap<_, _>>>()?;
    safetensors::save(&tensors, directory.join(format!("{name}.safetensors")))
}
