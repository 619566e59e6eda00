//! One block on a device; the formulas are those of `model::block`.

use super::DeviceDecoder;
use crate::model::Config;
use crate::model::parameters::block_start;
use crate::ops::attention::Shape;
use crate::ops::cuda::{self, Attention, Backend, Element, Place, Positions};

/// What the backward pass of a block needs from its forward pass, beside its input.
pub(super) struct Activations<T> {
    inverse1: Place<f32>,
    normed1: Place<T>,
    q: Place<T>,
    k: Place<T>,
    v: Place<T>,
    attended: Place<T>,
    log_sum_exp: Place<f32>,
    mid: Place<T>,
    inverse2: Place<f32>,
    normed2: Place<T>,
    gate: Place<T>,
    up: Place<T>,
    gated: Place<T>,
}

/// Gradients of the intermediate values; one set serves all blocks.
pub(super) struct Scratch<T> {
    normed: Place<T>,
    q: Place<T>,
    k: Place<T>,
    v: Place<T>,
    attended: Place<T>,
    gate: Place<T>,
    up: Place<T>,
    gated: Place<T>,
    delta: Place<f32>,
    pub(super) shares: Place<f32>,
}

impl<T: Element> Activations<T> {
    pub(super) fn new<B: Backend>(backend: &mut B, config: &Config, rows: usize) -> Result<Self, B::Error> {
        let (d, kv, f) = (rows * config.hidden_size, rows * config.kv_width(), rows * config.intermediate_size);
        Ok(Activations {
            inverse1: backend.place(rows)?,
            normed1: backend.place(d)?,
            q: backend.place(d)?,
            k: backend.place(kv)?,
            v: backend.place(kv)?,
            attended: backend.place(d)?,
            log_sum_exp: backend.place(rows * config.num_attention_heads)?,
            mid: backend.place(d)?,
            inverse2: backend.place(rows)?,
            normed2: backend.place(d)?,
            gate: backend.place(f)?,
            up: backend.place(f)?,
            gated: backend.place(f)?,
        })
    }
}

impl<T: Element> Scratch<T> {
    pub(super) fn new<B: Backend>(backend: &mut B, config: &Config, rows: usize) -> Result<Self, B::Error> {
        let (d, kv, f) = (rows * config.hidden_size, rows * config.kv_width(), rows * config.intermediate_size);
        Ok(Scratch {
            normed: backend.place(d)?,
            q: backend.place(d)?,
            k: backend.place(kv)?,
            v: backend.place(kv)?,
            attended: backend.place(d)?,
            gate: backend.place(f)?,
            up: backend.place(f)?,
            gated: backend.place(f)?,
            delta: backend.place(rows * config.num_attention_heads)?,
            shares: backend.place(cuda::rms_norm_shares(rows, config.hidden_size))?,
        })
    }
}

impl<B: Backend, T: Element> DeviceDecoder<B, T> {
    fn heads(&self) -> Shape {
        Shape {
            batch: self.step.batch,
            time: self.step.time,
            heads: self.config.num_attention_heads,
            kv_heads: self.config.num_key_value_heads,
            head_dim: self.config.head_dim(),
        }
    }

    fn rope(&mut self, x: Place<T>, heads: usize, back: bool) -> Result<(), B::Error> {
        let at = Positions { start: 0, time: self.step.time, heads };
        self.backend.launch(&cuda::rope(x, self.tables, at, self.config.head_dim() / 2, back))
    }

    fn saved(&self, layer: usize) -> usize {
        if self.step.recompute { 0 } else { layer }
    }

    /// Block `layer` from its input to the input of the next; the last product is left out when only what the
    /// backward pass needs is wanted.
    pub(super) fn block_forward(&mut self, layer: usize, with_output: bool) -> Result<(), B::Error> {
        let (start, rows, at) = (block_start(layer), self.step.rows(), self.saved(layer));
        let epsilon = self.config.rms_norm_eps as f32;
        let (x, out) = (self.inputs[layer], self.inputs[layer + 1]);
        let Activations { inverse1, normed1, q, k, v, attended, log_sum_exp, .. } = self.saved[at];
        let Activations { mid, inverse2, normed2, gate, up, gated, .. } = self.saved[at];
        let linear = |part: usize| self.linear(start + part, rows);
        let [wq, wk, wv, wo, wg, wu, wd] = [1, 2, 3, 4, 6, 7, 8].map(linear);
        let gains = [0, 5].map(|part| self.weight(start + part));
        let bytes = x.length * size_of::<T>();
        self.backend.launch(&cuda::rms_norm_forward(x, gains[0], epsilon, normed1, inverse1))?;
        for (w, y) in [(wq, q), (wk, k), (wv, v)] {
            self.backend.multiply(&w.forward(normed1, y, false))?;
        }
        self.rope(q, self.config.num_attention_heads, false)?;
        self.rope(k, self.config.num_key_value_heads, false)?;
        let shape = self.heads();
        self.backend.launch(&cuda::attention_forward(Attention { q, k, v, shape }, attended, log_sum_exp))?;
        self.backend.copy(x.address, mid.address, bytes)?;
        self.backend.multiply(&wo.forward(attended, mid, true))?;
        self.backend.launch(&cuda::rms_norm_forward(mid, gains[1], epsilon, normed2, inverse2))?;
        self.backend.multiply(&wg.forward(normed2, gate, false))?;
        self.backend.multiply(&wu.forward(normed2, up, false))?;
        self.backend.launch(&cuda::swiglu_forward(gate, up, gated))?;
        if with_output {
            self.backend.copy(mid.address, out.address, bytes)?;
            self.backend.multiply(&wd.forward(gated, out, true))?;
        }
        Ok(())
    }

