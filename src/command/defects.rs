//! `shikha defects`: the catalogue, run.

use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use shikha::artifact::write_atomic;
use shikha::defects::{
    Aspect, BurnList, CANDLE, Entry, Limits, Listed, Matrix, Outcomes, Record, Runner, SEEDS, STEPS, Version,
    burn_readings, catalogue, end_with_parent, misbehaving, readings, reproducer, run_all,
};
use shikha::progress::Progress;
use shikha::report::defects::{figures, matrix_figure, matrix_table, summary, table};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which entries, and how.
#[derive(Args)]
pub struct DefectsArgs {
    /// One entry only
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// Seconds that one check may take
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// MiB of address space that one check may take
    #[arg(long, default_value_t = 4096)]
    memory: u64,
    /// Print each record as a JSON line as soon as it is whole
    #[arg(long)]
    json: bool,
    /// Print a program that shows one defect with Candle alone, for its maintainers
    #[arg(long, value_name = "ID")]
    reproducer: Option<String>,
    /// Keep every record, with the loss curves, in this file
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Run Burn's entries instead, which this program has: burn/target/release/shikha-burn-defects
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["from", "matrix", "reproducer"])]
    burn: Option<PathBuf>,
    /// With --burn: run checks and controls alone and keep them under the program's version in this matrix file
    #[arg(long, value_name = "FILE", requires_all = ["burn", "built"])]
    into: Option<PathBuf>,
    /// With --into: the day, and the compiler that the program was built with
    #[arg(long, num_args = 2, value_names = ["DATE", "TOOLCHAIN"])]
    built: Vec<String>,
    /// Print and draw a stored file again, without running anything
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Print, and with --figures draw, which versions have which defect, from a file of `make defects-matrix`
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
    /// Draw the figures into this directory
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,
    /// Run one aspect of one entry in this process and print what it found
    #[arg(long, hide = true, value_name = "ID")]
    child: Option<String>,
    /// With --child: which
    #[arg(long, hide = true, default_value = "check")]
    aspect: AspectName,
    /// With --child: end when the standard input closes
    #[arg(long, hide = true)]
    watched: bool,
    /// Run the runner's own tests beside the first entry
    #[arg(long, hide = true)]
    misbehave: bool,
}

/// [`Aspect`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum AspectName {
    Check,
    Control,
    Arbiter,
    ArbiterControl,
    Curves,
}

impl From<AspectName> for Aspect {
    fn from(name: AspectName) -> Self {
        match name {
            AspectName::Check => Aspect::Check,
            AspectName::Control => Aspect::Control,
            AspectName::Arbiter => Aspect::Arbiter,
            AspectName::ArbiterControl => Aspect::ArbiterControl,
            AspectName::Curves => Aspect::Curves,
        }
    }
}

