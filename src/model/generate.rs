//! Generation: one position at a time against cached keys and values, and a seeded sampler.

use super::parameters::{EMBEDDING, block_start, final_norm, output};
use super::{Config, ModelError, Parameters};
use crate::ops::linear::{self, Shape};
use crate::ops::{Precision, attention, rms_norm, rope, swiglu};
use crate::rng::Stream;

/// A text being continued: the keys and values of every position so far.
pub struct Session<'a> {
    config: &'a Config,
    parameters: &'a Parameters<f32>,
    tables: rope::Tables<f32>,
    /// Keys and values of each block, `[length, kv_width]`.
    cache: Vec<[Vec<f32>; 2]>,
    length: usize,
}

impl<'a> Session<'a> {
    /// An empty text for a model.
    pub fn new(config: &'a Config, parameters: &'a Parameters<f32>) -> Self {
        let tables = rope::Tables::new(config.max_position_embeddings, config.head_dim(), config.rope_theta);
        let cache = (0..config.num_hidden_layers).map(|_| [Vec::new(), Vec::new()]).collect();
        Session { config, parameters, tables, cache, length: 0 }
    }

    /// Positions so far.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing was given yet.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends `ids` and gives the logits after the last one, `[vocabulary]`.
    ///
    /// # Errors
    /// [`ModelError::Empty`], [`ModelError::TooLong`] or [`ModelError::Token`]; the session is unchanged then.
    pub fn extend(&mut self, ids: &[u32]) -> Result<Vec<f32>, ModelError> {
        let (context, vocabulary) = (self.config.max_position_embeddings, self.config.vocab_size);
        let found = self.length + ids.len();
        if ids.is_empty() {
            return Err(ModelError::Empty);
        }
        if found > context {
            return Err(ModelError::TooLong { found, context });
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocabulary) {
            return Err(ModelError::Token { id: *id, vocabulary });
        }
        let mut hidden = Vec::new();
        for id in ids {
            hidden = self.position(*id);
        }
        let mut logits = vec![0.0; vocabulary];
        let shape = Shape { rows: 1, inputs: self.config.hidden_size, outputs: vocabulary, precision: Precision::F32 };
        linear::forward(&hidden, self.parameters.at(output(self.config)), &mut logits, shape, false);
        Ok(logits)
    }

    /// One position through all blocks; gives the normed hidden state, `[hidden]`.
    fn position(&mut self, id: u32) -> Vec<f32> {
        let (config, parameters) = (self.config, self.parameters);
        let (d, position) = (config.hidden_size, self.length);
        self.length += 1;
        let mut x = parameters.at(EMBEDDING)[id as usize * d..][..d].to_vec();
        for layer in 0..config.num_hidden_layers {
            self.block(layer, position, &mut x);
        }
        norm(&x, parameters.at(final_norm(config)), config.rms_norm_eps)
    }

    fn block(&mut self, layer: usize, position: usize, x: &mut [f32]) {
        let config = self.config;
        let (d, kv, f) = (config.hidden_size, config.kv_width(), config.intermediate_size);
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let weight = |part: usize| self.parameters.at(block_start(layer) + part);
        let normed = norm(x, weight(0), config.rms_norm_eps);
        let mut q = product(&normed, weight(1), d);
        let (mut k, v) = (product(&normed, weight(2), kv), product(&normed, weight(3), kv));
        rope::forward(&mut q, &self.tables, position, 1, heads);
        rope::forward(&mut k, &self.tables, position, 1, kv_heads);
        let [keys, values] = &mut self.cache[layer];
        keys.extend(k);
        values.extend(v);
        let shape = attention::Shape { batch: 1, time: position + 1, heads, kv_heads, head_dim: config.head_dim() };
        let mut attended = vec![0.0; d];
        attention::decode(&q, keys, values, &shape, &mut attended);
        add(x, &product(&attended, weight(4), d));
        let normed = norm(x, weight(5), config.rms_norm_eps);
        let mut gated = vec![0.0; f];
        swiglu::forward(&product(&normed, weight(6), f), &product(&normed, weight(7), f), &mut gated);
        add(x, &product(&gated, weight(8), d));
    }
}

fn norm(x: &[f32], gain: &[f32], epsilon: f64) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    rms_norm::forward(x, gain, epsilon, &mut out, &mut [0.0]);
    out
}

fn product(x: &[f32], w: &[f32], outputs: usize) -> Vec<f32> {
    let mut out = vec![0.0; outputs];
    linear::forward(x, w, &mut out, Shape { rows: 1, inputs: x.len(), outputs, precision: Precision::F32 }, false);
    out
}

fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// How the next token is chosen from the logits.
#[derive(Debug, Clone)]
pub struct Sampler {
    temperature: f64,
    top_p: f64,
    stream: Stream,
    drawn: u64,
}

impl Sampler {
    /// A sampler; `temperature` 0 always takes the likeliest token, `top_p` keeps the fewest tokens
    /// whose probabilities sum to at least that much (A. Holtzman et al., ICLR 2020).
    ///
    /// # Errors
    /// [`ModelError::Sampler`] when a value is out of range.
    pub fn new(temperature: f64, top_p: f64, seed: u64) -> Result<Self, ModelError> {
        if !(0.0..=100.0).contains(&temperature) {
            return Err(ModelError::Sampler { name: "temperature", found: temperature, expected: "0 up to 100" });
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(ModelError::Sampler { name: "top_p", found: top_p, expected: "above 0, at most 1" });
        }
        Ok(Sampler { temperature, top_p, stream: Stream::new(seed, "sampler"), drawn: 0 })
    }

    /// The next token for `logits` `[vocabulary]`; ties go to the smaller id.
    ///
    /// # Errors
    /// [`ModelError::NotFinite`] when a logit is no number, [`ModelError::Empty`] without any.
    pub fn choose(&mut self, logits: &[f32]) -> Result<u32, ModelError> {
        if logits.is_empty() {
            return Err(ModelError::Empty);
        }
        if logits.iter().any(|z| !z.is_finite()) {
            return Err(ModelError::NotFinite);
        }
        let mut order: Vec<u32> = (0..logits.len() as u32).collect();
        order.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b)));
        if self.temperature == 0.0 {
            return Ok(order[0]);
        }
        let max = f64::from(logits[order[0] as usize]);
        let weight = |id: &u32| ((f64::from(logits[*id as usize]) - max) / self.temperature).exp();
        let weights: Vec<f64> = order.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        let mut kept = 0.0;
        let inside = |weight: &&f64| {
            let before = kept;
            kept += **weight;
            before < self.top_p * total
        };
        let count = weights.iter().take_while(inside).count();
        let nucleus: f64 = weights[..count].iter().sum();
        let mut left = self.stream.uniform(self.drawn) * nucleus;
        self.drawn += 1;
        let chosen = weights[..count].iter().position(|w| {
            left -= w;
            left < 0.0
        });
        Ok(order[chosen.unwrap_or(count - 1)])
    }
}
