//! The catalogue's checks and controls against another version of Candle, in a process each.
//!
//! The checks, the arbiter and the few ops of ours that controls use are the main package's own files;
//! only the version of Candle differs. `check FILE VERSION DATE TOOLCHAIN` runs all of them and puts what it found
//! into FILE under VERSION.
#![allow(dead_code, unused_imports)]

#[path = "../../src/arbiter/mod.rs"]
mod arbiter;
#[path = "../../src/defects/mod.rs"]
mod defects;
#[path = "../../src/error.rs"]
mod error;
#[path = "ops.rs"]
mod ops;
#[path = "../../src/rng.rs"]
mod rng;
#[path = "../../src/statistics.rs"]
mod statistics;

use defects::{Limits, Matrix, Outcome, Pair, Verdict, Version, catalogue, run_child};
use std::collections::BTreeMap;
use std::error::Error;

/// Runs one check, or all of them in processes of their own, and prints JSON.
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let at = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let entries = catalogue();
    if let Some(id) = at("--child") {
        defects::end_with_parent();
        let entry = entries.iter().find(|e| e.id == *id).ok_or("no such entry")?;
        let control = at("--aspect").is_some_and(|aspect| aspect == "control");
        let verdict = if control { entry.control()? } else { entry.reproduce()? };
        println!("{}", serde_json::to_string(&verdict)?);
        return Ok(());
    }
    let [_, file, version, date, toolchain] = &arguments[..] else {
        return Err("usage: check FILE VERSION DATE TOOLCHAIN".into());
    };
    let program = std::env::current_exe()?;
    let run = |id: &str, aspect: &str| -> Outcome {
        run_child::<Verdict>(&program, &["--child", id, "--aspect", aspect], Limits::default()).into()
    };
    let pair = |id: &str| Pair { check: run(id, "check"), control: run(id, "control") };
    let entries: BTreeMap<_, _> = entries.iter().map(|e| (e.id.to_owned(), pair(e.id))).collect();
    let mut matrix: Matrix = match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(_) => Matrix::default(),
    };
    let (date, toolchain) = (date.clone(), toolchain.clone());
    matrix.versions.insert(version.clone(), Version { date, toolchain, entries });
    std::fs::write(file, serde_json::to_string_pretty(&matrix)? + "\n")?;
    Ok(())
}
