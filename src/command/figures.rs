//! `shikha figures` and `shikha keep`: what is drawn of a run or of the repository, and what is kept of a run.

use super::NamedRun;
use clap::Args;
use shikha::pipeline::{check_drawn, keep, redraw_into};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Which figures.
#[derive(Args)]
pub struct FiguresArgs {
    #[command(flatten)]
    run: NamedRun,
    /// Write nothing, and fail when a committed figure or table is not what the stored measurements give
    #[arg(long, conflicts_with = "recipe")]
    check: bool,
}

impl FiguresArgs {
    /// Draws, and gives what to print.
    pub fn run(self) -> Result<String, Box<dyn Error>> {
        match self.run.open()? {
            Some(mut pipeline) => Ok(pipeline.figures()?),
            None if self.check => Ok(check_drawn(Path::new(""))?),
            None => Ok(redraw_into(Path::new(""))?),
        }
    }
}

/// Which run, and where it goes.
#[derive(Args)]
pub struct KeepArgs {
    /// Directory of a finished run
    run: PathBuf,
    /// Where what is kept goes
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl KeepArgs {
    /// Keeps the run, and gives what to print.
    pub fn run(&self) -> Result<String, Box<dyn Error>> {
        Ok(keep(&self.run, &self.out)?)
    }
}
