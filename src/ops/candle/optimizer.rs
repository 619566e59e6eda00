//! AdamW over Candle's variables, in place and in one pass over memory; see [`crate::ops::adamw`].
//!
//! A bf16 variable has an f32 master copy: a step of 10⁻⁴ is below its last place and would be lost.

use super::{Number, numbers};
use crate::ops::adamw::{self, Settings as Step};
use crate::ops::norm::{clip_scale, sum_of_squares};
use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, DType, Device, InplaceOp2, Layout, Result, Storage, Tensor, Var, bail};
use half::bf16;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

/// The constants of all steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// β₁.
    pub beta1: f64,
    /// β₂.
    pub beta2: f64,
    /// ε.
    pub epsilon: f64,
    /// λ of the variables that decay.
    pub weight_decay: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weight_decay: 0.1 }
    }
}

/// The usual decay group: matrices decay, gains and biases do not.
pub fn matrices_decay(_name: &str, variable: &Tensor) -> bool {
    variable.rank() >= 2
}

#[derive(Debug)]
struct Moments<T> {
    first: Vec<T>,
    second: Vec<T>,
}

impl<T: Number> Moments<T> {
    fn new(count: usize) -> Self {
        Moments { first: vec![T::ZERO; count], second: vec![T::ZERO; count] }
    }
    fn step(&mut self, parameter: &mut [T], gradient: &[T], step: &Step) {
        adamw::step(parameter, gradient, &mut self.first, &mut self.second, step);
    }
}

#[derive(Debug)]
enum State {
    F32(Moments<f32>),
    F64(Moments<f64>),
    Bf16 { master: Vec<f32>, moments: Moments<f32> },
}

#[derive(Debug)]
struct Slot {
    name: String,
    variable: Var,
    decays: bool,
    state: State,
}

/// The op that writes into the variable's own memory.
struct InPlace<'a> {
    state: RefCell<&'a mut State>,
    step: Step,
}

impl InplaceOp2 for InPlace<'_> {
    fn name(&self) -> &'static str {
        "shikha-adamw"
    }
    fn cpu_fwd(&self, to: &mut CpuStorage, layout: &Layout, g: &CpuStorage, gl: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else { bail!("a variable is not contiguous") };
        match (to, &mut **self.state.borrow_mut()) {
            (CpuStorage::F32(to), State::F32(moments)) => {
                moments.step(&mut to[start..end], numbers(self.name(), g, gl)?, &self.step);
            }
            (CpuStorage::F64(to), State::F64(moments)) => {
                moments.step(&mut to[start..end], numbers(self.name(), g, gl)?, &self.step);
            }
            (CpuStorage::BF16(to), State::Bf16 { master, moments }) => {
                moments.step(master, numbers(self.name(), g, gl)?, &self.step);
                to[start..end].iter_mut().zip(master).for_each(|(to, from)| *to = bf16::from_f32(*from));
            }
            _ => bail!("{}: the dtype of a variable has changed", self.name()),
        }
        Ok(())
    }
}

/// AdamW over named variables.
#[derive(Debug)]
pub struct AdamW {
    slots: Vec<Slot>,
    settings: Settings,
    steps: u64,
}

