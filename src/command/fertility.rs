//! `shikha fertility`: what tokenizers do to text, of a run or of the user's own.

use super::RunArgs;
use clap::{Args, Subcommand};
use shikha::pipeline::{ConsequenceOptions, ReleaseOptions, StudyOptions, consequence, draw_study, release, study};
use shikha::report::Table;
use shikha::statistics::Interval;
use shikha::tokenizer::PreTokenizer;
use shikha::tokenizer::fertility::{FileReport, measure_file};
use shikha::tokenizer::load::open;
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;

/// Where the study of the repository lies.
const STUDY: &str = "checkpoints/fertility";

/// Where the released tokenizer lies.
const RELEASE: &str = "checkpoints/tokenizer";

/// Width of the tables.
const WIDTH: usize = 118;

/// Which run, or which files.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct FertilityArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(subcommand)]
    own: Option<Own>,
}

#[derive(Subcommand)]
enum Own {
    /// Measure your own tokenizers on your own text files, line by line
    Measure(MeasureArgs),
    /// Train and measure every tokenizer of the study on public text, and store the measurements
    Study(StudyArgs),
    /// Train the released tokenizer, and those it was chosen from and beside, and write it with its card
    Release(ReleaseArgs),
    /// Train small models that differ in their tokenizer alone, and store what they cost and know
    Consequence(ConsequenceArgs),
    /// Draw the figures and tables of the stored study
    Figures(FiguresArgs),
}

/// Where the study reads and writes.
#[derive(Args)]
struct StudyArgs {
    /// Folder of raw files to look in before downloading
    #[arg(long, value_name = "DIR", env = "SHIKHA_MIRROR")]
    mirror: Option<PathBuf>,
    /// Folder of well-known tokenizers, as data-manifests/tokenizers.toml lays it out; may be given several times
    #[arg(long, value_name = "DIR")]
    tokenizers: Vec<PathBuf>,
    /// Where the measurements go
    #[arg(long, value_name = "DIR", default_value = STUDY)]
    out: PathBuf,
    /// Measure the well-known tokenizers again and keep the rest of the stored study
    #[arg(long)]
    known_only: bool,
}

impl StudyArgs {
    fn run(&self) -> Result<String, Box<dyn Error>> {
        let mirror = given(&self.mirror);
        let (tokenizers, out) = (self.tokenizers.clone(), self.out.clone());
        let options = StudyOptions { mirror, tokenizers, out, known_only: self.known_only };
        Ok(study(&options)?)
    }
}

/// A folder that was named; an empty variable names none.
fn given(mirror: &Option<PathBuf>) -> Option<PathBuf> {
    mirror.clone().filter(|path| !path.as_os_str().is_empty())
}

/// Where the release reads and writes.
#[derive(Args)]
struct ReleaseArgs {
    /// Folder of raw files to look in before downloading
    #[arg(long, value_name = "DIR", env = "SHIKHA_MIRROR")]
    mirror: Option<PathBuf>,
    /// Folder of the stored study, for the well-known tokenizers on the card
    #[arg(long, value_name = "DIR", default_value = STUDY)]
    study: PathBuf,
    /// Where the tokenizer, its measurements and its card go
    #[arg(long, value_name = "DIR", default_value = RELEASE)]
    out: PathBuf,
}

impl ReleaseArgs {
    fn run(&self) -> Result<String, Box<dyn Error>> {
        let (study, out) = (self.study.clone(), self.out.clone());
        Ok(release(&ReleaseOptions { mirror: given(&self.mirror), study, out })?)
    }
}

/// Which text, and where the measurements go.
#[derive(Args)]
struct ConsequenceArgs {
    /// Folder of raw files of the `small` manifest to look in before downloading
    #[arg(long, value_name = "DIR", env = "SHIKHA_MIRROR")]
    mirror: Option<PathBuf>,
    /// Manifest and corpus settings of this recipe: `pocket` needs no files
    #[arg(long, value_name = "RECIPE", default_value = "small")]
    text: String,
    /// Optimizer steps of each model
    #[arg(long, default_value_t = 400, value_name = "N")]
    steps: u64,
    /// Models of each tokenizer
    #[arg(long, default_value_t = 4, value_name = "N")]
    seeds: u64,
    /// Where the measurements go
    #[arg(long, value_name = "DIR", default_value = STUDY)]
    out: PathBuf,
}

impl ConsequenceArgs {
    fn run(&self) -> Result<String, Box<dyn Error>> {
        let (text, out) = (self.text.clone(), self.out.clone());
        let options =
            ConsequenceOptions { mirror: given(&self.mirror), text, steps: self.steps, seeds: self.seeds, out };
        Ok(consequence(&options)?)
    }
}

/// Which study, and where its figures go.
#[derive(Args)]
struct FiguresArgs {
    /// Folder of the stored study
    #[arg(long, value_name = "DIR", default_value = STUDY)]
    study: PathBuf,
    /// Where the figures go
    #[arg(long, value_name = "DIR", default_value = "figures")]
    figures: PathBuf,
}

