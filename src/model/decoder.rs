//! The whole decoder: embedding, blocks, final norm, output with its loss.

use super::block::{Activations, Block, Scratch, Size};
use super::parameters::{EMBEDDING, final_norm, output};
use super::{Config, ModelError, Parameters};
use crate::ops::linear_cross_entropy as loss;
use crate::ops::{IGNORE, Precision, Real, embedding, in_pool, rms_norm, rope};

/// Windows of tokens with their targets, row-major `[batch, time]`.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// Token ids.
    pub inputs: &'a [u32],
    /// The token after each; [`IGNORE`] where no loss is wanted.
    pub targets: &'a [u32],
    /// Positions in a window.
    pub time: usize,
}

/// A sum of losses and how many positions it is over.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LossSum {
    /// Sum in nats.
    pub nats: f64,
    /// Positions that counted.
    pub tokens: usize,
}

impl LossSum {
    /// Nats per token; NaN when nothing counted.
    pub fn mean(&self) -> f64 {
        self.nats / self.tokens as f64
    }
}

/// Buffers for batches of one size, kept between calls.
struct Workspace<T> {
    size: Size,
    blocks: Vec<Activations<T>>,
    /// With recomputation, the input of every block.
    inputs: Vec<Vec<T>>,
    scratch: Option<Scratch<T>>,
    x: Vec<T>,
    dx: Vec<T>,
    hidden: Vec<T>,
    dhidden: Vec<T>,
    inverse: Vec<T>,
}

/// Runs a model of one configuration forward and backward; the parameters are the caller's.
pub struct Decoder<T> {
    config: Config,
    tables: rope::Tables<T>,
    recompute: bool,
    precision: Precision,
    workspace: Option<Workspace<T>>,
}

impl<T: Real> Decoder<T> {
    /// A decoder for `config`. With `recompute`, a block keeps its input only and computes its
    /// activations again in the backward pass; the result is the same to the bit.
    ///
    /// # Errors
    /// [`ModelError::Config`] when the sizes do not fit together.
    pub fn new(config: Config, recompute: bool) -> Result<Self, ModelError> {
        config.check()?;
        let tables = rope::Tables::new(config.max_position_embeddings, config.head_dim(), config.rope_theta);
        Ok(Decoder { config, tables, recompute, precision: Precision::F32, workspace: None })
    }

    /// The same decoder with its matrix products in this precision; those of `f64` stay exact.
    pub fn with_precision(self, precision: Precision) -> Self {
        Decoder { precision, ..self }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Loss of every position in nats, 0 where the target is [`IGNORE`].
    ///
    /// # Errors
    /// [`ModelError`] when a window is too long or an id lies outside the vocabulary.
    pub fn token_losses(&mut self, parameters: &Parameters<T>, window: Window) -> Result<Vec<f64>, ModelError> {
        in_pool(|| {
            let (workspace, shape) = self.run(parameters, window, false)?;
            let losses = loss::per_row(&workspace.hidden, parameters.at(output(&self.config)), window.targets, shape);
            self.workspace = Some(workspace);
            Ok(losses)
        })
    }

    /// Sum of the losses.
    ///
    /// # Errors
    /// As [`Decoder::token_losses`].
    pub fn loss(&mut self, parameters: &Parameters<T>, window: Window) -> Result<LossSum, ModelError> {
        let nats = self.token_losses(parameters, window)?.iter().sum();
        Ok(LossSum { nats, tokens: window.targets.iter().filter(|t| **t != IGNORE).count() })
    }

    /// Sum of the losses; adds their gradients times `scale` to `gradients`.
    ///
    /// # Errors
    /// As [`Decoder::token_losses`].
    pub fn forward_backward(
        &mut self,
        parameters: &Parameters<T>,
        window: Window,
        scale: f64,
        gradients: &mut Parameters<T>,
    ) -> Result<LossSum, ModelError> {
        in_pool(|| self.walk(parameters, window, scale, gradients))
    }

    /// Forward through all blocks, and back.
    fn walk(
        &mut self,
        parameters: &Parameters<T>,
        window: Window,
        scale: f64,
        gradients: &mut Parameters<T>,
    ) -> Result<LossSum, ModelError> {
        let (mut w, shape) = self.run(parameters, window, true)?;
        let out = output(&self.config);
        let (hidden, dw) = (&w.hidden, gradients.at_mut(out));
        let (nats, tokens) =
            loss::forward_backward(hidden, parameters.at(out), window.targets, shape, scale, &mut w.dhidden, dw);
        let norm = final_norm(&self.config);
        w.dx.fill(T::ZERO);
        rms_norm::backward(&w.x, parameters.at(norm), &w.inverse, &w.dhidden, &mut w.dx, gradients.at_mut(norm));
        self.backward_blocks(parameters, gradients, &mut w);
        embedding::backward(window.inputs, &w.dx, gradients.at_mut(EMBEDDING), self.config.hidden_size);
        self.workspace = Some(w);
        Ok(LossSum { nats, tokens })
    }

    fn backward_blocks(&self, parameters: &Parameters<T>, gradients: &mut Parameters<T>, w: &mut Workspace<T>) {
        let size = w.size;
        let scratch = w.scratch.get_or_insert_with(|| Scratch::new(&self.config, size));
        for layer in (0..self.config.num_hidden_layers).rev() {
            let block = self.block(layer, size);
            let saved = if self.recompute {
                w.blocks[0].x.copy_from_slice(&w.inputs[layer]);
                block.forward(parameters, &mut w.blocks[0], &mut w.x);
                &w.blocks[0]
            } else {
                &w.blocks[layer]
            };
            block.backward(parameters, saved, scratch, gradients, &mut w.dx);
        }
    }

    fn block(&self, layer: usize, size: Size) -> Block<'_, T> {
        Block { config: &self.config, tables: &self.tables, size, layer, precision: self.precision }
    }