impl AdamW {
    /// An optimizer at step 0; `decays` tells of each name and value whether the variable decays, for
    /// example [`matrices_decay`].
    ///
    /// # Errors
    /// When a name occurs twice or a variable is not contiguous f32, f64 or bf16 on the CPU.
    pub fn new(
        variables: Vec<(String, Var)>,
        settings: Settings,
        decays: impl Fn(&str, &Tensor) -> bool,
    ) -> Result<Self> {
        let mut names = BTreeSet::new();
        let mut slots = Vec::with_capacity(variables.len());
        for (name, variable) in variables {
            if !names.insert(name.clone()) {
                bail!("AdamW: two variables are called {name}; give each a name of its own");
            }
            if !variable.is_contiguous() || !variable.device().is_cpu() {
                bail!("AdamW: {name} must be contiguous and on the CPU");
            }
            let count = variable.elem_count();
            let state = match variable.dtype() {
                DType::F32 => State::F32(Moments::new(count)),
                DType::F64 => State::F64(Moments::new(count)),
                DType::BF16 => {
                    let master = variable.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
                    State::Bf16 { master, moments: Moments::new(count) }
                }
                other => bail!("AdamW: {name} is {other:?}; only f32, f64 and bf16 are supported"),
            };
            let decays = decays(&name, &variable);
            slots.push(Slot { name, variable, decays, state });
        }
        Ok(AdamW { slots, settings, steps: 0 })
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Moves every variable by one step.
    ///
    /// # Errors
    /// When a variable has no gradient (nothing is moved then; the message names it) or its gradient
    /// does not fit.
    pub fn step(&mut self, gradients: &GradStore, learning_rate: f64) -> Result<()> {
        let gradients = self.gradients(gradients)?;
        self.apply(&gradients, learning_rate, 1.0)
    }

    /// As [`AdamW::step`] with the gradients' global norm clipped to `limit` on the way, without copies;
    /// gives the norm before clipping.
    ///
    /// # Errors
    /// As [`AdamW::step`], and when the norm is not finite.
    pub fn step_clipped(&mut self, gradients: &GradStore, learning_rate: f64, limit: f64) -> Result<f64> {
        let gradients = self.gradients(gradients)?;
        let norm = global_norm(&gradients)?;
        self.apply(&gradients, learning_rate, clip_scale(norm, limit))?;
        Ok(norm)
    }

    /// The gradient of each variable, as its kernel reads it.
    fn gradients(&self, gradients: &GradStore) -> Result<Vec<Tensor>> {
        let of = |slot: &Slot| {
            let Some(gradient) = gradients.get(&slot.variable) else {
                bail!("AdamW: {} has no gradient: some op between it and the loss cuts it off", slot.name);
            };
            if gradient.dims() != slot.variable.dims() {
                bail!("AdamW: {} is {:?} but its gradient {:?}", slot.name, slot.variable.dims(), gradient.dims());
            }
            let dtype = if slot.variable.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
            gradient.to_dtype(dtype)?.contiguous()
        };
        self.slots.iter().map(of).collect()
    }

    fn apply(&mut self, gradients: &[Tensor], learning_rate: f64, gradient_scale: f64) -> Result<()> {
        if !(learning_rate.is_finite() && learning_rate >= 0.0) {
            bail!("AdamW: the learning rate {learning_rate} must be a number of at least 0");
        }
        self.steps += 1;
        let Settings { beta1, beta2, epsilon, weight_decay } = self.settings;
        for (slot, gradient) in self.slots.iter_mut().zip(gradients) {
            let weight_decay = if slot.decays { weight_decay } else { 0.0 };
            let step = self.steps;
            let step = Step { learning_rate, beta1, beta2, epsilon, weight_decay, gradient_scale, step };
            slot.variable.inplace_op2(gradient, &InPlace { state: RefCell::new(&mut slot.state), step })?;
        }
        Ok(())
    }

    /// Everything a later run needs: `NAME.first` and `NAME.second` for each variable, `NAME.master` in f32
    /// for a bf16 one, and `step`.
    ///
    /// # Errors
    /// When a tensor cannot be made.
    pub fn state(&self) -> Result<HashMap<String, Tensor>> {
        fn put<T: Number>(to: &mut HashMap<String, Tensor>, slot: &Slot, part: &str, values: &[T]) -> Result<()> {
            let tensor = Tensor::from_slice(values, slot.variable.shape(), &Device::Cpu)?;
            to.insert(format!("{}.{part}", slot.name), tensor);
            Ok(())
        }
        fn both<T: Number>(to: &mut HashMap<String, Tensor>, slot: &Slot, moments: &Moments<T>) -> Result<()> {
            put(to, slot, "first", &moments.first)?;
            put(to, slot, "second", &moments.second)
        }
        let mut found = HashMap::from([("step".to_owned(), Tensor::new(self.steps as i64, &Device::Cpu)?)]);
        for slot in &self.slots {
            match &slot.state {
                State::F32(moments) => both(&mut found, slot, moments)?,
                State::F64(moments) => both(&mut found, slot, moments)?,
                State::Bf16 { master, moments } => {
                    both(&mut found, slot, moments)?;
                    put(&mut found, slot, "master", master)?;
                }
            }
        }
        Ok(found)
    }

    /// Continues from what [`AdamW::state`] gave. A bf16 variable is set from its master; the others keep
    /// their values, which the caller restores.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape or dtype; nothing has changed then.
    pub fn load_state(&mut self, state: &HashMap<String, Tensor>) -> Result<()> {
        let Some(step) = state.get("step") else { bail!("AdamW: the state has no step") };
        let steps = u64::try_from(step.to_scalar::<i64>()?).map_err(candle_core::Error::wrap)?;
        let loaded = self.slots.iter().map(|slot| slot.loaded(state)).collect::<Result<Vec<State>>>()?;
        for (slot, loaded) in self.slots.iter_mut().zip(loaded) {
            if let State::Bf16 { master, .. } = &loaded {
                let values = Tensor::from_slice(master, slot.variable.shape(), &Device::Cpu)?;
                slot.variable.set(&values.to_dtype(DType::BF16)?)?;
            }
            slot.state = loaded;
        }
        self.steps = steps;
        Ok(())
    }
}

impl Slot {
    fn loaded(&self, state: &HashMap<String, Tensor>) -> Result<State> {
        Ok(match self.state {
            State::F32(_) => State::F32(self.moments(state)?),
            State::F64(_) => State::F64(self.moments(state)?),
            State::Bf16 { .. } => State::Bf16 { master: self.part(state, "master")?, moments: self.moments(state)? },
        })
    }

