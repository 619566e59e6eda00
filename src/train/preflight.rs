//! Before the first step: the arbiter looks at every gradient of one batch.

use super::{TrainError, learning_rate};
use crate::arbiter::{Expectation, ModelFault, Numbers, Parameter, Questions, RightSettings};
use crate::arbiter::{Rule, Subject, Verdict, judge};
use crate::artifact::write_atomic;
use crate::corpus::loader::Batch;
use crate::model::{Config, Decoder, ModelError, Parameters, Window};
use crate::ops::adamw;
use crate::recipe::TrainRecipe;
use std::path::Path;

/// Parameters up to which the questions that need copies of the model and many passes are asked.
const FULL_UP_TO: usize = 50_000_000;
/// Positions of the probe for finite differences, which are computed in f64.
const PROBE: usize = 64;

/// The model in f32 on one batch, with its f64 twin for finite differences.
struct Probe<'a> {
    decoder: &'a mut Decoder<f32>,
    parameters: Parameters<f32>,
    gradients: Parameters<f32>,
    batch: &'a Batch,
    /// For an untied embedding, the tokens that do not occur in the batch.
    absent: Option<Vec<bool>>,
    exact: Option<Exact>,
    optimizer: Option<Optimizer<'a>>,
}

/// The twin in f64.
struct Exact {
    decoder: Decoder<f64>,
    parameters: Parameters<f64>,
}

/// AdamW as the trainer runs it, at the rates of the recipe's first steps.
struct Optimizer<'a> {
    recipe: &'a TrainRecipe,
    settings: adamw::Settings,
    first: Parameters<f32>,
    second: Parameters<f32>,
}

impl Subject for Probe<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        let expected = |name: &str| expectation(self.absent.as_deref(), name);
        let tensors = self.parameters.tensors().iter();
        tensors.map(|t| Parameter::new(&t.name, t.shape.clone()).expecting(expected(&t.name))).collect()
    }

    fn backward(&mut self) -> Result<f64, ModelFault> {
        self.gradients.flat.fill(0.0);
        let scale = 1.0 / self.batch.counted().max(1) as f64;
        let window = window(self.batch);
        Ok(self.decoder.forward_backward(&self.parameters, window, scale, &mut self.gradients)?.mean())
    }

    fn gradient(&self, index: usize) -> Option<Numbers<'_>> {
        Some(Numbers::F32(self.gradients.values(&self.gradients.tensors()[index])))
    }

    fn value(&self, index: usize) -> Option<Vec<f64>> {
        self.exact.as_ref()?;
        Some(self.parameters.values(&self.parameters.tensors()[index]).iter().map(|x| f64::from(*x)).collect())
    }

    fn loss_at(&mut self, index: usize, values: &[f64]) -> Option<Result<f64, ModelFault>> {
        let Exact { decoder, parameters } = self.exact.as_mut()?;
        let tensor = parameters.tensors()[index].clone();
        if !worth_asking(decoder.config(), &tensor.name) {
            return None;
        }
        let kept = parameters.values(&tensor).to_vec();
        parameters.values_mut(&tensor).copy_from_slice(values);
        let loss = decoder.loss(parameters, window(self.batch));
        parameters.values_mut(&tensor).copy_from_slice(&kept);
        Some(loss.map(|sum| sum.mean()).map_err(Into::into))
    }

    fn step(&mut self, number: usize) -> Option<Result<(), ModelFault>> {
        self.optimizer.as_ref()?;
        let result = self.backward();
        let optimizer = self.optimizer.as_mut()?;
        let step = number as u64 + 1;
        optimizer.settings.learning_rate = learning_rate(optimizer.recipe, step);
        let settings = adamw::Settings { step, ..optimizer.settings };
        for tensor in self.parameters.tensors().to_vec() {
            let moments = (optimizer.first.values_mut(&tensor), optimizer.second.values_mut(&tensor));
            let weight_decay = if tensor.decay { settings.weight_decay } else { 0.0 };
            let settings = adamw::Settings { weight_decay, ..settings };
            let gradient = self.gradients.values(&tensor);
            adamw::step(self.parameters.values_mut(&tensor), gradient, moments.0, moments.1, &settings);
        }
        Some(result.map(|_| ()))
    }

    fn rule(&self, index: usize) -> Option<Rule> {
        let adamw::Settings { learning_rate, beta1, beta2, epsilon, weight_decay, .. } =
            self.optimizer.as_ref()?.settings;
        let decay = self.parameters.tensors()[index].decay;
        Some(Rule::AdamW { learning_rate, beta1, beta2, epsilon, weight_decay: if decay { weight_decay } else { 0.0 } })
    }
}

