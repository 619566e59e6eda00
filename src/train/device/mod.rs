//! Training on a device: weights, moments and gradients stay there, and a step waits for its loss and norm alone.

mod probe;

use super::engine::{Engine, scale};
use super::preflight::window;
use super::{Checkpoint, TrainError, learning_rate};
use crate::arbiter::Verdict;
use crate::corpus::loader::Batch;
use crate::model::device::{DeviceDecoder, Optimizer, Step};
use crate::model::{Config, LossSum, Parameters};
use crate::ops::IGNORE;
use crate::ops::cuda::{Backend, Element, Factor, Kind, Product, WIDEST_HEAD};
use crate::recipe::{Precision, TrainRecipe};
use crate::rng::Stream;
use bytemuck::cast_slice;
use half::bf16;
use std::time::Instant;

/// The engine of a run on a machine with memory of its own, in the recipe's precision; `peak` is what its matrix
/// products reach in operations a second.
///
/// # Errors
/// [`TrainError::Device`] when the machine refuses, as when its memory is too small.
pub fn device<B: Backend + 'static>(
    backend: B,
    peak: f64,
    config: &Config,
    recipe: &TrainRecipe,
    at: &Checkpoint,
) -> Result<Box<dyn Engine>, TrainError> {
    Ok(match recipe.precision {
        Precision::F32 => Box::new(OnDevice::<B, f32>::new(backend, peak, config, recipe, at)?),
        Precision::Bf16 => Box::new(OnDevice::<B, bf16>::new(backend, peak, config, recipe, at)?),
    })
}

/// Products that [`measured_peak`] times.
const PRODUCTS: u32 = 8;

/// Operations a second of square products of `side` in a precision, measured.
///
/// # Errors
/// [`TrainError::Device`] when the machine refuses.
pub fn measured_peak<B: Backend>(backend: &mut B, precision: Precision, side: usize) -> Result<f64, TrainError> {
    let (kind, width) = if precision == Precision::Bf16 { (Kind::Bf16, 2) } else { (Kind::F32, 4) };
    let mut place = || backend.allocate(side * side * width).map_err(said::<B>);
    let [left, right, out] = [place()?, place()?, place()?];
    let stream = Stream::new(1, "peak");
    // Zeros would take less power, and the clock would rise.
    let noise: Vec<bf16> =
        (0..side as u64 * width as u64 / 2).map(|i| bf16::from_f32(stream.uniform(i) as f32)).collect();
    for row in 0..side {
        for address in [left, right] {
            backend.write(address + (row * side * width) as u64, cast_slice(&noise)).map_err(said::<B>)?;
        }
    }
    let factor = |address| Factor { address, transposed: false };
    let (left, right, sizes) = (factor(left), factor(right), [side; 3]);
    let product = Product { left, right, out, sizes, input: kind, output: kind, accumulate: false };
    let mut seconds = f64::INFINITY;
    // The first round finds the way to multiply.
    for _ in 0..2 {
        let started = Instant::now();
        (0..PRODUCTS).try_for_each(|_| backend.multiply(&product)).map_err(said::<B>)?;
        backend.read(out, &mut [0; 4]).map_err(said::<B>)?;
        seconds = started.elapsed().as_secs_f64();
    }
    Ok(f64::from(PRODUCTS) * product.flops() / seconds)
}

fn said<B: Backend>(error: B::Error) -> TrainError {
    TrainError::Device(error.to_string())
}

struct OnDevice<B: Backend, T: Element> {
    model: DeviceDecoder<B, T>,
    config: Config,
    recipe: TrainRecipe,
    /// As they were when last asked for.
    gradients: Parameters<f32>,
    peak: f64,
}

