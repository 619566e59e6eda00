//! The command.

use clap::{Parser, Subcommand};
use shikha_kernel::error::KernelError;
use shikha_kernel::repository::Repository;
use shikha_kernel::run::Plan;
use shikha_kernel::{FAILED, execute, install, jupyter, run, warm, wrapper};
use std::path::PathBuf;
use std::process::exit;
use std::time::Duration;

/// The Rust kernel of Shikha's notebooks, and their runner without Jupyter.
#[derive(Debug, Parser)]
#[command(version)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Registers the kernel with Jupyter.
    Install {
        /// Under this folder, as share/jupyter/kernels/rust; else for this user.
        #[arg(long)]
        prefix: Option<PathBuf>,
        /// Replace another Rust kernel that is registered there.
        #[arg(long)]
        force: bool,
    },
    /// Builds what the cells depend on, once for all notebooks.
    Warm,
    /// Runs the notebooks and stores what they put out; changes no byte where nothing changed.
    Run {
        /// Write nothing; fail where a stored output is not what comes out.
        #[arg(long)]
        check: bool,
        /// Only the notebook whose name starts so: 03.
        #[arg(long)]
        only: Option<String>,
        /// How many seconds a cell may take.
        #[arg(long, default_value_t = 300)]
        timeout: u64,
        /// Another folder of notebooks than the project's.
        #[arg(long)]
        folder: Option<PathBuf>,
        /// Do not build what the cells depend on first.
        #[arg(long)]
        no_warm: bool,
        /// As the stock evcxr_jupyter would, which builds every dependency afresh for each notebook.
        #[arg(long, conflicts_with = "no_warm")]
        stock: bool,
        /// Say how long each cell took.
        #[arg(long)]
        timings: bool,
    },
    /// Executes one notebook in this process (what `run` starts for each).
    #[command(hide = true)]
    Execute {
        notebook: PathBuf,
        to: PathBuf,
        #[arg(long)]
        timeout: u64,
        #[arg(long)]
        stock: bool,
        #[arg(long)]
        timings: bool,
    },
}

fn main() {
    // This program is also the process that runs the cells, and the compiler's wrapper.
    evcxr::runtime_hook();
    if let Some(status) = wrapper::hook() {
        exit(status);
    }
    let result = if std::env::args().nth(1).as_deref() == Some("--control_file") {
        // SAFETY: no thread has been started yet.
        unsafe { jupyter::serve() }
    } else {
        act(Command::parse().action)
    };
    if let Err(error) = result {
        let prefix = if matches!(error, KernelError::Notebook(_)) { "" } else { "error: " };
        eprintln!("{prefix}{error}");
        exit(FAILED);
    }
}

fn act(action: Action) -> Result<(), KernelError> {
    match action {
        Action::Install { prefix, force } => {
            let folder = install::install(&Repository::find()?, prefix.as_deref(), force)?;
            println!("The Rust kernel is registered in {}", folder.display());
            Ok(())
        }
        Action::Warm => warm::warm(&Repository::find()?),
        Action::Run { check, only, timeout, folder, no_warm, stock, timings } => {
            let repository = Repository::find()?;
            if !(no_warm || stock) {
                warm::warm(&repository)?;
            }
            let folder = folder.unwrap_or_else(|| repository.notebooks());
            run::run(&repository, &Plan { folder, only, check, limit: Duration::from_secs(timeout), stock, timings })
        }
        // SAFETY: no thread has been started yet.
        Action::Execute { notebook, to, timeout, stock, timings } => unsafe {
            execute::execute(&notebook, &to, Duration::from_secs(timeout), stock, timings)
        },
    }
}
