//! Tests of `train`.
