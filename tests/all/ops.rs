//! Tests of `ops`.
