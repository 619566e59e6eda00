//! What computes the steps of a training run: the processor here, a device in [`super::device`].

use super::preflight::{preflight, window};
use super::{Checkpoint, TrainError};
use crate::arbiter::Verdict;
use crate::corpus::loader::Batch;
use crate::model::{Config, Decoder, LossSum, Parameters};
use crate::ops::{adamw, gemm_peak, norm};
use crate::recipe::TrainRecipe;
use std::sync::OnceLock;

/// A machine that trains one model. The trainer's checkpoint is where the weights rest; an engine may keep its own
/// and bring them there when [asked](Engine::collect).
pub trait Engine {
    /// The arbiter's verdict on the model as it is, on one batch.
    ///
    /// # Errors
    /// [`TrainError`] when the model cannot be run.
    fn verdict(&mut self, at: &Checkpoint, batch: &Batch) -> Result<Verdict, TrainError>;

    /// The summed loss of the batches of a step, and the global norm of the gradient of its mean.
    ///
    /// # Errors
    /// [`TrainError`] when a batch does not fit the model or the machine refuses.
    fn accumulate(&mut self, at: &Checkpoint, batches: &[Batch]) -> Result<(LossSum, f64), TrainError>;

    /// The gradients of the last step.
    ///
    /// # Errors
    /// [`TrainError`] when the machine refuses.
    fn gradients(&mut self) -> Result<&Parameters<f32>, TrainError>;

    /// One AdamW step on every tensor with the gradients of the last [`Engine::accumulate`], whose norm is given;
    /// matrices decay, gains do not. `at.state.updates` counts it already.
    ///
    /// # Errors
    /// [`TrainError`] when the machine refuses.
    fn update(&mut self, at: &mut Checkpoint, learning_rate: f64, norm: f64) -> Result<(), TrainError>;

    /// The summed loss of a batch.
    ///
    /// # Errors
    /// [`TrainError`] when the batch does not fit the model or the machine refuses.
    fn loss(&mut self, at: &Checkpoint, batch: &Batch) -> Result<LossSum, TrainError>;

    /// Brings weights and moments into the checkpoint.
    ///
    /// # Errors
    /// [`TrainError`] when the machine refuses.
    fn collect(&mut self, at: &mut Checkpoint) -> Result<(), TrainError>;

    /// Operations a second of the machine's matrix products, measured.
    fn peak(&self) -> f64;
}

/// Makes the engine of a run that begins at a checkpoint.
pub type MakeEngine<'a> = dyn Fn(&Config, &TrainRecipe, &Checkpoint) -> Result<Box<dyn Engine>, TrainError> + 'a;

/// The processor.
///
/// # Errors
/// [`TrainError::Model`] when the model's sizes do not fit together.
pub fn processor(config: &Config, recipe: &TrainRecipe, at: &Checkpoint) -> Result<Box<dyn Engine>, TrainError> {
    let decoder = Decoder::new(config.clone(), recipe.recompute)?.with_precision(recipe.precision);
    Ok(Box::new(Processor { decoder, recipe: recipe.clone(), gradients: at.parameters.zeros_like() }))
}

/// Gradients beside the weights of the checkpoint itself.
struct Processor {
    decoder: Decoder<f32>,
    recipe: TrainRecipe,
    gradients: Parameters<f32>,
}

impl Engine for Processor {
    fn verdict(&mut self, at: &Checkpoint, batch: &Batch) -> Result<Verdict, TrainError> {
        preflight(&mut self.decoder, &at.parameters, batch, &self.recipe)
    }

    fn accumulate(&mut self, at: &Checkpoint, batches: &[Batch]) -> Result<(LossSum, f64), TrainError> {
        let scale = scale(batches);
        self.gradients.flat.fill(0.0);
        let mut total = LossSum::default();
        for batch in batches {
            let loss = self.decoder.forward_backward(&at.parameters, window(batch), scale, &mut self.gradients)?;
            total = LossSum { nats: total.nats + loss.nats, tokens: total.tokens + loss.tokens };
        }
        Ok((total, norm::sum_of_squares(&self.gradients.flat).sqrt()))
    }

    fn gradients(&mut self) -> Result<&Parameters<f32>, TrainError> {
        Ok(&self.gradients)
    }

    fn update(&mut self, at: &mut Checkpoint, learning_rate: f64, norm: f64) -> Result<(), TrainError> {
        let recipe = &self.recipe;
        let Checkpoint { state, parameters, first, second } = at;
        for tensor in parameters.tensors().to_vec() {
            let settings = adamw::Settings {
                learning_rate,
                beta1: recipe.beta1,
                beta2: recipe.beta2,
                epsilon: recipe.epsilon,
                weight_decay: if tensor.decay { recipe.weight_decay } else { 0.0 },
                gradient_scale: norm::clip_scale(norm, recipe.clip_norm),
                step: state.updates,
            };
            let gradient = self.gradients.values(&tensor);
            let moments = (first.values_mut(&tensor), second.values_mut(&tensor));
            adamw::step(parameters.values_mut(&tensor), gradient, moments.0, moments.1, &settings);
        }
        Ok(())
    }

    fn loss(&mut self, at: &Checkpoint, batch: &Batch) -> Result<LossSum, TrainError> {
        Ok(self.decoder.loss(&at.parameters, window(batch))?)
    }

    fn collect(&mut self, _: &mut Checkpoint) -> Result<(), TrainError> {
        Ok(())
    }

    /// Measured once in a process.
    fn peak(&self) -> f64 {
        static PEAK: OnceLock<f64> = OnceLock::new();
        *PEAK.get_or_init(gemm_peak)
    }
}

/// 1 over the counted tokens of a step.
pub(super) fn scale(batches: &[Batch]) -> f64 {
    1.0 / batches.iter().map(Batch::counted).sum::<usize>().max(1) as f64
}
