//! The subcommands, one per stage.

mod arbiter;
mod bench;
mod defects;
mod export;
mod fertility;
mod figures;
mod generate;
mod gpu;
mod plan;
mod record;

use clap::{Args, Parser, Subcommand};
use shikha::pipeline::{Gpu, Options, Pipeline, stored_claims};
use shikha::recipe::Recipe;
use std::error::Error;
use std::path::PathBuf;

/// A Bangla-first language model from recipe to report, in Rust, with every gradient checked.
#[derive(Parser)]
#[command(name = "shikha", version, max_term_width = 100)]
struct Cli {
    /// Threads to compute with; the results are the same for any number [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The whole run: text, tokenizer, training, evaluation, figures and the claims table
    Reproduce(RunArgs),
    /// Read, clean, de-duplicate and split the text of a recipe
    Corpus(RunArgs),
    /// Train the recipe's tokenizer, and the naive one beside it
    Tokenizer(RunArgs),
    /// Measure a run's two tokenizers, or with `measure` any tokenizer on any text
    Fertility(fertility::FertilityArgs),
    /// Train the model, after every parameter's gradient was checked
    Train(RunArgs),
    /// Go on with a run that was stopped, from its last checkpoint
    Resume(ResumeArgs),
    /// Continue a prompt with a trained model, token by token
    Generate(generate::GenerateArgs),
    /// Evaluate the trained model: held-out loss beside baselines, and the recipe's multiple-choice tasks
    Eval(RunArgs),
    /// Write a trained model as a Hugging Face Llama directory
    Export(export::ExportArgs),
    /// Read a Hugging Face Llama directory back
    Import(export::ImportArgs),
    /// Draw every figure and table of the report from what is stored, or those of a run
    Figures(figures::FiguresArgs),
    /// Keep what a finished run measured, and its weights as bf16, small enough to commit
    Keep(figures::KeepArgs),
    /// Judge another framework's gradients, or measure the arbiter on its fault corpus
    #[command(subcommand)]
    Arbiter(arbiter::ArbiterCommand),
    /// Record a finished run, with the machines it sat on and their price, as one file for the report
    Record(record::RecordArgs),
    /// Run the catalogue of training defects, each with its control
    Defects(defects::DefectsArgs),
    /// What a recipe takes: operations, memory, hours and cost on a named device
    Plan(plan::PlanArgs),
    /// Measure how fast this machine trains
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Print what the report claims beside what was measured
    Claims(NamedRun),
}

/// Which run, and where.
#[derive(Args)]
struct RunArgs {
    /// `pocket`, `small`, or the path of a recipe file
    #[arg(default_value = "pocket")]
    recipe: String,
    /// The run directory [default: runs/NAME]
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// Folder of raw files to look in before downloading
    #[arg(long, value_name = "DIR", env = "SHIKHA_MIRROR")]
    mirror: Option<PathBuf>,
    /// Redo every stage
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    gpu: GpuChoice,
}

/// What trains.
#[derive(Args, Clone, Copy, Default)]
struct GpuChoice {
    /// Train on this GPU, counted from 0; the program must be built with `--features cuda`
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "0")]
    gpu: Option<usize>,
    /// With --gpu: train on the processor where there is no GPU to use
    #[arg(long, requires = "gpu")]
    or_cpu: bool,
}

impl From<GpuChoice> for Option<Gpu> {
    fn from(choice: GpuChoice) -> Self {
        choice.gpu.map(|number| Gpu { number, or_cpu: choice.or_cpu })
    }
}

impl RunArgs {
    fn open(&self) -> Result<Pipeline, Box<dyn Error>> {
        let recipe = Recipe::load(&self.recipe)?;
        let mirror = self.mirror.clone().filter(|path| !path.as_os_str().is_empty());
        let options = Options { run_dir: self.run_dir.clone(), mirror, force: self.force, gpu: self.gpu.into() };
        Ok(Pipeline::open(recipe, &options)?)
    }
}

/// A run where one is named, else what is stored in the repository.
#[derive(Args)]
struct NamedRun {
    /// `pocket`, `small`, or the path of a recipe file [default: what is stored in the repository]
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
    #[command(flatten)]
    gpu: GpuChoice,
}

impl NamedRun {
    fn open(self) -> Result<Option<Pipeline>, Box<dyn Error>> {
        let NamedRun { recipe, run_dir, mirror, force, gpu } = self;
        recipe.map(|recipe| RunArgs { recipe, run_dir, mirror, force, gpu }.open()).transpose()
    }
}

/// Which stopped run.
#[derive(Args)]
struct ResumeArgs {
    /// The run directory
    run_dir: PathBuf,
    /// Folder of raw files to look in before downloading
    #[arg(long, value_name = "DIR", env = "SHIKHA_MIRROR")]
    mirror: Option<PathBuf>,
    #[command(flatten)]
    gpu: GpuChoice,
}

impl ResumeArgs {
    fn run(&self) -> Result<String, Box<dyn Error>> {
        let recipe = Recipe::from_file(&self.run_dir.join("recipe.toml"))?;
        let mirror = self.mirror.clone().filter(|path| !path.as_os_str().is_empty());
        let options = Options { run_dir: Some(self.run_dir.clone()), mirror, force: false, gpu: self.gpu.into() };
        Ok(Pipeline::open(recipe, &options)?.resume()?)
    }
}

/// Parses the command line and runs what it asks for.
pub fn run() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    if let Some(threads) = cli.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    match cli.command {
        Command::Reproduce(args) => print!("{}", args.open()?.reproduce()?),
        Command::Corpus(args) => print!("{}", args.open()?.corpus()?),
        Command::Tokenizer(args) => print!("{}", args.open()?.tokenizers()?),
        Command::Fertility(args) => print!("{}", args.run()?),
        Command::Train(args) => print!("{}", args.open()?.train()?),
        Command::Resume(args) => print!("{}", args.run()?),
        Command::Generate(args) => args.run()?,
        Command::Eval(args) => {
            let mut pipeline = args.open()?;
            print!("{}", pipeline.evaluate()?);
            print!("{}", pipeline.choice()?);
        }
        Command::Export(args) => args.run()?,
        Command::Import(args) => args.run()?,
        Command::Figures(args) => print!("{}", args.run()?),
        Command::Keep(args) => print!("{}", args.run()?),
        Command::Record(args) => print!("{}", args.run()?),
        Command::Arbiter(command) => command.run()?,
        Command::Defects(args) => args.run()?,
        Command::Plan(args) => args.run()?,
        Command::Bench(command) => command.run()?,
        Command::Claims(run) => match run.open()? {
            Some(mut pipeline) => print!("{}", pipeline.claims()?),
            None => print!("{}", stored_claims()?),
        },
    }
    Ok(())
}
