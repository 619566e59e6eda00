//! A small model on a device against the same model of the processor in f64: loss, every gradient, a step.

use super::{DeviceDecoder, Optimizer, Step};
use crate::model::{Config, Decoder, Parameters, Window, initialise};
use crate::ops::cuda::{Backend, Element};
use crate::ops::{IGNORE, adamw, norm};
use crate::rng::Stream;
use std::collections::BTreeMap;

/// How far a device is from f64.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// |a − b| / |b| of the loss.
    pub loss: f64,
    /// ‖a − b‖ / ‖b‖ of the gradient of each tensor.
    pub gradients: BTreeMap<String, f64>,
    /// ‖a − b‖ / ‖b‖ of what a step of AdamW adds to all weights.
    pub update: f64,
}

impl Comparison {
    /// The tensor that is farthest off.
    pub fn worst(&self) -> (&str, f64) {
        let worst = self.gradients.iter().max_by(|a, b| a.1.total_cmp(b.1));
        worst.map_or(("none", 0.0), |(name, error)| (name.as_str(), *error))
    }
}

/// Micro-batches of the comparison.
const BATCHES: u64 = 2;

const OPTIMIZER: Optimizer = Optimizer {
    learning_rate: 1e-2,
    weight_decay: 0.1,
    betas: [0.9, 0.95],
    // Large: a step of AdamW is the sign of the gradient where ε is small, whatever its rounding.
    epsilon: 1e-3,
    clip_norm: 0.5,
};

/// Compares a device with f64 on a model of one configuration.
///
/// # Errors
/// The machine's refusal, in words.
pub fn compare<B: Backend, T: Element>(backend: B, config: &Config, step: Step) -> Result<Comparison, String> {
    let said = |e: B::Error| e.to_string();
    let mut parameters: Parameters<f32> = initialise(config, 3);
    if step.width == 2 {
        // What the device computes with, so that the difference is that of the computation.
        parameters.flat.iter_mut().for_each(|x| *x = half::bf16::from_f32(*x).to_f32());
    }
    let mut exact: Parameters<f64> = parameters.cast();
    let mut decoder = Decoder::<f64>::new(config.clone(), false).map_err(|e| e.to_string())?;
    let mut device = DeviceDecoder::<B, T>::new(backend, config, &parameters, step).map_err(said)?;
    let (mut gradients, mut nats) = (exact.zeros_like(), 0.0);
    let scale = 1.0 / (BATCHES as f64 * step.rows() as f64);
    device.begin().map_err(said)?;
    for n in 0..BATCHES {
        let (inputs, targets) = batch(config, &step, n);
        let window = Window { inputs: &inputs, targets: &targets, time: step.time };
        let loss = decoder.forward_backward(&exact, window, scale, &mut gradients).map_err(|e| e.to_string())?;
        nats += loss.nats;
        device.forward_backward(window, scale as f32).map_err(said)?;
    }
    let found = device.gradients().map_err(said)?;
    let mut errors = BTreeMap::new();
    for tensor in exact.tensors() {
        let range = tensor.offset..tensor.offset + tensor.len();
        let pairs = found[range.clone()].iter().map(|x| f64::from(*x)).zip(gradients.flat[range].iter().copied());
        errors.insert(tensor.name.clone(), distance(pairs));
    }
    let loss = (device.loss().map_err(said)? - nats).abs() / nats;
    device.measure(&OPTIMIZER, 0).and_then(|()| device.apply(&OPTIMIZER)).map_err(said)?;
    let moved = device.parameters().map_err(said)?;
    update(&mut exact, &gradients);
    let before = parameters.flat.iter().map(|x| f64::from(*x));
    let pairs = moved.iter().zip(&exact.flat).zip(before).map(|((a, b), x)| (f64::from(*a) - x, b - x));
    Ok(Comparison { loss, gradients: errors, update: distance(pairs) })
}

/// Tokens with some repeated often and some targets that do not count.
fn batch(config: &Config, step: &Step, n: u64) -> (Vec<u32>, Vec<u32>) {
    let stream = Stream::new(n, "device check");
    let count = step.rows() as u64;
    let token = |i: u64| {
        let drawn = stream.below(i, config.vocab_size as u64);
        if drawn.is_multiple_of(3) { 1 } else { drawn as u32 }
    };
    let target = |i: u64| if i.is_multiple_of(7) { IGNORE } else { token(i + 1) };
    ((0..count).map(token).collect(), (0..count).map(target).collect())
}

fn update(parameters: &mut Parameters<f64>, gradients: &Parameters<f64>) {
    let norm = norm::sum_of_squares(&gradients.flat).sqrt();
    let (mut first, mut second) = (parameters.zeros_like(), parameters.zeros_like());
    for tensor in parameters.tensors().to_vec() {
        let settings = adamw::Settings {
            learning_rate: OPTIMIZER.learning_rate,
            beta1: OPTIMIZER.betas[0],
            beta2: OPTIMIZER.betas[1],
            epsilon: OPTIMIZER.epsilon,
            weight_decay: if tensor.decay { OPTIMIZER.weight_decay } else { 0.0 },
            gradient_scale: norm::clip_scale(norm, OPTIMIZER.clip_norm),
            step: 1,
        };
        let moments = (first.values_mut(&tensor), second.values_mut(&tensor));
        adamw::step(parameters.values_mut(&tensor), gradients.values(&tensor), moments.0, moments.1, &settings);
    }
}

fn distance(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (apart, size) = pairs.fold((0.0, 0.0), |(x, y), (a, b)| (x + (a - b) * (a - b), y + b * b));
    (apart / f64::max(size, 1e-20)).sqrt()
}
