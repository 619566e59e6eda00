//! A family of small models: its variables, its probe, its loss.

use super::kit::{Kit, Start};
use crate::arbiter::Expectation;
use crate::rng::Stream;
use candle_core::{DType, Result, Tensor};

/// What makes a model of the corpus.
#[derive(Clone, Copy)]
pub struct Family {
    /// What it is called in the table.
    pub name: &'static str,
    /// Name, shape and start of every variable.
    pub variables: &'static [(&'static str, &'static [usize], Start)],
    /// What its user declares.
    pub expectations: &'static [(&'static str, Expectation)],
    /// A batch drawn from a stream, float parts in the given type.
    pub inputs: fn(&Stream, DType) -> Result<Vec<Tensor>>,
    /// The loss on a batch.
    pub loss: fn(&Kit, &[Tensor]) -> Result<Tensor>,
}

impl Family {
    /// Numbers in its variables.
    pub fn parameters(&self) -> usize {
        self.variables.iter().map(|(_, shape, _)| shape.iter().product::<usize>()).sum()
    }
}
