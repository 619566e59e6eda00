//! The model on a device as the arbiter asks it: its own kernels' gradients, losses and steps. Weights and moments are
//! put back afterwards.

use super::OnDevice;
use crate::arbiter::{
    ModelFault, Numbers, Parameter, Precision, Questions, RightSettings, Rule, Subject, Verdict, judge,
};
use crate::corpus::loader::Batch;
use crate::model::Parameters;
use crate::model::device::Optimizer;
use crate::ops::cuda::{Backend, Element};
use crate::train::engine::scale;
use crate::train::preflight::{absent, expectation, window, worth_asking};
use crate::train::{Checkpoint, TrainError, learning_rate};

/// All questions: *right* with products in f32 alone, since a weight that is rounded to bf16 cannot be moved by little.
///
/// # Errors
/// [`TrainError`] when the machine refuses.
pub(super) fn verdict<B: Backend, T: Element>(
    engine: &mut OnDevice<B, T>,
    at: &Checkpoint,
    batch: Batch,
) -> Result<Verdict, TrainError> {
    let right = is_wide::<T>().then_some(RightSettings { directions: 1, tolerance: None });
    let zeros = vec![0.0; at.parameters.flat.len()];
    let said = super::said::<B>;
    engine.model.set_moments([&zeros, &zeros]).map_err(said)?;
    drop(zeros);
    let absent = absent(&engine.config, &batch);
    let mut probe = Probe { engine, parameters: at.parameters.clone(), batch, absent, rate: 0.0 };
    let verdict = judge(&mut probe, &Questions { right, ..Questions::default() }).map_err(TrainError::Arbiter)?;
    engine.model.set_parameters(&at.parameters.flat).map_err(said)?;
    engine.model.set_moments([&at.first.flat, &at.second.flat]).map_err(said)?;
    Ok(verdict)
}

fn is_wide<T>() -> bool {
    size_of::<T>() == size_of::<f32>()
}

struct Probe<'a, B: Backend, T: Element> {
    engine: &'a mut OnDevice<B, T>,
    /// The device's weights, as they were when last asked for.
    parameters: Parameters<f32>,
    batch: Batch,
    /// For an untied embedding, the tokens that do not occur in the batch.
    absent: Option<Vec<bool>>,
    /// Learning rate of the last step.
    rate: f64,
}

impl<B: Backend, T: Element> Probe<'_, B, T> {
    /// As the recipe's, but no gradient is clipped: the arbiter holds the step to the gradient as it is.
    fn optimizer(&self) -> Optimizer {
        Optimizer { clip_norm: f64::from(f32::MAX), ..Optimizer::of(&self.engine.recipe, self.rate) }
    }
}

impl<B: Backend, T: Element> Subject for Probe<'_, B, T> {
    fn parameters(&self) -> Vec<Parameter> {
        let tensors = self.parameters.tensors().iter();
        let parameter = |name: &str, shape: &[usize]| {
            Parameter::new(name, shape.to_vec()).expecting(expectation(self.absent.as_deref(), name))
        };
        tensors.map(|tensor| parameter(&tensor.name, &tensor.shape)).collect()
    }

    fn backward(&mut self) -> Result<f64, ModelFault> {
        let OnDevice { model, gradients, .. } = &mut *self.engine;
        let scale = scale(std::slice::from_ref(&self.batch));
        model.begin()?;
        model.forward_backward(window(&self.batch), scale as f32)?;
        gradients.flat = model.gradients()?;
        self.parameters.flat = model.parameters()?;
        Ok(model.loss()? * scale)
    }

    fn gradient(&self, index: usize) -> Option<Numbers<'_>> {
        let gradients = &self.engine.gradients;
        Some(Numbers::F32(gradients.values(&gradients.tensors()[index])))
    }

    fn value(&self, index: usize) -> Option<Vec<f64>> {
        Some(self.parameters.values(&self.parameters.tensors()[index]).iter().map(|x| f64::from(*x)).collect())
    }

    fn loss_at(&mut self, index: usize, values: &[f64]) -> Option<Result<f64, ModelFault>> {
        let tensor = &self.parameters.tensors()[index];
        if !is_wide::<T>() || !worth_asking(&self.engine.config, &tensor.name) {
            return None;
        }
        let model = &mut self.engine.model;
        let moved: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let mut loss = || {
            model.set_tensor(index, &moved)?;
            let nats = model.evaluate(window(&self.batch));
            model.set_tensor(index, self.parameters.values(tensor))?;
            nats
        };
        Some(loss().map(|nats| nats * scale(std::slice::from_ref(&self.batch))).map_err(Into::into))
    }

    fn loss_precision(&self) -> Precision {
        Precision::F32
    }

    fn step(&mut self, number: usize) -> Option<Result<(), ModelFault>> {
        self.rate = learning_rate(&self.engine.recipe, number as u64 + 1);
        let optimizer = self.optimizer();
        let passed = self.backward();
        let model = &mut self.engine.model;
        let step = || {
            passed?;
            model.measure(&optimizer, number as u64)?;
            model.apply(&optimizer)?;
            self.parameters.flat = model.parameters()?;
            Ok(())
        };
        Some(step())
    }

    fn rule(&self, index: usize) -> Option<Rule> {
        let Optimizer { learning_rate, weight_decay, betas: [beta1, beta2], epsilon, .. } = self.optimizer();
        let weight_decay = if self.parameters.tensors()[index].decay { weight_decay } else { 0.0 };
        Some(Rule::AdamW { learning_rate, beta1, beta2, epsilon, weight_decay })
    }
}
