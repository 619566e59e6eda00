//! Memory of a training step, counted from the buffers that exist.

use super::block::{activation_numbers, scratch_numbers};
use super::{Config, Parameters};
use crate::ops::Precision;
use crate::ops::linear_cross_entropy::Shape;

/// Bytes of a training step by kind, in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Parameters.
    pub weights: u64,
    /// Their gradients.
    pub gradients: u64,
    /// AdamW's two moments.
    pub moments: u64,
    /// What the forward pass keeps for the backward pass, and the gradients of it.
    pub activations: u64,
    /// The logits that exist at a time.
    pub logits: u64,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights + self.gradients + self.moments + self.activations + self.logits
    }
}

/// Memory to train on batches of `batch` windows of `time` tokens, with or without recomputation.
pub fn training_memory(config: &Config, batch: usize, time: usize, recompute: bool) -> Memory {
    let (rows, layers) = (batch * time, config.num_hidden_layers);
    let count: usize = Parameters::<f32>::count(config);
    let weights = 4 * count as u64;
    // Beside the blocks: x, dx, hidden, dhidden and one inverse per row.
    let around = rows * (4 * config.hidden_size + 1);
    let kept = if recompute {
        activation_numbers(config, rows) + layers * rows * config.hidden_size
    } else {
        layers * activation_numbers(config, rows)
    };
    let logits =
        Shape { rows, inputs: config.hidden_size, vocabulary: config.vocab_size, precision: Precision::F32 }.logits();
    Memory {
        weights,
        gradients: weights,
        moments: 2 * weights,
        activations: 4 * (kept + scratch_numbers(config, rows) + around) as u64,
        logits: 4 * logits as u64,
    }
}
