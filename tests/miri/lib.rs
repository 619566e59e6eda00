//! The same files as in the program, with their unit tests.
#![allow(dead_code, reason = "what calls them is elsewhere")]

#[path = "../../src/ops/shared.rs"]
mod shared;
#[path = "../../src/arbiter/candle/tracer.rs"]
mod tracer;
