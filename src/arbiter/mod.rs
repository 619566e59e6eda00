//! The gradient-flow arbiter: does every parameter learn?
