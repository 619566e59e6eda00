//! `shikha export` and `shikha import`: a model as a Hugging Face directory, out and back.

use clap::{Args, ValueEnum};
use shikha::model::WeightType;
use shikha::pipeline::Exported;
use std::error::Error;
use std::path::PathBuf;

/// Number type of the weights.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    F32,
    Bf16,
}

/// Which model, and where to.
#[derive(Args)]
pub struct ExportArgs {
    /// Directory of a finished run, or of an imported model
    run: PathBuf,
    /// Directory to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Number type of the weights
    #[arg(long, value_enum, default_value = "f32")]
    dtype: Kind,
}

impl ExportArgs {
    /// Writes the directory.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        let kind = match self.dtype {
            Kind::F32 => WeightType::F32,
            Kind::Bf16 => WeightType::Bf16,
        };
        Exported::load(&self.run)?.save(&self.out, kind)?;
        println!("written to {}", self.out.display());
        Ok(())
    }
}

/// Which directory, and where to.
#[derive(Args)]
pub struct ImportArgs {
    /// Hugging Face directory with a Llama in one safetensors file, such as `shikha export` writes
    directory: PathBuf,
    /// Directory to write: `shikha generate` and `shikha export` take it in place of a run
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl ImportArgs {
    /// Checks the directory and writes the model with weights in f32.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        let model = Exported::load(&self.directory)?;
        model.save(&self.out, WeightType::F32)?;
        println!("{} parameters written to {}", model.parameters.flat.len(), self.out.display());
        Ok(())
    }
}
