//! The `shikha` command: each subcommand parses, calls the library, and prints.

// What a user causes is an error of its kind; only tests unwrap.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]

mod command;

use std::process::ExitCode;

// Lets the defect catalogue and the fault corpus name the op that cut a graph.
#[global_allocator]
static ALLOCATOR: shikha::arbiter::candle::Tracer = shikha::arbiter::candle::Tracer;

fn main() -> ExitCode {
    end_with_the_reader();
    match command::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shikha: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Ends the program quietly when whoever reads its output stops (`shikha defects | head`): Rust ignores
/// the signal and then panics where it prints.
fn end_with_the_reader() {
    #[cfg(unix)]
    // SAFETY: no other thread runs yet, and the default action needs no handler.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}
