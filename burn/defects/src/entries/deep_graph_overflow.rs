//! The walk over a graph's ancestors is recursive: a deep graph ends the process.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::device;
use burn::module::{Module, Param};
use burn::tensor::Tensor;
use shikha::defects::Answer;
use std::cell::RefCell;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-deep-graph-overflow",
    title: "a deep graph that is still alive overflows the stack when another loss on the same leaf runs backward",
    kind: Kind::Crash,
    report: None,
    reading: None,
    source: include_str!("deep_graph_overflow.rs"),
    reproduce: || judge(2),
    control: || judge(256),
    arbiter: Asked::Model(|defective| asked(if defective { 2 } else { 256 })),
    training: Training::NoCurve("the process ends in the first backward pass"),
    workaround: "run the backward pass on a thread with a large stack, or detach",
};

const PAIRS: usize = 10_000;

#[derive(Module, Debug)]
struct Point {
    x: Param<Tensor<1>>,
}

/// The arbiter, on a thread with so much stack, of a loss on a leaf that a live chain hangs on too.
fn asked(stack_mib: usize) -> Answer {
    let thread = std::thread::Builder::new().stack_size(stack_mib << 20).spawn(|| {
        let point = Point { x: Param::from_tensor(Tensor::from_floats([0.1, 0.2], &device())) };
        let kept = RefCell::new(None);
        ask(point, move |p: &Point, _| {
            *kept.borrow_mut() = Some(chain(p.x.val()));
            p.x.val().square().sum()
        })
    });
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Answer::Ended("the thread panicked".to_owned()),
        Err(error) => Answer::Ended(format!("cannot start a thread: {error}")),
    }
}

fn chain(leaf: Tensor<1>) -> Tensor<1> {
    (0..PAIRS).fold(leaf, |x, _| x.tanh().mul_scalar(1.001))
}

fn judge(stack_mib: usize) -> Result<Verdict, CheckError> {
    let thread = std::thread::Builder::new().stack_size(stack_mib << 20).spawn(backward_beside_a_deep_graph)?;
    // An overflow ends the whole process and never comes here.
    let survived = thread.join().is_ok();
    let evidence = format!(
        "a live chain of {PAIRS} tanh and multiply pairs, backward of another loss on its leaf, {stack_mib} MiB of stack"
    );
    Ok(Verdict::when(!survived, evidence))
}

fn backward_beside_a_deep_graph() {
    let device = device();
    let leaf = Tensor::<1>::from_floats([0.1, 0.2], &device).require_grad();
    let chain = chain(leaf.clone());
    let _ = (leaf.clone() * leaf).sum().backward();
    drop(chain);
}
