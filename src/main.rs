//! The `shikha` command: each subcommand parses, calls the library, and prints.

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    match command::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shikha: {error}");
            ExitCode::FAILURE
        }
    }
}
