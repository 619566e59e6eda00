//! `shikha figures` and `shikha keep`: what is drawn of a run or of the repository, and what is kept of a run.

use super::RunArgs;
use clap::Args;
use shikha::pipeline::{check_drawn, keep, redraw_into};
use std::error::Error;
use std::path::{Path, PathBuf};

/// Which figures.
#[derive(Args)]
pub struct FiguresArgs {
    /// A run's figures: `pocket`, `small`, or the path of a recipe file [default: all figures and tables of the
    /// report, from the stored measurements of the repository]
    recipe: Option<String>,
    /// The run directory [default: runs/NAME]
    #[arg(long, value_name = "DIR", requires = "recipe")]
    run_dir: Option<PathBuf>,
    /// Folder of raw files to look in before downloading
    #[arg(long, value_name = "DIR", env = "SHIKHA_MIRROR")]
    mirror: Option<PathBuf>,
    /// Redo every stage of the run
    #[arg(long, requires = "recipe")]
    force: bool,
    /// Write nothing, and fail when a committed figure or table is not what the stored measurements give
    #[arg(long, conflicts_with = "recipe")]
    check: bool,
}

impl FiguresArgs {
    /// Draws, and gives what to print.
    pub fn run(self) -> Result<String, Box<dyn Error>> {
        let FiguresArgs { recipe, run_dir, mirror, force, check } = self;
        match recipe {
            Some(recipe) => Ok(RunArgs { recipe, run_dir, mirror, force }.open()?.figures()?),
            None if check => Ok(check_drawn(Path::new("."))?),
            None => Ok(redraw_into(Path::new("."))?),
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
