//! Tests of `eval`.