    /// Turns `dx`, the gradient of the block's output, into that of its input, and adds the weights' gradients.
    pub(super) fn block_backward(&mut self, layer: usize) -> Result<(), B::Error> {
        if self.step.recompute {
            self.block_forward(layer, false)?;
        }
        self.feed_forward_backward(layer)?;
        self.attention_backward(layer)
    }

    fn feed_forward_backward(&mut self, layer: usize) -> Result<(), B::Error> {
        let (start, rows, at, dx) = (block_start(layer), self.step.rows(), self.saved(layer), self.dx);
        let Activations { mid, inverse2, normed2, gate, up, gated, .. } = self.saved[at];
        let g = &self.scratch;
        let (dgated, dgate, dup, dnormed, shares) = (g.gated, g.gate, g.up, g.normed, g.shares);
        let linear = |part: usize| (self.linear(start + part, rows), self.gradient(start + part));
        let [(wg, dwg), (wu, dwu), (wd, dwd)] = [6, 7, 8].map(linear);
        let (gain, dgain) = (self.weight(start + 5), self.gradient(start + 5));
        self.backend.multiply(&wd.backward_weight(dx, gated, dwd))?;
        self.backend.multiply(&wd.backward_input(dx, dgated, false))?;
        self.backend.launch(&cuda::swiglu_backward(gate, up, dgated, [dgate, dup]))?;
        for (w, dw, dy, accumulate) in [(wg, dwg, dgate, false), (wu, dwu, dup, true)] {
            self.backend.multiply(&w.backward_weight(dy, normed2, dw))?;
            self.backend.multiply(&w.backward_input(dy, dnormed, accumulate))?;
        }
        self.backend.run(cuda::rms_norm_backward([mid, gain, dnormed, dx], [inverse2, shares, dgain]))
    }

    fn attention_backward(&mut self, layer: usize) -> Result<(), B::Error> {
        let (start, rows, at, dx) = (block_start(layer), self.step.rows(), self.saved(layer), self.dx);
        let Activations { inverse1, normed1, q, k, v, attended, log_sum_exp, .. } = self.saved[at];
        let g = &self.scratch;
        let (dattended, dq, dk, dv, dnormed) = (g.attended, g.q, g.k, g.v, g.normed);
        let (delta, shares) = (g.delta, g.shares);
        let linear = |part: usize| (self.linear(start + part, rows), self.gradient(start + part));
        let [(wq, dwq), (wk, dwk), (wv, dwv), (wo, dwo)] = [1, 2, 3, 4].map(linear);
        let (gain, dgain, x) = (self.weight(start), self.gradient(start), self.inputs[layer]);
        self.backend.multiply(&wo.backward_weight(dx, attended, dwo))?;
        self.backend.multiply(&wo.backward_input(dx, dattended, false))?;
        let inputs = Attention { q, k, v, shape: self.heads() };
        let (out, kept) = ([attended, dattended], [log_sum_exp, delta]);
        self.backend.run(cuda::attention_backward(inputs, out, kept, [dq, dk, dv]))?;
        self.rope(dq, self.config.num_attention_heads, true)?;
        self.rope(dk, self.config.num_key_value_heads, true)?;
        for (w, dw, dy, accumulate) in [(wq, dwq, dq, false), (wk, dwk, dk, true), (wv, dwv, dv, true)] {
            self.backend.multiply(&w.backward_weight(dy, normed1, dw))?;
            self.backend.multiply(&w.backward_input(dy, dnormed, accumulate))?;
        }
        self.backend.run(cuda::rms_norm_backward([x, gain, dnormed, dx], [inverse1, shares, dgain]))
    }
}
