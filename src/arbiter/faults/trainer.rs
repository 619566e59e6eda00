//! AdamW over the variables of a small model, with the faults that optimizers have.

use crate::arbiter::Rule;
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use std::collections::BTreeMap;

/// What an optimizer does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepFault {
    /// Leaves a parameter out.
    Omits(&'static str),
    /// Adds where it should subtract.
    Ascends,
    /// Takes this factor times the learning rate for one parameter.
    RateOf(&'static str, f64),
    /// Moves parameters that are held.
    MovesHeld,
    /// Forgets the moments after every step.
    ForgetsMoments,
    /// Leaves the bias correction out.
    NoBiasCorrection,
    /// Gives two parameters of one shape each other's moments.
    SwapsMoments(&'static str, &'static str),
    /// Steps twice on one gradient.
    StepsTwice,
    /// Keeps the moments in bf16.
    RoundsMoments,
    /// Uses the gradient of the step before.
    OldGradient,
    /// Adds the decay to the gradient, as Adam with an L2 penalty.
    CouplesDecay,
    /// Leaves the decay out.
    NoDecay,
    /// Adds 10⁻³ where the rule has ε = 10⁻⁸.
    LargeEpsilon,
    /// Puts a parameter back to where it started after every second step.
    Restores(&'static str),
    /// Hands one parameter the gradient of another of the same shape.
    MixesUp(&'static str, &'static str),
    /// Clips every gradient on its own and not their common norm.
    ClipsEach,
}

/// The rule that the trainer should follow at a learning rate.
pub fn rule(learning_rate: f64) -> Rule {
    Rule::AdamW { learning_rate, beta1: BETA1, beta2: BETA2, epsilon: 1e-8, weight_decay: DECAY }
}

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.99;
const DECAY: f64 = 0.02;

struct State {
    first: Vec<f64>,
    second: Vec<f64>,
    start: Vec<f64>,
    before: Vec<f64>,
}

/// The optimizer with its state.
pub struct Trainer {
    vars: Vec<(String, Var)>,
    held: Vec<String>,
    states: BTreeMap<String, State>,
    steps: i32,
    rate: f64,
    fault: Option<StepFault>,
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

impl Trainer {
    /// For the given variables, of which `held` stay as they are.
    ///
    /// # Errors
    /// What Candle says.
    pub fn new(vars: Vec<(String, Var)>, held: Vec<String>, rate: f64, fault: Option<StepFault>) -> Result<Self> {
        let mut states = BTreeMap::new();
        for (name, var) in &vars {
            let start = numbers(var.as_tensor())?;
            let zeros = vec![0.0; start.len()];
            states.insert(name.clone(), State { first: zeros.clone(), second: zeros.clone(), before: zeros, start });
        }
        Ok(Trainer { vars, held, states, steps: 0, rate, fault })
    }

    /// One step on every variable that has a gradient, as Candle's own optimizers do.
    ///
    /// # Errors
    /// What Candle says.
    pub fn step(&mut self, gradients: &GradStore) -> Result<()> {
        self.steps += 1;
        if let Some(StepFault::SwapsMoments(a, b)) = self.fault.filter(|_| self.steps == 2) {
            self.swap_moments(a, b);
        }
        for (name, var) in self.vars.clone() {
            let held = self.held.contains(&name) && self.fault != Some(StepFault::MovesHeld);
            let source = match self.fault {
                Some(StepFault::MixesUp(to, from)) if to == name => self.var(from).unwrap_or(&var),
                _ => &var,
            };
            if held || self.fault.is_some_and(|f| matches!(f, StepFault::Omits(n) if n == name)) {
                continue;
            }
            let Some(gradient) = gradients.get(source) else { continue };
            let (value, gradient) = (numbers(var.as_tensor())?, numbers(gradient)?);
            let moved = self.moved(&name, value, gradient);
            var.set(&Tensor::from_vec(moved, var.shape(), &Device::Cpu)?.to_dtype(var.dtype())?)?;
        }
        Ok(())
    }

    fn var(&self, name: &str) -> Option<&Var> {
        self.vars.iter().find(|(n, _)| n == name).map(|(_, var)| var)
    }

    fn swap_moments(&mut self, a: &str, b: &str) {
        let (Some(mut x), Some(mut y)) = (self.states.remove(a), self.states.remove(b)) else { return };
        std::mem::swap(&mut x.first, &mut y.first);
        std::mem::swap(&mut x.second, &mut y.second);
        self.states.insert(a.to_owned(), x);
        self.states.insert(b.to_owned(), y);
    }

    fn moved(&mut self, name: &str, value: Vec<f64>, gradient: Vec<f64>) -> Vec<f64> {
        let (fault, steps, base) = (self.fault, self.steps, self.rate);
        let Some(state) = self.states.get_mut(name) else { return value };
        let used = match fault {
            Some(StepFault::OldGradient) if steps > 1 => state.before.clone(),
            Some(StepFault::ClipsEach) => clipped(&gradient, 1e-3),
            _ => gradient.clone(),
        };
        state.before = gradient;
        let rate = match fault {
            Some(StepFault::RateOf(of, factor)) if of == name => base * factor,
            Some(StepFault::Ascends) => -base,
            _ => base,
        };
        let passes = if fault == Some(StepFault::StepsTwice) { 2 } else { 1 };
        let mut value = value;
        for _ in 0..passes {
            value = adamw(state, fault, steps, (base, rate), &value, &used);
        }
        if fault == Some(StepFault::ForgetsMoments) {
            state.first.fill(0.0);
            state.second.fill(0.0);
        }
        let restores = matches!(fault, Some(StepFault::Restores(of)) if of == name);
        if restores && steps % 2 == 0 { state.start.clone() } else { value }
    }
}

fn clipped(gradient: &[f64], limit: f64) -> Vec<f64> {
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    gradient.iter().map(|g| g * (limit / norm).min(1.0)).collect()
}

fn adamw(
    state: &mut State,
    fault: Option<StepFault>,
    steps: i32,
    (base, rate): (f64, f64),
    value: &[f64],
    gradient: &[f64],
) -> Vec<f64> {
    let is = |f: StepFault| fault == Some(f);
    let steps = if is(StepFault::ForgetsMoments) { 1 } else { steps };
    let correction = |beta: f64| if is(StepFault::NoBiasCorrection) { 1.0 } else { 1.0 - beta.powi(steps) };
    let epsilon = if is(StepFault::LargeEpsilon) { 1e-3 } else { 1e-8 };
    let round = |x: f64| if is(StepFault::RoundsMoments) { half::bf16::from_f64(x).to_f64() } else { x };
    let decay = if is(StepFault::NoDecay) || is(StepFault::CouplesDecay) { 0.0 } else { DECAY };
    let mut moved = Vec::with_capacity(value.len());
    for i in 0..value.len() {
        let g = gradient[i] + if is(StepFault::CouplesDecay) { DECAY * value[i] } else { 0.0 };
        state.first[i] = round(BETA1 * state.first[i] + (1.0 - BETA1) * g);
        state.second[i] = round(BETA2 * state.second[i] + (1.0 - BETA2) * g * g);
        let (mean, square) = (state.first[i] / correction(BETA1), state.second[i] / correction(BETA2));
        moved.push(value[i] - base * decay * value[i] - rate * mean / (square.sqrt() + epsilon));
    }
    moved
}
