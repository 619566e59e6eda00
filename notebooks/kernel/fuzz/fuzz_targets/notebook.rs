//! Notebooks, as the program that runs them reads them, under libFuzzer; without that program, which is large.
#![no_main]
#![allow(dead_code, unused_imports)]

extern crate self as shikha_kernel;

#[path = "../../src/drift.rs"]
pub mod drift;
#[path = "../../src/failure.rs"]
pub mod failure;
#[path = "../../tests/fuzz.rs"]
mod fuzz;
#[path = "../../src/notebook.rs"]
pub mod notebook;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    fuzz::use_notebook(input);
});