pub(super) fn window(batch: &Batch) -> Window<'_> {
    Window { inputs: &batch.inputs, targets: &batch.targets, time: batch.context }
}

/// For an untied embedding, the tokens that do not occur in the batch.
pub(super) fn absent(config: &Config, batch: &Batch) -> Option<Vec<bool>> {
    if config.tie_word_embeddings {
        return None;
    }
    let mut absent = vec![true; config.vocab_size];
    for id in &batch.inputs {
        if let Some(absent) = absent.get_mut(*id as usize) {
            *absent = false;
        }
    }
    Some(absent)
}

/// What the gradient of a parameter must look like, when the rows of these tokens cannot have one.
pub(super) fn expectation(absent: Option<&[bool]>, name: &str) -> Expectation {
    match absent {
        Some(absent) if name.contains("embed_tokens") => Expectation::ZeroRows(absent.to_vec()),
        _ => Expectation::Trainable,
    }
}

/// All blocks run the same code, so of a larger model the first and the last stand for the rest.
pub(super) fn worth_asking(config: &Config, name: &str) -> bool {
    let last = config.num_hidden_layers.saturating_sub(1);
    let block = |layer: usize| name.starts_with(&format!("model.layers.{layer}."));
    !name.starts_with("model.layers.") || block(0) || block(last)
}

/// The first windows of a batch, at least one, of about [`PROBE`] positions in all.
fn first_windows(batch: &Batch) -> Batch {
    let windows = (PROBE / batch.context.max(1)).clamp(1, batch.batch.max(1));
    let until = (windows * batch.context).min(batch.inputs.len());
    let (inputs, targets) = (batch.inputs[..until].to_vec(), batch.targets[..until].to_vec());
    Batch { inputs, targets, batch: windows, context: batch.context }
}

/// The arbiter's verdict on a model, its trainer's optimizer included: on the first windows of `batch`
/// up to 50 million parameters, beyond that on one backward pass alone.
///
/// # Errors
/// [`TrainError::Arbiter`] when the batch does not fit the model.
pub fn preflight(
    decoder: &mut Decoder<f32>,
    parameters: &Parameters<f32>,
    batch: &Batch,
    recipe: &TrainRecipe,
) -> Result<Verdict, TrainError> {
    let config = decoder.config().clone();
    let full = parameters.flat.len() <= FULL_UP_TO;
    let batch = if full { first_windows(batch) } else { batch.clone() };
    let absent = absent(&config, &batch);
    let exact = if full { Some(exact(&config, parameters)?) } else { None };
    let optimizer = full.then(|| optimizer(parameters, recipe));
    let gradients = parameters.zeros_like();
    let parameters = parameters.clone();
    let mut probe = Probe { decoder, parameters, gradients, batch: &batch, absent, exact, optimizer };
    let questions = if full {
        Questions { right: Some(RightSettings { directions: 1, tolerance: None }), ..Questions::default() }
    } else {
        Questions::presence_only()
    };
    judge(&mut probe, &questions).map_err(TrainError::Arbiter)
}

fn exact(config: &Config, parameters: &Parameters<f32>) -> Result<Exact, ModelError> {
    Ok(Exact { decoder: Decoder::new(config.clone(), false)?, parameters: parameters.cast() })
}

fn optimizer<'a>(parameters: &Parameters<f32>, recipe: &'a TrainRecipe) -> Optimizer<'a> {
    let settings = adamw::Settings {
        learning_rate: recipe.learning_rate,
        beta1: recipe.beta1,
        beta2: recipe.beta2,
        epsilon: recipe.epsilon,
        weight_decay: recipe.weight_decay,
        gradient_scale: 1.0,
        step: 1,
    };
    Optimizer { recipe, settings, first: parameters.zeros_like(), second: parameters.zeros_like() }
}

/// Writes the verdict, and refuses to start when it names a parameter.
pub(super) fn require(verdict: &Verdict, path: &Path) -> Result<(), TrainError> {
    let mut text = serde_json::to_vec_pretty(verdict).unwrap_or_else(|e| unreachable!("a verdict is plain data: {e}"));
    text.push(b'\n');
    write_atomic(path, &text)?;
    if verdict.passed() {
        return Ok(());
    }
    let findings = verdict.findings.iter().map(|f| format!("`{}` {}", f.parameter, f.evidence)).collect();
    Err(TrainError::Preflight { findings, report: path.to_path_buf() })
}
