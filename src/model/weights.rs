//! Weights on disk: one safetensors file with Hugging Face's names.
use super::{Config, ModelError, Parameters};
use crate::artifact::{read, write_atomic};
use half::bf16;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Number type of stored weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightType {
    /// 32 bits.
    #[default]
    F32,
    /// The upper 16 bits, rounded to the nearest.
    Bf16,
}

impl WeightType {
    /// Its name in `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            WeightType::F32 => "float32",
            WeightType::Bf16 => "bfloat16",
        }
    }
}

/// Writes every tensor as `kind` with the header that Hugging Face's loaders ask for.
///
/// # Errors
/// [`ModelError::File`] when the file cannot be written.
pub fn export_weights(path: &Path, parameters: &Parameters<f32>, kind: WeightType) -> Result<(), ModelError> {
    let header = Some(HashMap::from([("format".to_owned(), "pt".to_owned())]));
    if kind == WeightType::F32 {
        return write(path, parameters, bytemuck::cast_slice(&parameters.flat), Dtype::F32, header);
    }
    let short: Vec<bf16> = parameters.flat.iter().map(|x| bf16::from_f32(*x)).collect();
    write(path, parameters, bytemuck::cast_slice(&short), Dtype::BF16, header)
}

/// Writes every tensor as f32, with `metadata` in the header (ordered by key).
///
/// # Errors
/// [`ModelError::File`] when the file cannot be written.
pub fn save_weights(path: &Path, parameters: &Parameters<f32>, metadata: &[(&str, String)]) -> Result<(), ModelError> {
    // One entry at most: the header writes a map in no fixed order.
    let joined = metadata.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
    let header = (!joined.is_empty()).then(|| HashMap::from([("shikha".to_owned(), joined)]));
    write(path, parameters, bytemuck::cast_slice(&parameters.flat), Dtype::F32, header)
}

/// Writes the tensors of `parameters`, whose numbers are `bytes` in the order of the flat buffer.
fn write(
    path: &Path,
    parameters: &Parameters<f32>,
    bytes: &[u8],
    dtype: Dtype,
    header: Option<HashMap<String, String>>,
) -> Result<(), ModelError> {
    let format =
        |e: safetensors::SafeTensorError| ModelError::Format { path: path.to_path_buf(), message: e.to_string() };
    let size = dtype.bitsize() / 8;
    let mut views = Vec::with_capacity(parameters.tensors().len());
    for tensor in parameters.tensors() {
        let bytes = &bytes[tensor.offset * size..(tensor.offset + tensor.len()) * size];
        views.push((tensor.name.as_str(), TensorView::new(dtype, tensor.shape.clone(), bytes).map_err(format)?));
    }
    let bytes = safetensors::serialize(views, header).map_err(format)?;
    Ok(write_atomic(path, &bytes)?)
}

/// Reads the weights of a model of `config`, stored as f32 or bf16: every tensor, no other, of the right shape,
/// finite.
///
/// # Errors
/// [`ModelError`] naming the file, the tensor and what is wrong.
pub fn load_weights(path: &Path, config: &Config) -> Result<Parameters<f32>, ModelError> {
    let bytes = read(path)?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| ModelError::Format { path: path.to_path_buf(), message: e.to_string() })?;
    let mut parameters = Parameters::zeros(config);
    let mut unknown: BTreeSet<&str> = file.names().into_iter().collect();
    for tensor in parameters.tensors().to_vec() {
        let refuse =
            |problem: String| ModelError::Tensor { path: path.to_path_buf(), tensor: tensor.name.clone(), problem };
        let view = file.tensor(&tensor.name).map_err(|_| refuse("is missing".to_owned()))?;
        unknown.remove(tensor.name.as_str());
        if view.shape() != tensor.shape {
            return Err(refuse(format!("has shape {:?}, expected {:?}", view.shape(), tensor.shape)));
        }
        let values = parameters.values_mut(&tensor);
        let read: fn(&[u8]) -> f32 = match view.dtype() {
            Dtype::F32 => |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            Dtype::BF16 => |b| bf16::from_le_bytes([b[0], b[1]]).to_f32(),
            other => return Err(refuse(format!("is {other:?}, expected F32 or BF16"))),
        };
        let size = view.dtype().bitsize() / 8;
        values.iter_mut().zip(view.data().chunks_exact(size)).for_each(|(value, bytes)| *value = read(bytes));
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
