//! What Burn does wrong as a training backend, proven by running: one check a call.
//!
//! `--list` prints the entries as a JSON array; `--child ID [--control]` runs one check in this process
//! and prints its verdict as JSON. A check may end the process: that is its evidence, so whoever calls
//! runs each in a process of its own.

mod catalogue;
#[cfg(any(test, feature = "cuda"))]
mod decoder;
mod entries;
mod gradients;
mod growth;
mod probe;
mod speed;

use clap::{ArgGroup, Parser};
use std::error::Error;
use std::process::ExitCode;

/// Burn's training defects, one check a call
#[derive(Parser)]
#[command(version, group(ArgGroup::new("what").required(true)))]
struct Arguments {
    /// Print the entries as a JSON array
    #[arg(long, group = "what")]
    list: bool,
    /// Run one check in this process and print its verdict as JSON
    #[arg(long, value_name = "ID", group = "what")]
    child: Option<String>,
    /// With --child: run the control, which does the same with the workaround
    #[arg(long, requires = "child")]
    control: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<String, Box<dyn Error>> {
    let entries = entries::all();
    let Some(id) = &arguments.child else {
        return Ok(serde_json::to_string(&entries)?);
    };
    let Some(entry) = entries.iter().find(|e| e.id == id) else {
        let known: Vec<&str> = entries.iter().map(|e| e.id).collect();
        return Err(format!("there is no entry called `{id}`: use {}", known.join(", ")).into());
    };
    let verdict = if arguments.control { (entry.control)()? } else { (entry.reproduce)()? };
    Ok(serde_json::to_string(&verdict)?)
}
