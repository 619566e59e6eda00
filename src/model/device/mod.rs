//! The decoder on a device: the same model as [`crate::model::Decoder`], its numbers in the memory of a
//! [`Backend`], every step a list of launches and matrix products. The host waits for nothing but the loss.
//!
//! Master weights, gradients and moments are f32. With bf16 a copy of the weights, written by the optimizer, is
//! what everything is computed with; products are summed in f32.

mod block;
mod check;
mod layout;
mod step;

pub use check::{Comparison, compare};
pub use layout::{LOGIT_ROWS, Step, device_memory};

use self::block::{Activations, Scratch};
use super::parameters;
use super::{Config, Parameters, Tensor};
use crate::ops::cuda::{self, Backend, Element, Linear, Place};
use crate::recipe::TrainRecipe;
use half::bf16;

/// Constants of an optimizer step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimizer {
    /// η.
    pub learning_rate: f64,
    /// λ, for matrices.
    pub weight_decay: f64,
    /// β₁ and β₂.
    pub betas: [f64; 2],
    /// ε.
    pub epsilon: f64,
    /// Largest global norm of a gradient.
    pub clip_norm: f64,
}

impl Optimizer {
    /// That of a recipe, at one learning rate.
    pub fn of(recipe: &TrainRecipe, learning_rate: f64) -> Self {
        let TrainRecipe { weight_decay, beta1, beta2, epsilon, clip_norm, .. } = *recipe;
        Optimizer { learning_rate, weight_decay, betas: [beta1, beta2], epsilon, clip_norm }
    }
}

/// A model on a device, with everything to train it on micro-batches of one size.
pub struct DeviceDecoder<B: Backend, T: Element> {
    backend: B,
    config: Config,
    step: Step,
    tensors: Vec<Tensor>,
    master: Place<f32>,
    /// What is computed with: the master itself for f32.
    weights: Place<T>,
    copy: Place<bf16>,
    gradients: Place<f32>,
    first: Place<f32>,
    second: Place<f32>,
    /// Inputs of the blocks and, last, of the final norm.
    inputs: Vec<Place<T>>,
    saved: Vec<Activations<T>>,
    scratch: Scratch<T>,
    dx: Place<T>,
    hidden: Place<T>,
    dhidden: Place<T>,
    inverse: Place<f32>,
    logits: Place<T>,
    losses: Place<f32>,
    ids: Place<u32>,
    targets: Place<u32>,
    lists: cuda::PiecePlaces,
    partial: Place<f32>,
    tables: [Place<f32>; 2],
    total: Place<f64>,
    sums: Place<f64>,
    moved: Place<cuda::Step>,
}

impl<B: Backend, T: Element> DeviceDecoder<B, T> {
    /// Brings a model to a device, with room for micro-batches of `step`'s size.
    ///
    /// # Errors
    /// The device's, when its memory is too small.
    ///
    /// # Panics
    /// When the step's width of a number is not `T`'s, or the parameters are of another configuration.
    pub fn new(mut backend: B, config: &Config, parameters: &Parameters<f32>, step: Step) -> Result<Self, B::Error> {
        assert_eq!(step.width, size_of::<T>(), "bytes of a number");
        let (count, rows, d) = (parameters.flat.len(), step.rows(), config.hidden_size);
        assert_eq!(count, Parameters::<f32>::count(config), "numbers of a model");
        let master = backend.place::<f32>(count)?;
        let (weights, copy) = if size_of::<T>() == size_of::<f32>() {
            (Place::new(master.address, count), Place::none())
        } else {
            let copy = backend.place::<bf16>(count)?;
            (Place::new(copy.address, count), copy)
        };
        bring(&mut backend, master, copy, &parameters.flat)?;
        let wide = |backend: &mut B| backend.place::<T>(rows * d);
        let tables = rope_tables(&mut backend, config)?;
        let lists = [rows, rows + 1, rows, rows, step.partial_rows(), step.partial_rows()];
        let mut places = [Place::none(); 6];
        for (place, count) in places.iter_mut().zip(lists) {
            *place = backend.place::<u32>(count)?;
        }
        Ok(DeviceDecoder {
            gradients: backend.place(count)?,
            first: backend.place(count)?,
            second: backend.place(count)?,
            inputs: (0..=config.num_hidden_layers).map(|_| wide(&mut backend)).collect::<Result<_, _>>()?,
            saved: (0..step.sets(config))
                .map(|_| Activations::new(&mut backend, config, rows))
                .collect::<Result<_, _>>()?,
            scratch: Scratch::new(&mut backend, config, rows)?,
            dx: wide(&mut backend)?,
            hidden: wide(&mut backend)?,
            dhidden: wide(&mut backend)?,
            inverse: backend.place(rows)?,
            logits: backend.place(step.logit_rows() * config.vocab_size)?,
            losses: backend.place(rows)?,
            ids: backend.place(rows)?,
            targets: backend.place(rows)?,
            lists: places,
            partial: backend.place(step.partial_rows() * d)?,
            tables,
            total: backend.place(1)?,
            sums: backend.place(cuda::norm_stretches(count))?,
            moved: backend.place(1)?,
            config: config.clone(),
            tensors: parameters.tensors().to_vec(),
            master,
            weights,
            copy,
            step,
            backend,
        })
    }

