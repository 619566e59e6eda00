//! How fast the trainer trains on this machine: whole steps on a model of a known size.

use super::{TrainError, peak_memory};
use crate::model::{Config, Decoder, Parameters, Window, initialise};
use crate::ops::{Precision, adamw, gemm_peak, norm};
use crate::recipe::{ModelRecipe, Recipe};
use crate::rng::Stream;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A model and batch of a known size.
#[derive(Debug, Clone)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// The model's shape.
    pub config: Config,
    /// Windows in a batch.
    pub batch: usize,
    /// Tokens in a window.
    pub time: usize,
    /// Whether a block's activations are computed again in the backward pass instead of kept.
    pub recompute: bool,
}

impl Preset {
    /// The preset called `name`: `bench-17m` (16.9 M parameters: 6 layers, width 384, 6 heads, SwiGLU
    /// 1024, vocabulary 8192, batch 8 × 256) or `bench-1m` (2 layers, width 96, the same batch).
    ///
    /// # Errors
    /// [`TrainError`] when the name is unknown.
    pub fn named(name: &str) -> Result<Self, TrainError> {
        let (layers, hidden, intermediate, heads) = match name {
            "bench-17m" => (6, 384, 1024, 6),
            "bench-1m" => (2, 96, 256, 4),
            _ => return Err(TrainError::Preset(name.to_owned())),
        };
        let recipe = ModelRecipe {
            layers,
            hidden,
            intermediate,
            heads,
            kv_heads: heads,
            context: 256,
            rope_theta: 1e4,
            norm_epsilon: 1e-5,
            tie_embeddings: false,
        };
        let name = if name == "bench-17m" { "bench-17m" } else { "bench-1m" };
        Ok(Preset { name, config: Config::from_recipe(&recipe, 8192, 0)?, batch: 8, time: 256, recompute: false })
    }

    /// A recipe's model and batch, with its whole vocabulary, and with recomputation where the recipe asks for it.
    ///
    /// # Errors
    /// [`TrainError`] when the sizes do not fit together.
    pub fn of(recipe: &Recipe) -> Result<Self, TrainError> {
        let config = Config::from_recipe(&recipe.model, recipe.tokenizer.vocabulary, 0)?;
        let recompute = recipe.train.recompute;
        Ok(Preset { name: "recipe", config, batch: recipe.train.batch, time: recipe.model.context, recompute })
    }

    /// The preset with other sizes; a width keeps heads of 64 numbers and SwiGLU at 8/3 of it.
    ///
    /// # Errors
    /// [`TrainError`] when the sizes do not fit together.
    pub fn resized(mut self, sizes: &Sizes) -> Result<Self, TrainError> {
        self.time = sizes.time.unwrap_or(self.time).max(1);
        self.batch = sizes.batch.unwrap_or(self.batch).max(1);
        self.config.max_position_embeddings = self.time;
        if let Some(vocabulary) = sizes.vocabulary {
            self.config.vocab_size = vocabulary;
        }
        if let Some(width) = sizes.width {
            self.config.hidden_size = width;
            self.config.num_attention_heads = (width / 64).max(1);
            self.config.num_key_value_heads = self.config.num_attention_heads;
            self.config.intermediate_size = (8 * width / 3).next_multiple_of(64);
        }
        self.config.check()?;
        Ok(self)
    }

    /// Tokens of step `n` and the token after each: a sequence that can be learnt, so that the loss of
    /// many steps says something.
    pub fn tokens(&self, n: u64) -> (Vec<u32>, Vec<u32>) {
        let stream = Stream::new(n, "bench");
        let vocabulary = self.config.vocab_size as u64;
        let mut inputs = Vec::with_capacity(self.batch * self.time);
        let mut targets = Vec::with_capacity(self.batch * self.time);
        for row in 0..self.batch as u64 {
            let start = stream.below(row, vocabulary);
            let token = |i: u64| ((start + 7 * i) % vocabulary) as u32;
            inputs.extend((0..self.time as u64).map(token));
            targets.extend((1..=self.time as u64).map(token));
        }
        (inputs, targets)
    }
}

/// Sizes that differ from a preset's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Tokens in a window.
    pub time: Option<usize>,
    /// Windows in a batch.
    pub batch: Option<usize>,
    /// Width of the residual stream.
    pub width: Option<usize>,
    /// Tokens in the vocabulary.
    pub vocabulary: Option<usize>,
}

/// What a benchmark measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchResult {
    /// Parameters of the model.
    pub parameters: u64,
    /// Precision of the matrix products.
    pub precision: Precision,
    /// Loss of every step before it, nats per token.
    pub losses: Vec<f64>,
    /// Seconds of every step.
    pub seconds: Vec<f64>,
    /// Training tokens a second in the median step.
    pub tokens_per_second: f64,
    /// Share of the matrix-product peak in the median step.
    pub gemm_peak_share: f64,
    /// The peak, floating-point operations a second, measured in this process.
    pub gemm_peak: f64,
    /// Peak resident memory in bytes, where the system tells.
    pub memory_bytes: Option<u64>,
    /// The same before the model was made: the program itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_bytes: Option<u64>,
}

/// Constant learning rate of the benchmark: small, since without warmup AdamW makes of every rounding error a
/// step of full size, and two right programs part.
pub const LEARNING_RATE: f64 = 1e-4;

/// Runs `steps` whole training steps of `preset`: gradients, their norm, AdamW, with matrix products in
/// `precision`.
///
/// # Errors
/// [`TrainError`] when the preset does not fit together.
pub fn bench(preset: &Preset, precision: Precision, steps: usize) -> Result<BenchResult, TrainError> {
    let program_bytes = peak_memory();
    let mut decoder = Decoder::new(preset.config.clone(), preset.recompute)?.with_precision(precision);
    let mut parameters: Parameters<f32> = initialise(&preset.config, 1);
    let [mut gradients, mut first, mut second] = [(); 3].map(|()| parameters.zeros_like());
    let (mut losses, mut seconds) = (Vec::new(), Vec::new());
    for step in 1..=steps as u64 {
        let (inputs, targets) = preset.tokens(step);
        let started = Instant::now();
        let window = Window { inputs: &inputs, targets: &targets, time: preset.time };
        gradients.flat.fill(0.0);
        let scale = 1.0 / inputs.len() as f64;
        let loss = decoder.forward_backward(&parameters, window, scale, &mut gradients)?;
        let norm = norm::sum_of_squares(&gradients.flat).sqrt();
        let settings = adamw::Settings {
            learning_rate: LEARNING_RATE,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            weight_decay: 0.0,
            gradient_scale: norm::clip_scale(norm, f64::MAX),
            step,
        };
        adamw::step(&mut parameters.flat, &gradients.flat, &mut first.flat, &mut second.flat, &settings);
        seconds.push(started.elapsed().as_secs_f64());
        losses.push(loss.mean());
    }
    let memory_bytes = peak_memory();
    let gemm_peak = gemm_peak();
    let tokens_per_second = (preset.batch * preset.time) as f64 / median(&seconds);
    let gemm_peak_share = tokens_per_second * preset.config.train_flops_per_token() / gemm_peak;
    let count = parameters.flat.len() as u64;
    Ok(BenchResult {
        parameters: count,
        precision,
        losses,
        seconds,
        tokens_per_second,
        gemm_peak_share,
        gemm_peak,
        memory_bytes,
        program_bytes,
    })
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
