//! Tests of `arbiter`.
