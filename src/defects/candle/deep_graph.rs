//! The backward pass walks the graph by recursion and overflows the stack on a long chain.

use crate::defects::{Entry, Kind, Verdict};
use candle_core::{Device, Result, Var};
use std::thread;

pub(super) const ENTRY: Entry = Entry {
    id: "candle-deep-graph",
    title: "backward over a chain of 50,000 ops overflows the stack and ends the process",
    kind: Kind::Crash,
    report: None,
    reading: None,
    reproduce,
    control,
    workaround: "run it on a thread with a larger stack",
};

const OPS: usize = 50_000;

/// The slope of a chain of additions of zero, computed on a thread with `stack` bytes.
fn slope(stack: usize) -> Result<Verdict> {
    let work = || -> Result<f64> {
        let w = Var::new(1f64, &Device::Cpu)?;
        let mut x = w.as_tensor().clone();
        for _ in 0..OPS {
            x = (x + 0.0)?;
        }
        let gradients = x.backward()?;
        let slope = gradients.get(&w).map_or(Ok(f64::NAN), |g| g.to_scalar())?;
        std::mem::forget(x); // dropping the chain recurses too
        Ok(slope)
    };
    let thread = thread::Builder::new().stack_size(stack).spawn(work)?;
    let slope = thread.join().map_err(|_| candle_core::Error::Msg("the thread panicked".to_owned()))??;
    Ok(Verdict::when(slope != 1.0, format!("a chain of {OPS} ops has the slope {slope}")))
}

fn reproduce() -> Result<Verdict> {
    slope(8 << 20)
}

fn control() -> Result<Verdict> {
    slope(1 << 30)
}
