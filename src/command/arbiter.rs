//! `shikha arbiter`: dumps of any framework judged, and the arbiter's own score.

use clap::{Args, Subcommand};
use shikha::arbiter::faults::{self, Score};
use shikha::arbiter::tensors::{Dump, check_dump};
use shikha::artifact::write_atomic;
use shikha::progress::Progress;
use shikha::report::arbiter::{figure, summary, table};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Mutex;

/// What to do.
#[derive(Subcommand)]
pub enum ArbiterCommand {
    /// Judge parameters and gradients dumped to safetensors files by any framework
    Check(CheckArgs),
    /// Measure the arbiter on its fault corpus: catch rate, false alarms, cost
    Score(ScoreArgs),
}

/// Where the dump lies.
#[derive(Args)]
pub struct CheckArgs {
    /// Parameters before the step
    #[arg(long, value_name = "FILE")]
    parameters: PathBuf,
    /// Their gradients, under the same names; once more for each further step
    #[arg(long, value_name = "FILE", required = true)]
    gradients: Vec<PathBuf>,
    /// Parameters after the step; once more for each further step
    #[arg(long, value_name = "FILE")]
    after: Vec<PathBuf>,
    /// Gradients of a second pass over the same batch
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,
    /// What is declared of the parameters, TOML
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Print the verdict as JSON
    #[arg(long)]
    json: bool,
}

/// How long to measure, and where to write.
#[derive(Args)]
pub struct ScoreArgs {
    /// Random seeds a case
    #[arg(long, default_value_t = 20)]
    seeds: usize,
    /// Where score.json, the figure and the table go
    #[arg(long, value_name = "DIR", default_value = "runs/arbiter")]
    out: PathBuf,
    /// Keep the score in this file too
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Draw and print a stored score.json again, without measuring
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Print the score as JSON
    #[arg(long)]
    json: bool,
}

impl ArbiterCommand {
    /// Prints the verdict or the score.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        match self {
            ArbiterCommand::Check(args) => args.run(),
            ArbiterCommand::Score(args) => args.run(),
        }
    }
}

impl CheckArgs {
    fn run(self) -> Result<(), Box<dyn Error>> {
        let CheckArgs { parameters, gradients, after, again, expect: declarations, json } = self;
        let verdict = check_dump(&Dump { parameters, gradients, after, again, declarations })?;
        if json {
            println!("{}", serde_json::to_string_pretty(&verdict)?);
        } else {
            print!("{}", verdict.report());
        }
        match verdict.findings.len() {
            0 if verdict.passed() => Ok(()),
            0 => Err("nothing was checked".into()),
            count => Err(format!("the arbiter found {count} faults").into()),
        }
    }
}

impl ScoreArgs {
    fn run(self) -> Result<(), Box<dyn Error>> {
        let score = match &self.from {
            Some(path) => {
                let bytes = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
                serde_json::from_slice(&bytes).map_err(|e| format!("{}: not a score: {e}", path.display()))?
            }
            None => self.measure()?,
        };
        std::fs::create_dir_all(&self.out)?;
        let mut text = serde_json::to_vec_pretty(&score)?;
        text.push(b'\n');
        for path in std::iter::once(self.out.join("score.json")).chain(self.store.clone()) {
            write_atomic(&path, &text)?;
        }
        let table = table(&score);
        write_atomic(&self.out.join("arbiter-table.csv"), table.to_csv()?.as_bytes())?;
        write_atomic(&self.out.join("arbiter-table.md"), table.to_markdown().as_bytes())?;
        figure(&score)?.save(&self.out)?;
        if self.json {
            print!("{}", String::from_utf8_lossy(&text));
        } else {
            print!("{}{}", table.to_text(150), summary(&score));
            println!("written to {}", self.out.display());
        }
        Ok(())
    }

    fn measure(&self) -> Result<Score, Box<dyn Error>> {
        if self.seeds == 0 {
            return Err("--seeds is 0, expected at least 1".into());
        }
        let cases: usize = faults::census().values().sum();
        let progress = Mutex::new(Progress::new("arbiter", cases as u64, "cases"));
        let score = faults::score(self.seeds, |case| {
            progress.lock().unwrap_or_else(|p| p.into_inner()).advance(1, &case.title);
        })
        .map_err(|error| error.to_string())?;
        progress.into_inner().unwrap_or_else(|p| p.into_inner()).finish(&format!("{cases} cases"));
        Ok(score)
    }
}
