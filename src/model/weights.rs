//! Weights on disk: one safetensors file with Hugging Face's names.

use super::{Config, ModelError, Parameters};
use crate::artifact::write_atomic;
use crate::error::FileError;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Writes every tensor as f32, with `metadata` in the header (ordered by key).
///
/// # Errors
/// [`ModelError::File`] when the file cannot be written.
pub fn save_weights(path: &Path, parameters: &Parameters<f32>, metadata: &[(&str, String)]) -> Result<(), ModelError> {
    let format = |message: String| ModelError::Format { path: path.to_path_buf(), message };
    let mut views = Vec::with_capacity(parameters.tensors().len());
    for tensor in parameters.tensors() {
        let bytes = bytemuck::cast_slice(parameters.values(tensor));
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).map_err(|e| format(e.to_string()))?;
        views.push((tensor.name.as_str(), view));
    }
    // One entry at most: the header writes a map in no fixed order.
    let joined = metadata.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
    let header = (!joined.is_empty()).then(|| HashMap::from([("shikha".to_owned(), joined)]));
    let bytes = safetensors::serialize(views, header).map_err(|e| format(e.to_string()))?;
    Ok(write_atomic(path, &bytes)?)
}

/// Reads the weights of a model of `config`: every tensor, no other, of the right shape, finite.
///
/// # Errors
/// [`ModelError`] naming the file, the tensor and what is wrong.
pub fn load_weights(path: &Path, config: &Config) -> Result<Parameters<f32>, ModelError> {
    let bytes = std::fs::read(path).map_err(FileError::at("read", path))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| ModelError::Format { path: path.to_path_buf(), message: e.to_string() })?;
    let mut parameters = Parameters::zeros(config);
    let mut unknown: BTreeSet<&str> = file.names().into_iter().collect();
    for tensor in parameters.tensors().to_vec() {
        let refuse =
            |problem: String| ModelError::Tensor { path: path.to_path_buf(), tensor: tensor.name.clone(), problem };
        let view = file.tensor(&tensor.name).map_err(|_| refuse("is missing".to_owned()))?;
        unknown.remove(tensor.name.as_str());
        if view.dtype() != Dtype::F32 {
            return Err(refuse(format!("is {:?}, expected F32", view.dtype())));
        }
        if view.shape() != tensor.shape {
            return Err(refuse(format!("has shape {:?}, expected {:?}", view.shape(), tensor.shape)));
        }
        let values = parameters.values_mut(&tensor);
        for (value, bytes) in values.iter_mut().zip(view.data().chunks_exact(4)) {
            *value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            return Err(refuse(format!("holds {} at position {at}", values[at])));
        }
    }
    match unknown.first() {
        Some(name) => Err(ModelError::Tensor {
            path: path.to_path_buf(),
            tensor: (*name).to_owned(),
            problem: "is not part of the model".to_owned(),
        }),
        None => Ok(parameters),
    }
}
