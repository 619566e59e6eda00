//! The CUDA kernels, run on the CPU: each against the CPU op in f64, with threads in three orders that must
//! give the same bits, and with faults planted in their source that must be seen; then a whole model of them.
//! With the feature `cuda` and a GPU the same cases and the same model run there.

#[path = "cuda/cpu.rs"]
mod cpu;
#[path = "cuda/host.rs"]
mod host;
#[path = "cuda/model.rs"]
mod model;

use cpu::{Cpu, Hosts};
use half::bf16;
use host::{Host, compiler};
use shikha::ops::cuda::check::{self, Case, single};
use std::rc::Rc;

/// Orders of threads: forwards, backwards, shuffled.
const ORDERS: [u32; 3] = [0, 1, 7];

/// Whether a case is right, and the same to the bit in every order of threads.
fn judge(case: &Case<Cpu>, machine: impl Fn(u32) -> Cpu) -> Result<(), String> {
    let mut first = None;
    for order in ORDERS {
        let outcome = case.run(&mut machine(order)).map_err(|e| format!("{e} in order {order}"))?;
        if *first.get_or_insert(outcome.bits) != outcome.bits {
            return Err(format!("{}: order {order} gives other bits", case.name));
        }
    }
    Ok(())
}

fn all_right(cases: Vec<Case<Cpu>>) {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    for case in cases {
        judge(&case, |order| Cpu::new(&hosts, order)).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn row_wise_kernels_are_those_of_the_cpu() {
    all_right(check::row_wise());
}

#[test]
fn losses_are_those_of_the_cpu() {
    all_right(check::losses());
}

#[test]
fn attention_is_that_of_the_cpu() {
    all_right(check::attention());
}

#[test]
fn the_optimizer_is_that_of_the_cpu() {
    all_right(check::optimizer());
}

/// On a GPU, where there is one: the same cases, each twice with the same bits.
#[cfg(feature = "cuda")]
#[test]
fn every_case_is_right_on_a_gpu() {
    let mut device = match shikha::ops::cuda::Device::open(0) {
        Ok(device) => device,
        Err(error) => return eprintln!("not measured: {error}"),
    };
    for case in check::all() {
        let [first, again] = [(); 2].map(|()| case.run(&mut device).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(first, again, "{}", case.name);
    }
}

include!("cuda/faults.rs");