    /// The machine underneath.
    pub fn backend(&mut self) -> &mut B {
        &mut self.backend
    }

    /// The master weights; waits for them.
    ///
    /// # Errors
    /// The device's.
    pub fn parameters(&mut self) -> Result<Vec<f32>, B::Error> {
        self.backend.get(self.master)
    }

    /// Brings other weights.
    ///
    /// # Errors
    /// The device's.
    pub fn set_parameters(&mut self, parameters: &[f32]) -> Result<(), B::Error> {
        bring(&mut self.backend, self.master, self.copy, parameters)
    }

    /// Brings other weights of one tensor, by its place in [`Parameters::tensors`].
    ///
    /// # Errors
    /// The device's.
    pub fn set_tensor(&mut self, index: usize, values: &[f32]) -> Result<(), B::Error> {
        let Tensor { offset, .. } = self.tensors[index];
        let copy = if self.copy.length == 0 { self.copy } else { self.copy.part(offset, values.len()) };
        bring(&mut self.backend, self.master.part(offset, values.len()), copy, values)
    }

    /// The gradients; waits for them.
    ///
    /// # Errors
    /// The device's.
    pub fn gradients(&mut self) -> Result<Vec<f32>, B::Error> {
        self.backend.get(self.gradients)
    }

    /// First and second moments; waits for them.
    ///
    /// # Errors
    /// The device's.
    pub fn moments(&mut self) -> Result<[Vec<f32>; 2], B::Error> {
        Ok([self.backend.get(self.first)?, self.backend.get(self.second)?])
    }

    /// Brings the moments of an earlier run.
    ///
    /// # Errors
    /// The device's.
    pub fn set_moments(&mut self, moments: [&[f32]; 2]) -> Result<(), B::Error> {
        [self.first, self.second]
            .into_iter()
            .zip(moments)
            .try_for_each(|(place, moment)| self.backend.put(place, moment))
    }

    /// What the last [measure](DeviceDecoder::measure) found: norm and steps taken; waits for it.
    ///
    /// # Errors
    /// The device's.
    pub fn moved(&mut self) -> Result<cuda::Step, B::Error> {
        Ok(self.backend.get(self.moved)?[0])
    }

    /// The sum of all losses since [`DeviceDecoder::begin`], in nats; the one thing a step waits for.
    ///
    /// # Errors
    /// The device's.
    pub fn loss(&mut self) -> Result<f64, B::Error> {
        Ok(self.backend.get(self.total)?[0])
    }

    fn weight(&self, index: usize) -> Place<T> {
        let tensor = &self.tensors[index];
        self.weights.part(tensor.offset, tensor.len())
    }

    fn gradient(&self, index: usize) -> Place<f32> {
        let tensor = &self.tensors[index];
        self.gradients.part(tensor.offset, tensor.len())
    }

    fn linear(&self, index: usize, rows: usize) -> Linear<T> {
        let shape = &self.tensors[index].shape;
        Linear { weights: self.weight(index), rows, inputs: shape[1], outputs: shape[0] }
    }

    fn output(&self) -> usize {
        parameters::output(&self.config)
    }
}

/// Cosines and sines `[positions, half]`.
fn rope_tables<B: Backend>(backend: &mut B, config: &Config) -> Result<[Place<f32>; 2], B::Error> {
    let (half, positions) = (config.head_dim() / 2, config.max_position_embeddings);
    let angle = |i: usize| {
        let frequency = config.rope_theta.powf(-((i % half) as f64) / half as f64);
        (i / half) as f64 * frequency
    };
    let mut tables = [Place::none(); 2];
    for (place, f) in tables.iter_mut().zip([f64::cos, f64::sin]) {
        *place = backend.place(positions * half)?;
        let numbers: Vec<f32> = (0..positions * half).map(|i| f(angle(i)) as f32).collect();
        backend.put(*place, &numbers)?;
    }
    Ok(tables)
}

/// Weights, and their bf16 copy where there is one.
fn bring<B: Backend>(backend: &mut B, master: Place<f32>, copy: Place<bf16>, weights: &[f32]) -> Result<(), B::Error> {
    backend.put(master, weights)?;
    if copy.length == 0 {
        return Ok(());
    }
    let rounded: Vec<bf16> = weights.iter().map(|x| bf16::from_f32(*x)).collect();
    backend.put(copy, &rounded)
}
