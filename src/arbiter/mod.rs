//! The gradient-flow arbiter: one forward and backward pass, then a question per parameter.
//!
//! The core knows names, shapes and numbers, no framework and no model. A [`Subject`] shows it each
//! parameter with its gradient; the [`Verdict`] names the parameter, the question it failed and the
//! evidence. A loss curve shows none of this: the parameters that still learn bring the loss down.

mod gradient;
mod parameter;
mod verdict;

pub use gradient::judge;
pub use parameter::{Expectation, Gradient, Parameter, Subject};
pub use verdict::{Finding, Question, Verdict};
