//! The walk over a graph's ancestors is recursive: a deep graph ends the process.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::device;
use burn::tensor::Tensor;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-deep-graph-overflow",
    title: "a deep graph that is still alive overflows the stack when another loss on the same leaf runs backward",
    kind: Kind::Crash,
    report: None,
    reading: None,
    reproduce: || judge(2),
    control: || judge(256),
    workaround: "run the backward pass on a thread with a large stack, or detach",
};

const PAIRS: usize = 10_000;

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
    let chain = (0..PAIRS).fold(leaf.clone(), |x, _| x.tanh().mul_scalar(1.001));
    let _ = (leaf.clone() * leaf).sum().backward();
    drop(chain);
}