impl DefectsArgs {
    /// Runs the catalogue, each check in a process of its own, and prints the table.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        if let Some(id) = &self.child {
            if self.watched {
                end_with_parent();
            }
            println!("{}", Aspect::from(self.aspect).run(&find(id)?)?);
            return Ok(());
        }
        if let Some(id) = &self.reproducer {
            let entry = find(id)?;
            let nothing =
                || format!("`{id}` cannot be shown by a program on this machine; it takes {}", entry.workaround);
            print!("{}", reproducer(&entry).ok_or_else(nothing)?);
            return Ok(());
        }
        if let Some(path) = &self.matrix {
            let matrix: Matrix = read(path)?;
            if let Some(directory) = &self.figures {
                matrix_figure(&matrix)?.save(directory)?;
            }
            print!("{}", matrix_table(&matrix).to_text(160));
            return Ok(());
        }
        if let (Some(path), Some(program), [date, toolchain]) = (&self.into, &self.burn, &self.built[..]) {
            let limits = self.limits();
            let list = BurnList::of(program, limits)?;
            let runner = Runner { program, arguments: &["--watched"], limits };
            let mut matrix: Matrix = if path.exists() { read(path)? } else { Matrix::default() };
            let version = Version::of(runner, &list.entries, date.clone(), toolchain.clone());
            matrix.versions.insert(list.version, version);
            write_atomic(path, format!("{}\n", serde_json::to_string_pretty(&matrix)?).as_bytes())?;
            print!("{}", matrix_table(&matrix).to_text(160));
            return Ok(());
        }
        let outcomes = match &self.from {
            Some(path) => read(path)?,
            None => self.measure()?,
        };
        if let Some(path) = &self.store {
            write_atomic(path, &store(&outcomes)?)?;
        }
        if let Some(directory) = &self.figures {
            figures(&outcomes)?.iter().try_for_each(|figure| figure.save(directory))?;
        }
        if !self.json {
            print!("{}{}", table(&outcomes).to_text(160), summary(&outcomes));
            let reading = if outcomes.framework == "Burn" { burn_readings() } else { readings(&catalogue()) };
            print!("{reading}");
        }
        let dirty: Vec<&str> = outcomes.records.iter().filter(|r| !r.clean()).map(|r| r.id.as_str()).collect();
        if dirty.is_empty() { Ok(()) } else { Err(format!("a control is not clean: {}", dirty.join(", ")).into()) }
    }

    fn measure(&self) -> Result<Outcomes, Box<dyn Error>> {
        let limits = self.limits();
        let (framework, version, records) = match &self.burn {
            Some(program) => {
                let mut list = BurnList::of(program, limits)?;
                if let Some(id) = &self.only {
                    list.entries = vec![listed(&list.entries, id)?];
                }
                let runner = Runner { program, arguments: &["--watched"], limits };
                ("Burn", list.version, self.run_every(runner, &list.entries))
            }
            None => {
                let entries: Vec<Listed> = self.entries()?.iter().map(Listed::from).collect();
                let program = std::env::current_exe()?;
                ("Candle", CANDLE.to_owned(), self.run_every(Runner::candle(&program, limits), &entries))
            }
        };
        Ok(Outcomes { framework: framework.to_owned(), version, steps: STEPS, seeds: SEEDS, records })
    }

    fn limits(&self) -> Limits {
        Limits { time: Duration::from_secs(self.seconds), memory: self.memory }
    }

    /// Candle's entries that were asked for.
    fn entries(&self) -> Result<Vec<Entry>, String> {
        Ok(match &self.only {
            Some(id) => vec![find(id)?],
            None if self.misbehave => catalogue().into_iter().take(1).chain(misbehaving()).collect(),
            None => catalogue(),
        })
    }

    fn run_every(&self, runner: Runner, entries: &[Listed]) -> Vec<Record> {
        let mut progress = Progress::new("defects", entries.len() as u64, "entries");
        let records = run_all(runner, entries, |record| {
            progress.advance(1, &record.id);
            if self.json {
                println!("{}", line(record));
            }
        });
        progress.finish(&format!("{} entries", entries.len()));
        records
    }
}

/// A record on one line; it holds nothing that JSON could refuse.
fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}

/// One record a line, so that a change of one entry changes one line.
fn store(outcomes: &Outcomes) -> Result<Vec<u8>, Box<dyn Error>> {
    let head = Outcomes { records: Vec::new(), ..outcomes.clone() };
    let head = serde_json::to_string(&head)?;
    let lines: Vec<String> = outcomes.records.iter().map(line).collect();
    Ok(format!("{}\n{}\n]}}\n", head.trim_end_matches("]}"), lines.join(",\n")).into_bytes())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Box<dyn Error>> {
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    Ok(serde_json::from_slice(&bytes).map_err(|e| format!("{}: not a file of this kind: {e}", path.display()))?)
}

fn listed(entries: &[Listed], id: &str) -> Result<Listed, String> {
    let known = || entries.iter().map(|e| e.id.as_str()).collect::<Vec<_>>().join(", ");
    let found = entries.iter().find(|e| e.id == id).cloned();
    found.ok_or_else(|| format!("there is no entry called `{id}`: use {}", known()))
}

fn find(id: &str) -> Result<Entry, String> {
    let entries = catalogue();
    let known = || entries.iter().map(|e| e.id).collect::<Vec<_>>().join(", ");
    let mut all = entries.iter().copied().chain(misbehaving());
    all.find(|e| e.id == id).ok_or_else(|| format!("there is no entry called `{id}`: use {}", known()))
}
