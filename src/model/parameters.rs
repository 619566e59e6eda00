//! All parameters in one flat buffer, with a table that names the tensors inside it.

use super::Config;
use crate::ops::Real;
use std::sync::Arc;

/// Tensors of one block, in order.
pub(super) const BLOCK: [&str; 9] = [
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
];

/// One named tensor inside the flat buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Hugging Face's name.
    pub name: String,
    /// `[outputs, inputs]` of a matrix, `[width]` of a gain.
    pub shape: Vec<usize>,
    /// Where it starts in the flat buffer.
    pub offset: usize,
    /// Whether weight decay applies: to matrices. A gain that shrinks would scale its layer's input
    /// away, and decay there only fights the optimizer.
    pub decay: bool,
}

impl Tensor {
    /// Numbers in the tensor.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Parameters, gradients or moments: one flat buffer and the table of its tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters<T> {
    table: Arc<[Tensor]>,
    /// All numbers, tensor after tensor.
    pub flat: Vec<T>,
}

impl<T: Real> Parameters<T> {
    /// Zeros in the layout of `config`.
    pub fn zeros(config: &Config) -> Self {
        let table = table(config);
        let size = table.iter().map(Tensor::len).sum();
        Parameters { table: table.into(), flat: vec![T::ZERO; size] }
    }

    /// Numbers in the layout of `config`.
    pub fn count(config: &Config) -> usize {
        table(config).iter().map(Tensor::len).sum()
    }

    /// Zeros in the same layout.
    pub fn zeros_like(&self) -> Self {
        Parameters { table: self.table.clone(), flat: vec![T::ZERO; self.flat.len()] }
    }

    /// The same numbers in another type.
    pub fn cast<U: Real>(&self) -> Parameters<U> {
        let flat = self.flat.iter().map(|x| U::from_f64(x.to_f64())).collect();
        Parameters { table: self.table.clone(), flat }
    }

    /// The tensors, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.table
    }

    /// The tensor called `name` and its numbers.
    pub fn named(&self, name: &str) -> Option<(&Tensor, &[T])> {
        let tensor = self.table.iter().find(|t| t.name == name)?;
        Some((tensor, self.values(tensor)))
    }

    /// The numbers of a tensor of this table.
    pub fn values(&self, tensor: &Tensor) -> &[T] {
        &self.flat[tensor.offset..tensor.offset + tensor.len()]
    }

    /// The numbers of a tensor of this table, to write.
    pub fn values_mut(&mut self, tensor: &Tensor) -> &mut [T] {
        &mut self.flat[tensor.offset..tensor.offset + tensor.len()]
    }

    pub(super) fn at(&self, index: usize) -> &[T] {
        self.values(&self.table[index])
    }

    pub(super) fn at_mut(&mut self, index: usize) -> &mut [T] {
        let tensor = &self.table[index];
        let range = tensor.offset..tensor.offset + tensor.len();
        &mut self.flat[range]
    }
}

/// Index of the embedding matrix.
pub(super) const EMBEDDING: usize = 0;

/// Index of the first tensor of block `layer`.
pub(super) fn block_start(layer: usize) -> usize {
    1 + layer * BLOCK.len()
}

/// Index of the final gain.
pub(super) fn final_norm(config: &Config) -> usize {
    block_start(config.num_hidden_layers)
}

/// Index of the output matrix.
pub(super) fn output(config: &Config) -> usize {
    if config.tie_word_embeddings { EMBEDDING } else { final_norm(config) + 1 }
}

fn table(config: &Config) -> Vec<Tensor> {
    let (d, kv, f) = (config.hidden_size, config.kv_width(), config.intermediate_size);
    let mut entries = vec![("model.embed_tokens".to_owned(), vec![config.vocab_size, d])];
    for layer in 0..config.num_hidden_layers {
        let shapes =
            [vec![d], vec![d, d], vec![kv, d], vec![kv, d], vec![d, d], vec![d], vec![f, d], vec![f, d], vec![d, f]];
        let names = BLOCK.iter().map(|part| format!("model.layers.{layer}.{part}"));
        entries.extend(names.zip(shapes));
    }
    entries.push(("model.norm".to_owned(), vec![d]));
    if !config.tie_word_embeddings {
        entries.push(("lm_head".to_owned(), vec![config.vocab_size, d]));
    }
    let mut offset = 0;
    let place = |(name, shape): (String, Vec<usize>)| {
        let tensor = Tensor { name: format!("{name}.weight"), decay: shape.len() > 1, shape, offset };
        offset += tensor.len();
        tensor
    };
    entries.into_iter().map(place).collect()
}
