//! What a model's parameters are called and what is expected of them.

use serde::{Deserialize, Serialize};

/// A number type, for the tolerances that follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
}

impl Precision {
    /// The one of two that rounds more.
    pub fn coarser(self, other: Precision) -> Precision {
        if other.unit_roundoff() > self.unit_roundoff() { other } else { self }
    }

    /// Largest relative error of one rounding.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Precision::F64 => f64::EPSILON / 2.0,
            Precision::F32 => f64::from(f32::EPSILON) / 2.0,
            Precision::F16 => 2f64.powi(-11),
            Precision::Bf16 => 2f64.powi(-8),
        }
    }
}

/// What a parameter's gradient should be. Everything but [`Expectation::Trainable`] is declared by the
/// caller, a parameter at a time; there is no switch that turns a question off for a whole model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// A gradient, finite, with no row of zeros that the loss depends on.
    Trainable,
    /// A gradient, finite; the rows marked `true` may be zero, as those of tokens that do not occur
    /// in the probe.
    ZeroRows(Vec<bool>),
    /// A gradient, finite; any rows may be zero but not all, as of experts and units that the probe
    /// leaves inactive.
    SparseRows,
    /// A gradient that is zero by the mathematics, as that of a key bias under softmax: what rounding
    /// leaves of it must be small beside the others.
    Zero,
    /// Zero on the first pass because another parameter starts at zero, as behind a zero-initialised
    /// residual branch; from the second step on as [`Expectation::Trainable`].
    ZeroAtFirst,
    /// No gradient, and no step may move it.
    Frozen,
    /// A gradient may come, but no step may move it: frozen by leaving it out of the optimizer.
    Held,
    /// The same numbers as the named parameter, before and after every step; its gradient may be
    /// counted there.
    Tied(String),
}

/// One parameter as the caller declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the model.
    pub name: String,
    /// Shape; the first axis counts independent units (output rows, tokens, experts) when there are two or more.
    pub shape: Vec<usize>,
    /// Number type it is kept in.
    pub precision: Precision,
    /// Equal contiguous parts that learn independently, where that is not the first axis: heads, experts × rows.
    pub units: Option<usize>,
    /// What its gradient should be.
    pub expectation: Expectation,
}

impl Parameter {
    /// A trainable parameter in single precision.
    pub fn new(name: impl Into<String>, shape: impl Into<Vec<usize>>) -> Self {
        let (name, shape) = (name.into(), shape.into());
        Parameter { name, shape, precision: Precision::F32, units: None, expectation: Expectation::Trainable }
    }

    /// The same in another number type.
    pub fn in_precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// The same with another expectation.
    pub fn expecting(mut self, expectation: Expectation) -> Self {
        self.expectation = expectation;
        self
    }

    /// Numbers in it.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Independent units: the declared number when it divides the parameter, else the first axis.
    pub fn rows(&self) -> usize {
        let first = if self.shape.len() > 1 { self.shape[0] } else { 1 };
        self.units.filter(|units| *units > 0 && self.len().is_multiple_of(*units)).unwrap_or(first).max(1)
    }

    pub(super) fn learns(&self) -> bool {
        !matches!(self.expectation, Expectation::Frozen | Expectation::Held | Expectation::Tied(_))
    }
}