    /// The forward pass up to the normed hidden state; keeps activations when `training`.
    fn run(
        &mut self,
        parameters: &Parameters<T>,
        window: Window,
        training: bool,
    ) -> Result<(Workspace<T>, loss::Shape), ModelError> {
        let size = self.check(&window)?;
        let keep_all = training && !self.recompute;
        let mut w = self.take_workspace(size, keep_all);
        embedding::forward(window.inputs, parameters.at(EMBEDDING), &mut w.x, self.config.hidden_size);
        for layer in 0..self.config.num_hidden_layers {
            if training && self.recompute {
                w.inputs[layer].copy_from_slice(&w.x);
            }
            let saved = &mut w.blocks[if keep_all { layer } else { 0 }];
            std::mem::swap(&mut saved.x, &mut w.x);
            self.block(layer, size).forward(parameters, saved, &mut w.x);
        }
        let gain = parameters.at(final_norm(&self.config));
        rms_norm::forward(&w.x, gain, self.config.rms_norm_eps, &mut w.hidden, &mut w.inverse);
        let (inputs, vocabulary) = (self.config.hidden_size, self.config.vocab_size);
        let shape = loss::Shape { rows: size.rows(), inputs, vocabulary, precision: self.precision };
        Ok((w, shape))
    }

    fn check(&self, window: &Window) -> Result<Size, ModelError> {
        let (context, vocabulary) = (self.config.max_position_embeddings, self.config.vocab_size);
        if window.time == 0 || window.inputs.is_empty() {
            return Err(ModelError::Empty);
        }
        if window.time > context {
            return Err(ModelError::TooLong { found: window.time, context });
        }
        let rows = window.inputs.len();
        if !rows.is_multiple_of(window.time) || rows != window.targets.len() {
            return Err(ModelError::Config(format!(
                "{rows} inputs and {} targets are not whole windows of {}",
                window.targets.len(),
                window.time
            )));
        }
        let targets = window.targets.iter().filter(|t| **t != IGNORE);
        match window.inputs.iter().chain(targets).find(|id| **id as usize >= vocabulary) {
            Some(id) => Err(ModelError::Token { id: *id, vocabulary }),
            None => Ok(Size { batch: rows / window.time, time: window.time }),
        }
    }

    /// The kept buffers when they fit, new ones otherwise.
    fn take_workspace(&mut self, size: Size, keep_all: bool) -> Workspace<T> {
        let blocks = if keep_all { self.config.num_hidden_layers } else { 1 };
        if let Some(kept) = self.workspace.take_if(|w| w.size == size && w.blocks.len() >= blocks) {
            return kept;
        }
        let rows = size.rows();
        let wide = || vec![T::ZERO; rows * self.config.hidden_size];
        Workspace {
            size,
            blocks: (0..blocks).map(|_| Activations::new(&self.config, size)).collect(),
            inputs: if self.recompute { (0..self.config.num_hidden_layers).map(|_| wide()).collect() } else { vec![] },
            scratch: None,
            x: wide(),
            dx: wide(),
            hidden: wide(),
            dhidden: wide(),
            inverse: vec![T::ZERO; rows],
        }
    }
}
