//! Entries for tests of the runner only: a check that hangs, one that allocates without end, two that die.

use super::entry::{Check, Entry, Kind, Seen, Training};
use crate::arbiter::candle::Model;
use candle_core::{Device, Result, Tensor, Var};
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

const TRAINING: Training = Training::NoCurve("a test of the runner");

/// They are in no catalogue; the runner finds them by their ids.
pub fn misbehaving() -> [Entry; 4] {
    let entry = |id, defect: fn() -> Result<Seen>| Entry {
        id,
        title: "a test of the runner",
        kind: Kind::Crash,
        report: None,
        reading: None,
        check: Check::Shown { defect, control, model },
        training: TRAINING,
        workaround: "none",
        source: "",
    };
    [
        entry("misbehave-hang", hang),
        entry("misbehave-allocate", allocate),
        entry("misbehave-segfault", segfault),
        entry("misbehave-panic", || panic!("on purpose")),
    ]
}

fn control() -> Result<Seen> {
    Ok((false, "it behaves".to_owned()))
}

fn model(_: bool) -> Result<Model<'static>> {
    let w = Var::new(1f64, &Device::Cpu)?;
    let used = w.clone();
    Ok(Model::from_vars(vec![("w".to_owned(), w)], Vec::new(), move |_: &[Tensor]| used.sqr()))
}

fn hang() -> Result<Seen> {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn allocate() -> Result<Seen> {
    let mut held = Vec::new();
    loop {
        held.push(black_box(Vec::<u8>::with_capacity(1 << 26))); // address space alone, so that no machine suffers
    }
}

/// The signal that the kernel sends on a wild access, sent by hand: no unsafe code is needed for it. The runtime's
/// own handler takes the first, as it does to tell a stack overflow, and lets the next one through.
fn segfault() -> Result<Seen> {
    loop {
        Command::new("kill").args(["-SEGV", &std::process::id().to_string()]).status()?;
    }
}
