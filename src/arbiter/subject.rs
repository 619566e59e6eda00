//! What an adapter gives the arbiter.

use super::{Parameter, Precision, Rule};

/// An error of the model under test, in its own words.
pub type ModelFault = Box<dyn std::error::Error + Send + Sync>;

/// Numbers in the type they were computed in.
#[derive(Debug, Clone, Copy)]
pub enum Numbers<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision, or any narrower type widened.
    F64(&'a [f64]),
}

impl Numbers<'_> {
    /// Numbers in it.
    pub fn len(&self) -> usize {
        match self {
            Numbers::F32(x) => x.len(),
            Numbers::F64(x) => x.len(),
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number `i`.
    ///
    /// # Panics
    /// When `i` is not below the length.
    pub fn at(&self, i: usize) -> f64 {
        match self {
            Numbers::F32(x) => f64::from(x[i]),
            Numbers::F64(x) => x[i],
        }
    }

    /// All of them, widened.
    pub fn to_vec(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.at(i)).collect()
    }
}

/// A model with one probe batch. Only the first three methods are needed; each further one lets the
/// arbiter ask a further question, and the verdict says which could not be asked.
pub trait Subject {
    /// Every parameter the model should have, in a fixed order.
    fn parameters(&self) -> Vec<Parameter>;

    /// One forward and backward pass over the probe, with the gradients kept; gives the loss.
    ///
    /// # Errors
    /// What the model says.
    fn backward(&mut self) -> Result<f64, ModelFault>;

    /// The gradient of parameter `index` from the last [`Subject::backward`] or [`Subject::step`].
    fn gradient(&self, index: usize) -> Option<Numbers<'_>>;

    /// The numbers of parameter `index` (for *right* and *applied*).
    fn value(&self, _index: usize) -> Option<Vec<f64>> {
        None
    }

    /// The probe's loss with parameter `index` at `values`; the parameter is put back afterwards (for *right*).
    fn loss_at(&mut self, _index: usize, _values: &[f64]) -> Option<Result<f64, ModelFault>> {
        None
    }

    /// Number type that the loss of [`Subject::loss_at`] is computed in.
    fn loss_precision(&self) -> Precision {
        Precision::F64
    }

    /// Training step `number`, counted from 0: gradients, then the optimizer. [`Subject::gradient`]
    /// afterwards gives what the optimizer was handed (for *applied*).
    fn step(&mut self, _number: usize) -> Option<Result<(), ModelFault>> {
        None
    }

    /// The rule of the last [`Subject::step`] for parameter `index`, when the optimizer is to be held to it exactly.
    fn rule(&self, _index: usize) -> Option<Rule> {
        None
    }

    /// Whether [`Subject::backward`] computes anew each time (for *repeatable*).
    fn repeats(&self) -> bool {
        true
    }

    /// Other layouts of the same inputs; each must give every gradient too.
    fn variants(&self) -> usize {
        0
    }

    /// Switches to layout `number`, or back to the first one; gives its name.
    fn set_variant(&mut self, _number: Option<usize>) -> String {
        String::new()
    }

    /// Where the graph was cut, for parameters without a gradient, and what to use instead.
    fn explain(&mut self, _missing: &[usize]) -> Option<String> {
        None
    }
}
