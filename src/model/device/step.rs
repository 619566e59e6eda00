//! A training step on a device: micro-batches forward and backward, then AdamW.

use super::{DeviceDecoder, Optimizer};
use crate::model::Window;
use crate::model::parameters::{EMBEDDING, final_norm};
use crate::ops::cuda::{self, Backend, Element, Linear, Pieces, Place};

impl<B: Backend, T: Element> DeviceDecoder<B, T> {
    /// Begins a step: gradients and the sum of losses become 0.
    ///
    /// # Errors
    /// The device's.
    pub fn begin(&mut self) -> Result<(), B::Error> {
        self.backend.clear(self.gradients.address, 4 * self.gradients.length)?;
        self.backend.clear(self.total.address, 8)
    }

    /// Adds the losses of a micro-batch to their sum, and their gradients times `scale` to the gradients.
    ///
    /// # Errors
    /// The device's.
    ///
    /// # Panics
    /// When the window has not the size of the step, or an id lies outside the vocabulary.
    pub fn forward_backward(&mut self, window: Window, scale: f32) -> Result<(), B::Error> {
        let (pieces, d) = (Pieces::of(window.inputs), self.config.hidden_size);
        let lists = self.bring(&pieces)?;
        self.forward(window)?;
        self.head(scale)?;
        for layer in (0..self.config.num_hidden_layers).rev() {
            self.block_backward(layer)?;
        }
        let partial = self.partial.part(0, pieces.partial_rows() * d);
        let dtable = self.gradient(EMBEDDING);
        self.backend.run(cuda::embedding_backward(lists, self.dx, dtable, partial, d))
    }

    /// Brings ids and targets and runs all blocks.
    fn forward(&mut self, window: Window) -> Result<(), B::Error> {
        let rows = self.step.rows();
        assert_eq!((window.inputs.len(), window.targets.len(), window.time), (rows, rows, self.step.time), "a window");
        assert!(window.inputs.iter().all(|id| (*id as usize) < self.config.vocab_size), "ids of a window");
        self.backend.put(self.ids, window.inputs)?;
        self.backend.put(self.targets, window.targets)?;
        let (table, d) = (self.weight(EMBEDDING), self.config.hidden_size);
        self.backend.launch(&cuda::embedding_forward(self.ids, table, self.inputs[0], d))?;
        (0..self.config.num_hidden_layers).try_for_each(|layer| self.block_forward(layer, true))
    }

    /// The order of the embedding's additions.
    fn bring(&mut self, pieces: &Pieces) -> Result<cuda::PiecePlaces, B::Error> {
        let Pieces { order, starts, rows, slots, split_starts, split_rows } = pieces;
        let mut places = self.lists;
        for (place, list) in places.iter_mut().zip([order, starts, rows, slots, split_starts, split_rows]) {
            self.backend.put(*place, list)?;
            *place = place.part(0, list.len());
        }
        Ok(places)
    }

    /// The final norm and the loss, forward and backward, down to the gradient of the last block's output.
    fn head(&mut self, scale: f32) -> Result<(), B::Error> {
        let (d, rows) = (self.config.hidden_size, self.step.rows());
        let norm = final_norm(&self.config);
        let (gain, dgain) = (self.weight(norm), self.gradient(norm));
        let last = self.inputs[self.config.num_hidden_layers];
        let (epsilon, hidden, dhidden) = (self.config.rms_norm_eps as f32, self.hidden, self.dhidden);
        self.backend.launch(&cuda::rms_norm_forward(last, gain, epsilon, hidden, self.inverse))?;
        let dw = self.gradient(self.output());
        for start in (0..rows).step_by(self.step.logit_rows()) {
            let (linear, logits) = self.logits(start, scale)?;
            let [x, dx] = [hidden, dhidden].map(|place| place.part(start * d, linear.rows * d));
            self.backend.multiply(&linear.backward_input(logits, dx, false))?;
            self.backend.multiply(&linear.backward_weight(logits, x, dw))?;
        }
        self.backend.launch(&cuda::cross_entropy_total(self.losses, self.total))?;
        self.backend.clear(self.dx.address, self.dx.length * size_of::<T>())?;
        let shares = self.scratch.shares;
        self.backend.run(cuda::rms_norm_backward([last, gain, dhidden, self.dx], [self.inverse, shares, dgain]))
    }

