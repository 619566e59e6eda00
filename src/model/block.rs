//! One block, forward and backward:
//!
//! mid = x + O·attention(rope(Q·n₁), rope(K·n₁), V·n₁) with n₁ = norm(x), then
//! out = mid + D·(silu(G·n₂)∘(U·n₂)) with n₂ = norm(mid).

use super::parameters::block_start;
use super::{Config, Parameters};
use crate::ops::linear::{self, Shape};
use crate::ops::{Precision, Real, attention, rms_norm, rope, swiglu};

/// What the backward pass of one block needs from its forward pass.
pub(super) struct Activations<T> {
    pub(super) x: Vec<T>,
    inverse1: Vec<T>,
    normed1: Vec<T>,
    q: Vec<T>,
    pub(super) k: Vec<T>,
    pub(super) v: Vec<T>,
    attended: Vec<T>,
    log_sum_exp: Vec<T>,
    mid: Vec<T>,
    inverse2: Vec<T>,
    normed2: Vec<T>,
    gate: Vec<T>,
    up: Vec<T>,
    gated: Vec<T>,
}

/// Gradients of the intermediate values; one set serves all blocks.
pub(super) struct Scratch<T> {
    normed: Vec<T>,
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
    attended: Vec<T>,
    gate: Vec<T>,
    up: Vec<T>,
    gated: Vec<T>,
}

/// Sizes of a batch: windows and positions in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) batch: usize,
    pub(super) time: usize,
}

impl Size {
    pub(super) fn rows(self) -> usize {
        self.batch * self.time
    }
}

fn zeros<T: Real>(count: usize) -> Vec<T> {
    vec![T::ZERO; count]
}

/// Numbers that [`Activations`] holds for `rows` positions.
pub(super) fn activation_numbers(config: &Config, rows: usize) -> usize {
    let (d, kv, f) = (config.hidden_size, config.kv_width(), config.intermediate_size);
    rows * (6 * d + 2 * kv + 3 * f + 2 + config.num_attention_heads)
}

/// Numbers that [`Scratch`] holds for `rows` positions.
pub(super) fn scratch_numbers(config: &Config, rows: usize) -> usize {
    let (d, kv, f) = (config.hidden_size, config.kv_width(), config.intermediate_size);
    rows * (3 * d + 2 * kv + 3 * f)
}

impl<T: Real> Activations<T> {
    pub(super) fn new(config: &Config, size: Size) -> Self {
        let rows = size.rows();
        let (d, kv, f) = (rows * config.hidden_size, rows * config.kv_width(), rows * config.intermediate_size);
        Activations {
            x: zeros(d),
            inverse1: zeros(rows),
            normed1: zeros(d),
            q: zeros(d),
            k: zeros(kv),
            v: zeros(kv),
            attended: zeros(d),
            log_sum_exp: zeros(rows * config.num_attention_heads),
            mid: zeros(d),
            inverse2: zeros(rows),
            normed2: zeros(d),
            gate: zeros(f),
            up: zeros(f),
            gated: zeros(f),
        }
    }
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(config: &Config, size: Size) -> Self {
        let rows = size.rows();
        let (d, kv, f) = (rows * config.hidden_size, rows * config.kv_width(), rows * config.intermediate_size);
        Scratch {
            normed: zeros(d),
            q: zeros(d),
            k: zeros(kv),
            v: zeros(kv),
            attended: zeros(d),
            gate: zeros(f),
            up: zeros(f),
            gated: zeros(f),
        }
    }
}

/// One block of a model on batches of one size.
pub(super) struct Block<'a, T> {
    pub(super) config: &'a Config,
    pub(super) tables: &'a rope::Tables<T>,
    pub(super) size: Size,
    pub(super) layer: usize,
    pub(super) precision: Precision,
}

