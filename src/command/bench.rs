//! `shikha bench`: how fast this machine trains.

use super::gpu::GpuArgs;
use clap::{Args, Subcommand};
use shikha::artifact::write_atomic;
use shikha::recipe::Precision;
use shikha::report::{cost, figure};
use shikha::train::bench::{BenchResult, Preset, Sizes, bench};
use shikha::train::cost::{self as curve, Child};
use std::error::Error;
use std::path::PathBuf;

/// What to measure.
#[derive(Subcommand)]
pub enum BenchCommand {
    /// Whole training steps: gradients, norm, AdamW
    Train(TrainArgs),
    /// How time and memory grow with length, width, vocabulary and batch
    Cost(CostArgs),
    /// Check all kernels on an NVIDIA GPU and time whole steps there; writes a dated record
    Gpu(GpuArgs),
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
    /// Compute activations again in the backward pass instead of keeping them
    #[arg(long)]
    recompute: bool,
    /// Steps
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Tokens in a window, in place of the preset's
    #[arg(long)]
    time: Option<usize>,
    /// Windows in a batch
    #[arg(long)]
    batch: Option<usize>,
    /// Width of the residual stream
    #[arg(long)]
    width: Option<usize>,
    /// Tokens in the vocabulary
    #[arg(long)]
    vocabulary: Option<usize>,
    /// Print what was measured as one line of JSON
    #[arg(long)]
    json: bool,
}

/// How precisely, and where the figure goes.
#[derive(Args)]
pub struct CostArgs {
    /// `bench-17m` or `bench-1m`: the model whose sizes change one at a time
    #[arg(long, default_value = "bench-17m")]
    preset: String,
    /// Precision of matrix products: `f32` or `bf16`
    #[arg(long, default_value = "f32", value_parser = precision)]
    dtype: Precision,
    /// Steps of each model
    #[arg(long, default_value_t = 4)]
    steps: usize,
    /// Keep what was measured in this file
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Folder for the figure and its numbers
    #[arg(long, default_value = "runs/bench")]
    out: PathBuf,
}

fn precision(name: &str) -> Result<Precision, String> {
    Precision::named(name).ok_or_else(|| "use `f32` or `bf16`".to_owned())
}

impl BenchCommand {
    /// Prints what was measured.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        match self {
            BenchCommand::Train(args) => args.run(),
            BenchCommand::Cost(args) => args.run(),
            BenchCommand::Gpu(args) => match args.run() {
                Err(reason) if args.or_cpu && super::gpu::is_missing(reason.as_ref()) => {
                    eprintln!("shikha: {reason}");
                    processor()
                }
                done => done,
            },
        }
    }
}

/// What the processor reaches in place of a GPU, on a model that it can train.
fn processor() -> Result<(), Box<dyn Error>> {
    let preset = Preset::named("bench-1m")?;
    print(&preset, &bench(&preset, Precision::F32, 3)?);
    Ok(())
}

impl TrainArgs {
    /// Prints a line a step and the speed as the last line.
    fn run(&self) -> Result<(), Box<dyn Error>> {
        let sizes = Sizes { time: self.time, batch: self.batch, width: self.width, vocabulary: self.vocabulary };
        let preset = Preset { recompute: self.recompute, ..Preset::named(&self.preset)?.resized(&sizes)? };
        let result = bench(&preset, self.dtype, self.steps.max(1))?;
        if self.json {
            println!("{}", serde_json::to_string(&result)?);
            return Ok(());
        }
        print(&preset, &result);
        Ok(())
    }
}

fn print(preset: &Preset, result: &BenchResult) {
    for (step, (loss, seconds)) in result.losses.iter().zip(&result.seconds).enumerate() {
        println!("step {:3}  loss {loss:.4}  {:.0} ms", step + 1, 1e3 * seconds);
    }
    let memory = result.memory_bytes.map_or("not measured".to_owned(), |b| format!("{:.0} MB", b as f64 / 1e6));
    println!(
        "{}: {:.2} M parameters, batch {} x {}, {} products, {}{} threads, peak memory {memory}",
        preset.name,
        result.parameters as f64 / 1e6,
        preset.batch,
        preset.time,
        result.precision.name(),
        if preset.recompute { "recomputation, " } else { "" },
        rayon::current_num_threads(),
    );
    println!(
        "{:.0} % of the f32 matrix-product peak of {:.0} GFLOP/s, {:.0} tokens/s",
        100.0 * result.gemm_peak_share,
        result.gemm_peak / 1e9,
        result.tokens_per_second
    );
}

impl CostArgs {
    /// Measures each model in a process of its own, draws the curves and prints the table.
    fn run(&self) -> Result<(), Box<dyn Error>> {
        let (program, steps) = (std::env::current_exe()?, self.steps.max(2));
        let child = Child { program, precision: self.dtype, recompute: false, steps };
        let points = curve::measure(&Preset::named(&self.preset)?, &child)?;
        let table = cost::table(&points);
        print!("{}", table.to_text(118));
        if let Some(path) = &self.store {
            let mut text = serde_json::to_vec_pretty(&points)?;
            text.push(b'\n');
            write_atomic(path, &text)?;
        }
        figure::cost(&points, &cost::caption(&points))?.save(&self.out)?;
        Ok(())
    }
}
