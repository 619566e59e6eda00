//! What the arbiter is shown.

/// What a parameter's gradient should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// A gradient, finite, with no row of zeros.
    Trainable,
    /// A gradient, finite; the rows marked `true` may be zero, as those of tokens that do not occur
    /// in the probe.
    ZeroRows(Vec<bool>),
    /// No gradient.
    Frozen,
}

/// One parameter as the caller declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the model.
    pub name: String,
    /// Shape; the first axis counts independent units (output rows, tokens) when there are two or more.
    pub shape: Vec<usize>,
    /// What its gradient should be.
    pub expectation: Expectation,
}

/// A gradient in the number type it was computed in.
#[derive(Debug, Clone, Copy)]
pub enum Gradient<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
}

impl Gradient<'_> {
    /// Numbers in it.
    pub fn len(&self) -> usize {
        match self {
            Gradient::F32(x) => x.len(),
            Gradient::F64(x) => x.len(),
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn at(&self, i: usize) -> f64 {
        match self {
            Gradient::F32(x) => f64::from(x[i]),
            Gradient::F64(x) => x[i],
        }
    }
}

/// A model after one forward and backward pass.
pub trait Subject {
    /// Shows every parameter the model should have, in a fixed order, with its gradient if it got one.
    fn show(&self, look: &mut dyn FnMut(&Parameter, Option<Gradient>));
}
