//! The backward pass walks the graph by recursion and overflows the stack on a long chain.

use crate::arbiter::candle::Model;
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{Device, Result, Tensor, Var};
use std::thread;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-deep-graph",
    title: "backward over a chain of 50,000 ops overflows the stack and ends the process",
    kind: Kind::Crash,
    report: None,
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::NoCurve("the process ends at the first backward pass"),
    workaround: "run it on a thread with a larger stack",
    source: include_str!("deep_graph.rs"),
};

// reproducer {
const OPS: usize = 50_000;

/// w + 0 + 0 …
fn chain(w: &Tensor, ops: usize) -> Result<Tensor> {
    (0..ops).try_fold(w.clone(), |x, _| x + 0.0)
}

/// The slope of a chain of additions of zero, computed on a thread with `stack` bytes.
fn slope(stack: usize) -> Result<(bool, String)> {
    let work = || -> Result<f64> {
        let w = Var::new(1f64, &Device::Cpu)?;
        let x = chain(&w, OPS)?;
        let gradients = x.backward()?;
        let slope = gradients.get(&w).map_or(Ok(f64::NAN), |g| g.to_scalar())?;
        std::mem::forget(x); // dropping the chain recurses too
        Ok(slope)
    };
    let thread = thread::Builder::new().stack_size(stack).spawn(work)?;
    let slope = thread.join().map_err(|_| candle_core::Error::Msg("the thread panicked".to_owned()))??;
    Ok((slope != 1.0, format!("a chain of {OPS} ops has the slope {slope}")))
}

fn defect() -> Result<(bool, String)> {
    slope(8 << 20)
}
// }

fn control() -> Result<(bool, String)> {
    slope(1 << 30)
}

fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::new(1f64, &Device::Cpu)?;
    let (used, ops) = (w.clone(), if defective { OPS } else { 100 });
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), move |_: &[Tensor]| chain(&used, ops)))
}
