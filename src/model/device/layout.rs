//! Everything that training keeps on a device, buffer by buffer: what is allocated is what is counted.

use crate::model::{Config, Memory, Parameters};
use crate::ops::cuda::{PIECE, rms_norm_shares};

/// Rows of logits that exist at a time.
pub const LOGIT_ROWS: usize = 1024;

/// Sizes of a training step on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Windows of a micro-batch.
    pub batch: usize,
    /// Tokens of a window.
    pub time: usize,
    /// Whether a block's activations are computed again in the backward pass.
    pub recompute: bool,
    /// Bytes of a number that is computed with: 2 for bf16, 4 for f32.
    pub width: usize,
}

impl Step {
    /// Rows of a micro-batch.
    pub fn rows(&self) -> usize {
        self.batch * self.time
    }

    /// Sets of activations that exist.
    pub fn sets(&self, config: &Config) -> usize {
        if self.recompute { 1 } else { config.num_hidden_layers }
    }

    /// Rows of logits at a time.
    pub fn logit_rows(&self) -> usize {
        self.rows().min(LOGIT_ROWS)
    }

    /// Partial rows that the embedding's backward pass needs at most.
    pub fn partial_rows(&self) -> usize {
        self.rows() / PIECE + self.rows() / (PIECE + 1) + 1
    }
}

/// Numbers of one set of activations, by width: `[computed with, f32]`.
fn activations(config: &Config, rows: usize) -> [usize; 2] {
    let (d, kv, f) = (config.hidden_size, config.kv_width(), config.intermediate_size);
    // norm 1, q, k, v, attended, middle, norm 2, gate, up, gated; two inverses and the sums of attention.
    [rows * (5 * d + 2 * kv + 3 * f), rows * (2 + config.num_attention_heads)]
}

/// Numbers of the gradients inside a block, by width.
fn gradients(config: &Config, rows: usize) -> [usize; 2] {
    let (d, kv, f) = (config.hidden_size, config.kv_width(), config.intermediate_size);
    [rows * (3 * d + 2 * kv + 3 * f), rows * config.num_attention_heads + rms_norm_shares(rows, d)]
}

/// Bytes of a training step on a device, by kind.
pub fn device_memory(config: &Config, step: &Step) -> Memory {
    let (rows, d, layers) = (step.rows(), config.hidden_size, config.num_hidden_layers);
    let count = Parameters::<f32>::count(config) as u64;
    let copy = if step.width == 4 { 0 } else { step.width as u64 * count };
    let bytes = |[computed, full]: [usize; 2]| step.width * computed + 4 * full;
    // The inputs of all blocks and of the last norm, its result, and the gradients of both.
    let around = step.width * rows * d * (layers + 4) + 4 * rows;
    let ids = 4 * rows * (2 + 1 + 4) + 4 * step.partial_rows() * (2 + d);
    let kept = step.sets(config) * bytes(activations(config, rows)) + bytes(gradients(config, rows));
    Memory {
        weights: 4 * count + copy,
        gradients: 4 * count,
        moments: 8 * count,
        activations: (kept + around + ids) as u64,
        logits: (step.width * step.logit_rows() * config.vocab_size) as u64,
    }
}