impl<T: Real> Block<'_, T> {
    fn index(&self, part: usize) -> usize {
        block_start(self.layer) + part
    }

    fn shape(&self, inputs: usize, outputs: usize) -> Shape {
        Shape { rows: self.size.rows(), inputs, outputs, precision: self.precision }
    }

    fn heads(&self) -> attention::Shape {
        attention::Shape {
            batch: self.size.batch,
            time: self.size.time,
            heads: self.config.num_attention_heads,
            kv_heads: self.config.num_key_value_heads,
            head_dim: self.config.head_dim(),
        }
    }

    /// Computes `out` from `saved.x` and leaves in `saved` what [`Block::backward`] needs.
    pub(super) fn forward(&self, parameters: &Parameters<T>, saved: &mut Activations<T>, out: &mut [T]) {
        let weight = |part| parameters.at(self.index(part));
        let (d, kv, f) = (self.config.hidden_size, self.config.kv_width(), self.config.intermediate_size);
        let (epsilon, time) = (self.config.rms_norm_eps, self.size.time);
        let s = saved;
        rms_norm::forward(&s.x, weight(0), epsilon, &mut s.normed1, &mut s.inverse1);
        linear::forward(&s.normed1, weight(1), &mut s.q, self.shape(d, d), false);
        linear::forward(&s.normed1, weight(2), &mut s.k, self.shape(d, kv), false);
        linear::forward(&s.normed1, weight(3), &mut s.v, self.shape(d, kv), false);
        rope::forward(&mut s.q, self.tables, 0, time, self.config.num_attention_heads);
        rope::forward(&mut s.k, self.tables, 0, time, self.config.num_key_value_heads);
        attention::forward(&s.q, &s.k, &s.v, &self.heads(), &mut s.attended, &mut s.log_sum_exp);
        s.mid.copy_from_slice(&s.x);
        linear::forward(&s.attended, weight(4), &mut s.mid, self.shape(d, d), true);
        rms_norm::forward(&s.mid, weight(5), epsilon, &mut s.normed2, &mut s.inverse2);
        linear::forward(&s.normed2, weight(6), &mut s.gate, self.shape(d, f), false);
        linear::forward(&s.normed2, weight(7), &mut s.up, self.shape(d, f), false);
        swiglu::forward(&s.gate, &s.up, &mut s.gated);
        out.copy_from_slice(&s.mid);
        linear::forward(&s.gated, weight(8), out, self.shape(f, d), true);
    }

    /// Turns `dx`, the gradient of the block's output, into that of its input, and adds the weights'
    /// gradients to `gradients`.
    pub(super) fn backward(
        &self,
        parameters: &Parameters<T>,
        saved: &Activations<T>,
        scratch: &mut Scratch<T>,
        gradients: &mut Parameters<T>,
        dx: &mut [T],
    ) {
        self.backward_feed_forward(parameters, saved, scratch, gradients, dx);
        self.backward_attention(parameters, saved, scratch, gradients, dx);
    }

    fn backward_feed_forward(
        &self,
        parameters: &Parameters<T>,
        s: &Activations<T>,
        g: &mut Scratch<T>,
        gradients: &mut Parameters<T>,
        dx: &mut [T],
    ) {
        let weight = |part| parameters.at(self.index(part));
        let (d, f) = (self.config.hidden_size, self.config.intermediate_size);
        linear::backward_weight(dx, &s.gated, gradients.at_mut(self.index(8)), self.shape(f, d));
        linear::backward_input(dx, weight(8), &mut g.gated, self.shape(f, d), false);
        swiglu::backward(&s.gate, &s.up, &g.gated, &mut g.gate, &mut g.up);
        for (part, dy, accumulate) in [(6, &g.gate, false), (7, &g.up, true)] {
            linear::backward_weight(dy, &s.normed2, gradients.at_mut(self.index(part)), self.shape(d, f));
            linear::backward_input(dy, weight(part), &mut g.normed, self.shape(d, f), accumulate);
        }
        rms_norm::backward(&s.mid, weight(5), &s.inverse2, &g.normed, dx, gradients.at_mut(self.index(5)));
    }

    fn backward_attention(
        &self,
        parameters: &Parameters<T>,
        s: &Activations<T>,
        g: &mut Scratch<T>,
        gradients: &mut Parameters<T>,
        dx: &mut [T],
    ) {
        let weight = |part| parameters.at(self.index(part));
        let (d, kv, time) = (self.config.hidden_size, self.config.kv_width(), self.size.time);
        linear::backward_weight(dx, &s.attended, gradients.at_mut(self.index(4)), self.shape(d, d));
        linear::backward_input(dx, weight(4), &mut g.attended, self.shape(d, d), false);
        let saved = attention::Saved { out: &s.attended, log_sum_exp: &s.log_sum_exp };
        let heads = self.heads();
        attention::backward(&s.q, &s.k, &s.v, saved, &g.attended, &heads, &mut g.q, &mut g.k, &mut g.v);
        rope::backward(&mut g.q, self.tables, 0, time, self.config.num_attention_heads);
        rope::backward(&mut g.k, self.tables, 0, time, self.config.num_key_value_heads);
        for (part, dy, width, accumulate) in [(1, &g.q, d, false), (2, &g.k, kv, true), (3, &g.v, kv, true)] {
            linear::backward_weight(dy, &s.normed1, gradients.at_mut(self.index(part)), self.shape(d, width));
            linear::backward_input(dy, weight(part), &mut g.normed, self.shape(d, width), accumulate);
        }
        rms_norm::backward(&s.x, weight(0), &s.inverse1, &g.normed, dx, gradients.at_mut(self.index(0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn the_counted_numbers_are_those_of_the_buffers() {
        let config = Config::from_recipe(&Recipe::load("pocket").unwrap().model, 300, 0).unwrap();
        let size = Size { batch: 3, time: 7 };
        let a: Activations<f32> = Activations::new(&config, size);
        let buffers = [&a.x, &a.inverse1, &a.normed1, &a.q, &a.k, &a.v, &a.attended, &a.log_sum_exp];
        let more = [&a.mid, &a.inverse2, &a.normed2, &a.gate, &a.up, &a.gated];
        let total: usize = buffers.iter().chain(&more).map(|b| b.len()).sum();
        assert_eq!(activation_numbers(&config, size.rows()), total);
        let s: Scratch<f32> = Scratch::new(&config, size);
        let buffers = [&s.normed, &s.q, &s.k, &s.v, &s.attended, &s.gate, &s.up, &s.gated];
        assert_eq!(scratch_numbers(&config, size.rows()), buffers.iter().map(|b| b.len()).sum::<usize>());
    }
}
