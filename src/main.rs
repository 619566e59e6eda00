//! The `shikha` command: each subcommand parses, calls the library, and prints.

mod command;

use std::process::ExitCode;

// Lets the defect catalogue and the fault corpus name the op that cut a graph.
#[global_allocator]
static ALLOCATOR: shikha::arbiter::candle::Tracer = shikha::arbiter::candle::Tracer;

fn main() -> ExitCode {
    match command::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shikha: {error}");
            ExitCode::FAILURE
        }
    }
}