/// Which tokenizers on which texts.
#[derive(Args)]
struct MeasureArgs {
    /// Text files, UTF-8, one sentence a line
    #[arg(required = true, value_name = "TEXT")]
    texts: Vec<PathBuf>,
    /// A tokenizer.json, SentencePiece .model or tiktoken rank file
    #[arg(long, value_name = "PATH")]
    tokenizer: PathBuf,
    /// Another tokenizer to compare with; may be given several times
    #[arg(long, value_name = "PATH")]
    other: Vec<PathBuf>,
    /// Where a tiktoken rank file cuts text: gpt2, cl100k, o200k, marks, marks-stop or grapheme
    #[arg(long, value_name = "NAME")]
    pattern: Option<String>,
    /// How many of the tokens that split letters to list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl FertilityArgs {
    /// Measures, and gives what to print.
    pub fn run(&self) -> Result<String, Box<dyn Error>> {
        match &self.own {
            Some(Own::Measure(args)) => args.run(),
            Some(Own::Study(args)) => args.run(),
            Some(Own::Release(args)) => args.run(),
            Some(Own::Consequence(args)) => args.run(),
            Some(Own::Figures(args)) => Ok(draw_study(&args.study, &args.figures)?),
            None => Ok(self.run.open()?.fertility()?),
        }
    }
}

impl MeasureArgs {
    fn run(&self) -> Result<String, Box<dyn Error>> {
        let pattern = self.pattern.as_deref().map(str::parse::<PreTokenizer>).transpose()?;
        let mut tokenizers = Vec::new();
        for path in std::iter::once(&self.tokenizer).chain(&self.other) {
            tokenizers.push((path.display().to_string(), open(path, pattern)?));
        }
        let mut reports = Vec::new();
        for text in &self.texts {
            for (name, tokenizer) in &tokenizers {
                reports.push(measure_file(tokenizer, name, text, self.top)?);
            }
        }
        if self.json {
            return Ok(serde_json::to_string_pretty(&reports)? + "\n");
        }
        Ok(reports.chunks(tokenizers.len()).map(describe).collect::<Vec<_>>().join("\n"))
    }
}

/// A table of one text: a row for each measure, a column for each tokenizer; then what splits and why.
fn describe(reports: &[FileReport]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let names: Vec<String> = (1..=reports.len()).map(|i| format!("tokenizer {i}")).collect();
    let header: Vec<&str> = std::iter::once("measure").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new("fertility", &header);
    let mut row = |name: &str, cell: &dyn Fn(&FileReport) -> String| {
        table.push(std::iter::once(name.to_owned()).chain(reports.iter().map(cell)).collect());
    };
    row("model", &|r| r.model.to_owned());
    row("vocabulary", &|r| r.vocabulary.to_string());
    row("tokens", &|r| r.fertility.tokens.to_string());
    row("characters/token", &|r| number(r.fertility.characters_per_token));
    row("bytes/token", &|r| number(r.fertility.bytes_per_token));
    row("tokens/word", &|r| number(r.fertility.tokens_per_word));
    row("tokens/line", &|r| number(r.fertility.tokens_per_text));
    row("words kept whole", &|r| r.fertility.whole_words.map_or("-".to_owned(), percent));
    row("ends inside a cluster", &|r| percent(r.fertility.ends_inside_cluster));
    row("ends inside a character", &|r| percent(r.fertility.ends_inside_character));
    row("lone bytes", &|r| percent(r.fertility.byte_fallback));
    row("Rényi efficiency", &|r| number(r.fertility.renyi_efficiency));
    row("lines lost", &|r| r.fertility.round_trip_failures.to_string());
    let f = &first.fertility;
    let mut text = format!(
        "{}: {} lines, {} words, {} characters, {} bytes\n\n",
        first.text, f.texts, f.words, f.characters, f.bytes
    );
    text += &table.to_text(WIDTH);
    for (name, report) in names.iter().zip(reports) {
        let _ = writeln!(text, "\n{name}: {}", report.tokenizer);
        let splitters = report.splitters.iter().map(|s| format!("`{}` {}", s.token.replace('\n', "\\n"), s.count));
        let splitters = splitters.collect::<Vec<_>>().join(", ");
        if !splitters.is_empty() {
            let _ = writeln!(text, "  ends inside a letter most often: {splitters}");
        }
        let _ = writeln!(text, "  advice: {}", report.advice);
    }
    text
}

fn number(found: Interval) -> String {
    format!("{:.2} [{:.2}, {:.2}]", found.value, found.low, found.high)
}

fn percent(found: Interval) -> String {
    format!("{:.1} % [{:.1}, {:.1}]", 100.0 * found.value, 100.0 * found.low, 100.0 * found.high)
}
