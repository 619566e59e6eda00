//! The fault corpus: how well the arbiter does, measured.
//!
//! Small models of five families, healthy and with one fault each. A backward fault is planted at a named
//! site and leaves the forward pass as it is, so that no loss tells it; an optimizer fault is planted in
//! the corpus's own AdamW. A fault counts as caught only when a finding names a parameter it touches. The
//! arbiter stands beside two simpler checks: *presence* (missing or all zero) and a stated rule on the
//! loss curve. Wrong data is in the corpus too and out of scope: every gradient is right for it.

mod case;
mod convolution;
mod decoder;
mod encoder;
mod family;
mod kit;
mod mixture;
mod recurrent;
mod residual;
mod score;
mod trainer;
mod trial;

pub use case::{Case, Kind, faults, healthy_models};
pub use score::{CaseScore, Counts, Score, census, score};
pub use trial::{CURVE, Trial, looks_ill, run};
