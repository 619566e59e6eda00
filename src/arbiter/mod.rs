//! The gradient-flow arbiter: does every parameter learn, and learn what it should?
//!
//! The core knows names, shapes and numbers, no framework and no model. A [`Subject`] is one model with
//! one probe batch; [`judge`] asks it five questions, cheapest first: is each gradient *present*, is it
//! *finite and non-zero* (also by row), is it *right* beside a finite difference, is the step *repeatable*
//! bit for bit, and was it *applied* by the optimizer. The [`Verdict`] names the parameter, the question it
//! failed and the evidence. A loss curve shows none of this: the parameters that still learn bring the
//! loss down. `docs/arbiter.md` gives each question's formula, its tolerances and what it cannot catch.

mod applied;
pub mod candle;
mod closure;
mod difference;
pub mod faults;
mod judge;
pub mod monitor;
mod parameter;
mod presence;
mod repeatable;
mod right;
mod rule;
mod subject;
pub mod tensors;
mod verdict;

pub use closure::{Closure, Gradients};
pub use judge::{Expected, Questions, RightSettings, judge};
pub use parameter::{Expectation, Parameter, Precision};
pub use rule::{Reference, Rule};
pub use subject::{ModelFault, Numbers, Subject};
pub use verdict::{Cost, Finding, Question, Verdict};

/// For tests: asks `subject` everything.
///
/// # Panics
/// With the report, when a parameter does not learn as it should, or when the model itself fails.
pub fn assert_learns(subject: &mut dyn Subject) {
    match judge(subject, &Questions::default()) {
        Ok(verdict) if verdict.passed() => {}
        Ok(verdict) => panic!("\n{}", verdict.report()),
        Err(error) => panic!("arbiter: the model failed: {error}"),
    }
}
