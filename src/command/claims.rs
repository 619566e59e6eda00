//! `shikha claims`: what the report claims beside what was measured.

use super::RunArgs;
use clap::Args;
use shikha::pipeline::stored_claims;
use std::error::Error;
use std::path::PathBuf;

/// Which run is "this machine now".
#[derive(Args)]
pub struct ClaimsArgs {
    /// `pocket`, `small`, or the path of a recipe file, which is run if it was not [default: what is stored]
    recipe: Option<String>,
    /// The run directory [default: runs/NAME]
    #[arg(long, value_name = "DIR", requires = "recipe")]
    run_dir: Option<PathBuf>,
    /// Folder of raw files to look in before downloading
    #[arg(long, value_name = "DIR", env = "SHIKHA_MIRROR")]
    mirror: Option<PathBuf>,
    /// Redo every stage
    #[arg(long, requires = "recipe")]
    force: bool,
}

impl ClaimsArgs {
    /// The table.
    pub fn run(self) -> Result<String, Box<dyn Error>> {
        let ClaimsArgs { recipe, run_dir, mirror, force } = self;
        match recipe {
            Some(recipe) => Ok(RunArgs { recipe, run_dir, mirror, force }.open()?.claims()?),
            None => Ok(stored_claims()?),
        }
    }
}
