//! `shikha bench`: how fast this machine trains.

use clap::{Args, Subcommand};
use shikha::recipe::Precision;
use shikha::train::bench::{Preset, bench};
use std::error::Error;

/// What to measure.
#[derive(Subcommand)]
pub enum BenchCommand {
    /// Whole training steps: gradients, norm, AdamW
    Train(TrainArgs),
}

/// Which model, for how long.
#[derive(Args)]
pub struct TrainArgs {
    /// `bench-17m` or `bench-1m`
    #[arg(long, default_value = "bench-17m")]
    preset: String,
    /// Precision of matrix products: `f32` or `bf16`
    #[arg(long, default_value = "f32", value_parser = precision)]
    dtype: Precision,
    /// Steps
    #[arg(long, default_value_t = 20)]
    steps: usize,
}

impl BenchCommand {
    /// Prints a line a step and the speed as the last line.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        let BenchCommand::Train(args) = self;
        let preset = Preset::named(&args.preset)?;
        let result = bench(&preset, args.dtype, args.steps.max(1))?;
        for (step, (loss, seconds)) in result.losses.iter().zip(&result.seconds).enumerate() {
            println!("step {:3}  loss {loss:.4}  {:.0} ms", step + 1, 1e3 * seconds);
        }
        let memory = result.memory_bytes.map_or("not measured".to_owned(), |b| format!("{:.0} MB", b as f64 / 1e6));
        println!(
            "{}: batch {} x {}, {}, {} threads, matrix-product peak {:.0} GFLOP/s, peak memory {memory}",
            preset.name,
            preset.batch,
            preset.time,
            args.dtype.name(),
            rayon::current_num_threads(),
            result.gemm_peak / 1e9,
        );
        println!("{:.0} % of the peak, {:.0} tokens/s", 100.0 * result.gemm_peak_share, result.tokens_per_second);
        Ok(())
    }
}

fn precision(name: &str) -> Result<Precision, String> {
    Precision::named(name).ok_or_else(|| "use `f32` or `bf16`".to_owned())
}
