//! Why an evaluation could not be made.

use crate::model::ModelError;
use crate::tokenizer::TokenizerError;

/// Why an evaluation could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The model refused its input.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tokenizer failed.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The tokenizer and the model do not belong together.
    #[error("the tokenizer has {tokenizer} tokens and the model {model}; use the tokenizer the model was trained with")]
    Vocabulary {
        /// Tokens of the tokenizer.
        tokenizer: usize,
        /// Tokens of the model.
        model: usize,
    },
    /// There is nothing to evaluate on.
    #[error("no held-out document of the languages {0} to evaluate on; make corpus.held_out larger")]
    Empty(String),
    /// The files of a multiple-choice task cannot be used.
    #[error("task `{task}`: {message}")]
    Task {
        /// Its name.
        task: String,
        /// What is wrong.
        message: String,
    },
}