    fn moments<T: Number>(&self, state: &HashMap<String, Tensor>) -> Result<Moments<T>> {
        Ok(Moments { first: self.part(state, "first")?, second: self.part(state, "second")? })
    }

    fn part<T: Number>(&self, state: &HashMap<String, Tensor>, part: &str) -> Result<Vec<T>> {
        let name = format!("{}.{part}", self.name);
        match state.get(&name) {
            Some(tensor) if tensor.dims() == self.variable.dims() => tensor.flatten_all()?.to_vec1(),
            Some(tensor) => bail!("AdamW: {name} is {:?} but must be {:?}", tensor.dims(), self.variable.dims()),
            None => bail!("AdamW: the state has no {name}"),
        }
    }
}

/// √Σ x² over all tensors.
fn global_norm(gradients: &[Tensor]) -> Result<f64> {
    let mut sum = 0.0;
    for gradient in gradients {
        let gradient = match gradient.dtype() {
            DType::F64 => gradient.contiguous()?,
            _ => gradient.to_dtype(DType::F32)?.contiguous()?,
        };
        let (storage, layout) = gradient.storage_and_layout();
        sum += match &*storage {
            Storage::Cpu(storage @ CpuStorage::F64(_)) => sum_of_squares::<f64>(numbers("norm", storage, layout)?),
            Storage::Cpu(storage) => sum_of_squares::<f32>(numbers("norm", storage, layout)?),
            _ => bail!("norm of gradients: only the CPU is supported"),
        };
    }
    if !f64::is_finite(sum) {
        bail!("the norm of the gradients is {sum}: a gradient is infinite or not a number");
    }
    Ok(sum.sqrt())
}

/// Scales the gradients of `variables` so that their global norm is at most `limit`, for any optimizer;
/// gives the norm before. [`AdamW::step_clipped`] does it without making new tensors.
///
/// # Errors
/// When a variable has no gradient or the norm is not finite.
pub fn clip_by_global_norm(gradients: &mut GradStore, variables: &[Var], limit: f64) -> Result<f64> {
    let of = |(i, variable): (usize, &Var)| match gradients.get(variable) {
        Some(gradient) => Ok(gradient.clone()),
        None => bail!("clip_by_global_norm: variable {i} of shape {:?} has no gradient", variable.dims()),
    };
    let found = variables.iter().enumerate().map(of).collect::<Result<Vec<Tensor>>>()?;
    let norm = global_norm(&found)?;
    if norm > limit {
        for (variable, gradient) in variables.iter().zip(found) {
            gradients.insert(variable, gradient.affine(clip_scale(norm, limit), 0.0)?);
        }
    }
    Ok(norm)
}