    /// The losses of the rows from `start` on, as many as there are logits for, and the gradients of those logits.
    fn logits(&mut self, start: usize, scale: f32) -> Result<(Linear<T>, Place<T>), B::Error> {
        let (d, count) = (self.config.hidden_size, self.step.logit_rows().min(self.step.rows() - start));
        let linear: Linear<T> = self.linear(self.output(), count);
        let logits = self.logits.part(0, count * self.config.vocab_size);
        let (targets, losses) = (self.targets.part(start, count), self.losses.part(start, count));
        self.backend.multiply(&linear.forward(self.hidden.part(start * d, count * d), logits, false))?;
        self.backend.launch(&cuda::cross_entropy::<T, T>(logits, targets, losses, logits, scale))?;
        Ok((linear, logits))
    }

    /// The summed loss of a micro-batch in nats, without gradients; waits for it. Ends a step that was begun.
    ///
    /// # Errors
    /// The device's.
    ///
    /// # Panics
    /// As [`DeviceDecoder::forward_backward`].
    pub fn evaluate(&mut self, window: Window) -> Result<f64, B::Error> {
        self.backend.clear(self.total.address, 8)?;
        self.forward(window)?;
        let norm = final_norm(&self.config);
        let (last, epsilon) = (self.inputs[self.config.num_hidden_layers], self.config.rms_norm_eps as f32);
        self.backend.launch(&cuda::rms_norm_forward(last, self.weight(norm), epsilon, self.hidden, self.inverse))?;
        for start in (0..self.step.rows()).step_by(self.step.logit_rows()) {
            self.logits(start, 0.0)?;
        }
        self.backend.launch(&cuda::cross_entropy_total(self.losses, self.total))?;
        self.loss()
    }

    /// The norm of the gradients, and from it what [`DeviceDecoder::apply`] is to do after `taken` steps before it.
    ///
    /// # Errors
    /// The device's.
    pub fn measure(&mut self, optimizer: &Optimizer, taken: u64) -> Result<(), B::Error> {
        self.backend.put(self.moved, &[cuda::Step { taken, ..cuda::Step::default() }])?;
        let Optimizer { betas, clip_norm, .. } = *optimizer;
        self.backend.run(cuda::norm(self.gradients, self.sums, self.moved, clip_norm, betas))
    }

    /// One AdamW step on every tensor, as it was measured; matrices decay, gains do not. A gradient that is not finite
    /// moves nothing.
    ///
    /// # Errors
    /// The device's.
    pub fn apply(&mut self, optimizer: &Optimizer) -> Result<(), B::Error> {
        let Optimizer { learning_rate, weight_decay, betas, epsilon, .. } = *optimizer;
        let pair = |beta: f64| [beta as f32, (1.0 - beta) as f32];
        for tensor in &self.tensors {
            let settings = cuda::Settings {
                rate: learning_rate as f32,
                keep: (1.0 - learning_rate * if tensor.decay { weight_decay } else { 0.0 }) as f32,
                beta1: pair(betas[0]),
                beta2: pair(betas[1]),
                epsilon: epsilon as f32,
            };
            let part = |place: Place<f32>| place.part(tensor.offset, tensor.len());
            let copy = if self.copy.length == 0 { self.copy } else { self.copy.part(tensor.offset, tensor.len()) };
            let moved = [part(self.master), part(self.first), part(self.second)];
            let launch = cuda::adamw(moved, part(self.gradients), copy, self.moved, settings);
            self.backend.launch(&launch)?;
        }
        Ok(())
    }
}
