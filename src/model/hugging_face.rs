//! A model as a Hugging Face Llama directory has it: `config.json`, `generation_config.json` and
//! `model.safetensors`.

use super::weights::{WeightType, export_weights, load_weights};
use super::{Config, ModelError, Parameters};
use crate::artifact::write_atomic;
use crate::error::FileError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;

const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// `config.json`: the keys that decide what is computed, and those that say what is not there.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    #[serde(flatten)]
    config: Config,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    #[serde(default)]
    rope_scaling: Option<serde_json::Value>,
}

/// Writes a model for any program that reads Hugging Face's Llama.
///
/// # Errors
/// [`ModelError::File`] when a file cannot be written.
pub fn write_model(
    directory: &Path,
    config: &Config,
    parameters: &Parameters<f32>,
    kind: WeightType,
) -> Result<(), ModelError> {
    let config = Config { torch_dtype: kind.name().to_owned(), ..config.clone() };
    let generation = json!({
        "_from_model_config": true,
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
    });
    write_text(&directory.join("generation_config.json"), &generation)?;
    let file = File { config, attention_bias: false, mlp_bias: false, rope_scaling: None };
    write_text(&directory.join(CONFIG), &file)?;
    export_weights(&directory.join(WEIGHTS), parameters, kind)
}

/// Reads what [`write_model`] wrote, or another Llama in one file without biases and rope scaling.
///
/// # Errors
/// [`ModelError`] naming the file and what is wrong with it.
pub fn read_model(directory: &Path) -> Result<(Config, Parameters<f32>), ModelError> {
    let path = directory.join(CONFIG);
    let text = std::fs::read(&path).map_err(FileError::at("read", &path))?;
    let refuse = |message: String| ModelError::Config(format!("{}: {message}", path.display()));
    let file: File = serde_json::from_slice(&text).map_err(|e| refuse(e.to_string()))?;
    if file.attention_bias || file.mlp_bias {
        return Err(refuse("has biases, which this model does not".to_owned()));
    }
    if file.rope_scaling.is_some() {
        return Err(refuse("scales its rotary frequencies, which this model does not".to_owned()));
    }
    let config = Config { torch_dtype: WeightType::F32.name().to_owned(), ..file.config };
    config.check()?;
    let parameters = load_weights(&directory.join(WEIGHTS), &config)?;
    Ok((config, parameters))
}

fn write_text(path: &Path, value: &impl Serialize) -> Result<(), ModelError> {
    let mut text =
        serde_json::to_vec_pretty(value).unwrap_or_else(|e| unreachable!("a configuration is plain data: {e}"));
    text.push(b'\n');
    Ok(write_atomic(path, &text)?)
}
