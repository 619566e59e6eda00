//! Why a model was refused.

use crate::error::FileError;
use std::path::PathBuf;

/// Why a model, its weights or its input were refused.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The configuration cannot be used.
    #[error("model configuration: {0}")]
    Config(String),
    /// The weights file is no safetensors file, or is cut or damaged.
    #[error("{}: not a readable safetensors file ({message}); restore it from a checkpoint", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The reader's words.
        message: String,
    },
    /// The weights do not belong to the model.
    #[error("{}: tensor `{tensor}` {problem}; the file belongs to another model", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// What is wrong with it.
        problem: String,
    },
    /// More tokens than the model's window.
    #[error("{found} tokens do not fit the model's context of {context}; shorten the prompt or the output")]
    TooLong {
        /// Tokens given.
        found: usize,
        /// Tokens the model can attend to.
        context: usize,
    },
    /// No token to work on.
    #[error("there is no token to work on; give at least one")]
    Empty,
    /// Logits that are no numbers: the weights are damaged or the training diverged.
    #[error("the model's logits are not finite; check the run's losses, or take an earlier checkpoint")]
    NotFinite,
    /// A token id outside the vocabulary.
    #[error("token id {id} is outside the model's vocabulary of {vocabulary}; use the tokenizer it was trained with")]
    Token {
        /// The id.
        id: u32,
        /// Tokens in the vocabulary.
        vocabulary: usize,
    },
    /// A value of the sampler cannot be used.
    #[error("{name} is {found}, expected {expected}")]
    Sampler {
        /// `temperature` or `top_p`.
        name: &'static str,
        /// The value.
        found: f64,
        /// The range.
        expected: &'static str,
    },
}
