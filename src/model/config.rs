//! The configuration, as Hugging Face's `config.json` of a Llama model has it.

use super::ModelError;
use crate::recipe::ModelRecipe;
use serde::{Deserialize, Serialize};

/// Hugging Face's `LlamaConfig`: the keys that decide what is computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Always `["LlamaForCausalLM"]`.
    pub architectures: Vec<String>,
    /// Always `llama`.
    pub model_type: String,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the feed-forward part.
    pub intermediate_size: usize,
    /// Blocks.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key and value heads.
    pub num_key_value_heads: usize,
    /// Longest window.
    pub max_position_embeddings: usize,
    /// ε of RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Whether the output matrix is the embedding matrix.
    pub tie_word_embeddings: bool,
    /// Tokens in the vocabulary.
    pub vocab_size: usize,
    /// Always `silu`.
    pub hidden_act: String,
    /// Token that begins and ends a document.
    pub bos_token_id: u32,
    /// Token that begins and ends a document.
    pub eos_token_id: u32,
    /// Number type of the stored weights.
    pub torch_dtype: String,
}

impl Config {
    /// The configuration of a recipe with a vocabulary; `end_of_text` separates documents.
    ///
    /// # Errors
    /// [`ModelError::Config`] when the sizes do not fit together.
    pub fn from_recipe(recipe: &ModelRecipe, vocabulary: usize, end_of_text: u32) -> Result<Self, ModelError> {
        let config = Config {
            architectures: vec!["LlamaForCausalLM".to_owned()],
            model_type: "llama".to_owned(),
            hidden_size: recipe.hidden,
            intermediate_size: recipe.intermediate,
            num_hidden_layers: recipe.layers,
            num_attention_heads: recipe.heads,
            num_key_value_heads: recipe.kv_heads,
            max_position_embeddings: recipe.context,
            rms_norm_eps: recipe.norm_epsilon,
            rope_theta: recipe.rope_theta,
            tie_word_embeddings: recipe.tie_embeddings,
            vocab_size: vocabulary,
            hidden_act: "silu".to_owned(),
            bos_token_id: end_of_text,
            eos_token_id: end_of_text,
            torch_dtype: "float32".to_owned(),
        };
        config.check()?;
        Ok(config)
    }

    /// Refuses sizes that do not fit together.
    ///
    /// # Errors
    /// [`ModelError::Config`].
    pub fn check(&self) -> Result<(), ModelError> {
        let sizes = [self.hidden_size, self.intermediate_size, self.num_hidden_layers, self.num_attention_heads];
        let others = [self.num_key_value_heads, self.max_position_embeddings, self.vocab_size];
        let refuse = |message: String| Err(ModelError::Config(message));
        if sizes.iter().chain(&others).any(|size| *size == 0) {
            return refuse("every size must be at least 1".to_owned());
        }
        if self.model_type != "llama" || self.hidden_act != "silu" {
            return refuse(format!("`{}` with `{}` is not a Llama with silu", self.model_type, self.hidden_act));
        }
        if !self.hidden_size.is_multiple_of(2 * self.num_attention_heads) {
            return refuse(format!("hidden_size {} is no multiple of twice the heads", self.hidden_size));
        }
        if !self.num_attention_heads.is_multiple_of(self.num_key_value_heads) {
            return refuse(format!("{} key heads do not divide the query heads", self.num_key_value_heads));
        }
        if self.bos_token_id as usize >= self.vocab_size || self.eos_token_id as usize >= self.vocab_size {
            return refuse("the end-of-text token lies outside the vocabulary".to_owned());
        }
        Ok(())
    }

    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }

    /// Width of all key heads together.
    pub fn kv_width(&self) -> usize {
        self.num_key_value_heads * self.head_dim()
    }

    /// Floating-point operations to train on one token: 6 for each weight of a matrix product (2 forward,
    /// 4 backward), and 12·d·(T+1)/2 a block for causal attention over a window of T. The embedding lookup
    /// is no product. (J. Kaplan et al., arXiv:2001.08361, section 2.1, with the causal half counted.)
    pub fn train_flops_per_token(&self) -> f64 {
        let (d, kv, f) = (self.hidden_size as f64, self.kv_width() as f64, self.intermediate_size as f64);
        let block = 2.0 * d * d + 2.0 * d * kv + 3.0 * d * f;
        let attention = 12.0 * d * (self.max_position_embeddings as f64 + 1.0) / 2.0;
        let layers = self.num_hidden_layers as f64;
        layers * (6.0 * block + attention) + 6.0 * d * self.vocab_size as f64
    }

    /// Operations of products that a device does again for one token. Attention's backward pass computes scores and
    /// their gradients once for the queries and once for the keys: 7 products, not 4. Recomputation adds the forward
    /// pass of every block without its last product, whose result nothing needs.
    pub fn repeated_flops_per_token(&self, recompute: bool) -> f64 {
        let (d, kv, f) = (self.hidden_size as f64, self.kv_width() as f64, self.intermediate_size as f64);
        let block = 2.0 * d * d + 2.0 * d * kv + 2.0 * d * f;
        let product = 2.0 * d * (self.max_position_embeddings as f64 + 1.0) / 2.0;
        let again = if recompute { 2.0 * block + 2.0 * product } else { 0.0 };
        self.num_hidden_layers as f64 * (again + 3.0 * product)
    }
}
