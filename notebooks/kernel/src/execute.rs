//! Executes one notebook in a process of its own: what evcxr does to a process cannot reach the next notebook.

use crate::FAILED;
use crate::error::KernelError;
use crate::failure::Failure;
use crate::notebook::Notebook;
use crate::repository::{Repository, Toolchain};
use crate::session::{CellFailure, Session};
use crate::workshop::Workshop;
use std::path::Path;
use std::time::{Duration, Instant};

/// Executes the notebook and writes it, as executed, to `to`; as the stock kernel does where `stock` is set, which builds
/// every dependency in a folder of its own. `timings`: say how long the start and each cell took.
///
/// # Errors
/// A cell failed, or the kernel could not start.
///
/// # Safety
/// No other thread may run: the environment is changed.
pub unsafe fn execute(
    notebook: &Path,
    to: &Path,
    limit: Duration,
    stock: bool,
    timings: bool,
) -> Result<(), KernelError> {
    let repository = Repository::find()?;
    let toolchain = Toolchain::find(&repository)?;
    let mut notebook = Notebook::read(notebook)?;
    let workshop = if stock { None } else { Some(Workshop::open(&repository, &toolchain, "run")?) };
    if let Some(workshop) = &workshop {
        // SAFETY: the caller says that this is the only thread.
        unsafe { workshop.enter() };
    }
    let mut start = Instant::now();
    let mut took = |what: &str| {
        if timings {
            println!("  {what:<10} {:>6.1} s", start.elapsed().as_secs_f64());
        }
        start = Instant::now();
    };
    let mut session = Session::start(workshop.as_ref(), limit)?;
    took("start");
    for cell in notebook.code_cells() {
        let (name, number) = (notebook.name.clone(), cell.number);
        let (captured, failure) = session.execute(&cell, move |failure| {
            eprintln!("{}", to_failure(&name, number, failure));
            std::process::exit(FAILED);
        });
        took(&format!("cell [{number}]"));
        if let Some(failure) = failure {
            let only_stderr = captured.error.is_none() && failure.what.starts_with("wrote to standard error");
            if !(cell.allows_failure() || only_stderr && cell.allows_stderr()) {
                return Err(to_failure(&notebook.name, number, failure).into());
            }
        }
        notebook.set_outputs(&cell, captured.outputs(number));
    }
    if let Some(workshop) = &workshop
        && let Some(package) = workshop.unlocked(&repository)?
    {
        return Err(KernelError::Unlocked(package));
    }
    let bytes = notebook.to_bytes();
    std::fs::write(to, bytes).map_err(KernelError::file("write", to))
}

fn to_failure(notebook: &str, cell: usize, failure: CellFailure) -> Failure {
    let (what, line) = match failure.place {
        Some((other, line)) if other != cell => (format!("{} (in cell [{other}], line {line})", failure.what), None),
        place => (failure.what, place.map(|(_, line)| line)),
    };
    Failure::of_cell(notebook, cell, line, what).because(failure.detail)
}