impl<B: Backend, T: Element> OnDevice<B, T> {
    fn new(backend: B, peak: f64, config: &Config, recipe: &TrainRecipe, at: &Checkpoint) -> Result<Self, TrainError> {
        let (batch, time, width) = (recipe.batch, config.max_position_embeddings, config.head_dim());
        if width > WIDEST_HEAD {
            let message = format!("the heads have {width} numbers, the kernels take at most {WIDEST_HEAD}");
            return Err(TrainError::Device(message));
        }
        let step = Step { batch, time, recompute: recipe.recompute, width: size_of::<T>() };
        let mut model = DeviceDecoder::new(backend, config, &at.parameters, step).map_err(said::<B>)?;
        model.set_moments([&at.first.flat, &at.second.flat]).map_err(said::<B>)?;
        let gradients = at.parameters.zeros_like();
        Ok(OnDevice { model, config: config.clone(), recipe: recipe.clone(), gradients, peak })
    }

    /// Ids that the model knows, and no more windows than there is room for.
    fn fits(&self, batch: &Batch) -> Result<(), TrainError> {
        let (known, context) = (self.config.vocab_size, self.config.max_position_embeddings);
        let ids = batch.inputs.iter().chain(batch.targets.iter().filter(|id| **id != IGNORE));
        if let Some(id) = ids.copied().find(|id| *id as usize >= known) {
            return Err(TrainError::Device(format!("the text has the token {id}, the model knows {known}")));
        }
        if batch.context != context || batch.batch > self.recipe.batch {
            let (found, room) = ([batch.batch, batch.context], [self.recipe.batch, context]);
            return Err(TrainError::Device(format!("a batch is {found:?} tokens, the device has room for {room:?}")));
        }
        Ok(())
    }

    /// The batch with windows that do not count up to the size there is room for.
    fn whole(&self, batch: &Batch) -> Result<Batch, TrainError> {
        self.fits(batch)?;
        let rows = self.recipe.batch * self.config.max_position_embeddings;
        let mut whole = Batch { batch: self.recipe.batch, ..batch.clone() };
        whole.inputs.resize(rows, 0);
        whole.targets.resize(rows, IGNORE);
        Ok(whole)
    }
}

impl<B: Backend, T: Element> Engine for OnDevice<B, T> {
    fn verdict(&mut self, at: &Checkpoint, batch: &Batch) -> Result<Verdict, TrainError> {
        let batch = self.whole(batch)?;
        probe::verdict(self, at, batch)
    }

    fn accumulate(&mut self, at: &Checkpoint, batches: &[Batch]) -> Result<(LossSum, f64), TrainError> {
        let batches: Vec<Batch> = batches.iter().map(|batch| self.whole(batch)).collect::<Result<_, _>>()?;
        let scale = scale(&batches);
        self.model.begin().map_err(said::<B>)?;
        for batch in &batches {
            self.model.forward_backward(window(batch), scale as f32).map_err(said::<B>)?;
        }
        let optimizer = Optimizer::of(&self.recipe, learning_rate(&self.recipe, at.state.step + 1));
        self.model.measure(&optimizer, at.state.updates).map_err(said::<B>)?;
        let nats = self.model.loss().map_err(said::<B>)?;
        // Found by the same work that the loss waited for.
        let norm = self.model.moved().map_err(said::<B>)?.norm;
        Ok((LossSum { nats, tokens: batches.iter().map(Batch::counted).sum() }, norm))
    }

    fn gradients(&mut self) -> Result<&Parameters<f32>, TrainError> {
        self.gradients.flat = self.model.gradients().map_err(said::<B>)?;
        Ok(&self.gradients)
    }

    /// The device has measured the norm itself.
    fn update(&mut self, _: &mut Checkpoint, learning_rate: f64, _: f64) -> Result<(), TrainError> {
        self.model.apply(&Optimizer::of(&self.recipe, learning_rate)).map_err(said::<B>)
    }

    fn loss(&mut self, _: &Checkpoint, batch: &Batch) -> Result<LossSum, TrainError> {
        let batch = self.whole(batch)?;
        let nats = self.model.evaluate(window(&batch)).map_err(said::<B>)?;
        Ok(LossSum { nats, tokens: batch.counted() })
    }

    fn collect(&mut self, at: &mut Checkpoint) -> Result<(), TrainError> {
        at.parameters.flat = self.model.parameters().map_err(said::<B>)?;
        [at.first.flat, at.second.flat] = self.model.moments().map_err(said::<B>)?;
        Ok(())
    }

    fn peak(&self) -> f64 {
        self.peak
    }
}
