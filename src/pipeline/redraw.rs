//! Every figure and table of the report again, from the stored measurements alone: no text, no training, no network.

use super::kept::{self, REFERENCE};
use super::report::{BURN, CANDLE, COMMITTED, EFFICIENCY, reference};
use super::study_consequence::load_consequence;
use super::{PipelineError, load_study, read_json, release_card};
use crate::artifact::write_atomic;
use crate::corpus::source::Manifest;
use crate::defects::meter::Efficiency;
use crate::defects::{Matrix, Outcomes};
use crate::error::FileError;
use crate::report::figure::{self, Figure};
use crate::report::page::page;
use crate::report::registry::{self, Kind, REGISTRY};
use crate::report::{
    Ledger, Numbers, Table, arbiter, arithmetic, consequence, cost, croissant, defects, efficiency, fill, gpu, release,
    runs, sources, speed, streaming, study,
};
use crate::tokenizer::study::Release;
use crate::train::Summary;
use crate::train::bench::Preset;
use crate::train::record::Record;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const STUDY: &str = "checkpoints/fertility";
const RELEASE: &str = "checkpoints/tokenizer";
const MATRIX: &str = "defects/matrix/candle.json";
const BURN_MATRIX: &str = "defects/matrix/burn.json";
const BURN_VULKAN: &str = "defects/matrix/burn-vulkan.json";
const SCORE: &str = "checkpoints/arbiter/score.json";
const BENCH: &str = "checkpoints/bench";
const GPU: &str = "checkpoints/gpu";
const NUMBERS: &str = "paper/generated/numbers.json";
/// Manifests whose metadata is written beside them.
const MANIFESTS: [&str; 3] = ["pocket", "small", "eval"];
const PAGE: &str = "paper/report.html";
const README: &str = "README.md";
const REPRODUCING: &str = "REPRODUCING.md";

/// Files by their path in the repository.
pub type Drawn = BTreeMap<String, Vec<u8>>;

/// Draws every figure and table of the registry from what is stored in the repository at `root`.
///
/// # Errors
/// When a stored measurement is missing, was changed or does not parse.
pub fn redraw(root: &Path) -> Result<Drawn, PipelineError> {
    let mut drawn = Stage::default();
    let ledger = Ledger::built_in()?;
    run(root, &ledger, &mut drawn)?;
    fertility(root, &mut drawn)?;
    catalogue(root, &mut drawn)?;
    bench(root, &mut drawn)?;
    drawn.table("arithmetic", arithmetic(&ledger)?)?;
    drawn.table("kernels", gpu::kernels()?)?;
    let records = records(root)?;
    drawn.table("gpu", gpu::table(&ledger, &records)?)?;
    drawn.table("runs", runs::table(&ledger, &records)?)?;
    drawn.table("registry", registry::table())?;
    drawn.table("sources", sources(&Manifest::load("small")?))?;
    for name in MANIFESTS {
        let metadata = croissant(name, &Manifest::load(name)?);
        drawn.files.insert(format!("data-manifests/{name}.croissant.json"), metadata.into_bytes());
    }
    drawn.files.insert(NUMBERS.to_owned(), drawn.numbers.to_json()?.into_bytes());
    let page = page(&drawn.figures, &drawn.tables, &drawn.numbers);
    drawn.files.insert(PAGE.to_owned(), page.into_bytes());
    for (document, blocks) in [(README, &drawn.readme), (REPRODUCING, &drawn.reproducing)] {
        let path = root.join(document);
        let text = std::fs::read_to_string(&path).map_err(FileError::at("read", &path))?;
        drawn.files.insert(document.to_owned(), fill(&text, blocks)?.into_bytes());
    }
    Ok(drawn.files)
}

/// Redraws and writes what changed; a line a file.
///
/// # Errors
/// As [`redraw`], and when a file cannot be written.
pub fn redraw_into(root: &Path) -> Result<String, PipelineError> {
    let drawn = redraw(root)?;
    let mut lines = String::new();
    for (name, bytes) in &drawn {
        let path = root.join(name);
        if std::fs::read(&path).ok().as_deref() != Some(bytes) {
            write_atomic(&path, bytes)?;
            lines += &format!("{}\n", path.display());
        }
    }
    Ok(lines + &format!("{} files are what the stored measurements give\n", drawn.len()))
}

/// Redraws and compares with what lies in the repository, without writing.
///
/// # Errors
/// [`PipelineError::Stale`] naming every file that is missing or differs.
pub fn check_drawn(root: &Path) -> Result<String, PipelineError> {
    let drawn = redraw(root)?;
    let differs = |(name, bytes): &(&String, &Vec<u8>)| std::fs::read(root.join(name)).ok().as_ref() != Some(bytes);
    let stale: Vec<String> = drawn.iter().filter(differs).map(|(name, _)| name.clone()).collect();
    if stale.is_empty() {
        return Ok(format!("{} files are what the stored measurements give\n", drawn.len()));
    }
    Err(PipelineError::Stale { files: stale })
}

/// What was drawn so far.
#[derive(Default)]
struct Stage {
    files: Drawn,
    figures: BTreeMap<&'static str, Figure>,
    tables: BTreeMap<&'static str, Table>,
    numbers: Numbers,
    /// Generated parts of the README, and of the document that says how to reproduce.
    readme: BTreeMap<&'static str, String>,
    reproducing: BTreeMap<&'static str, String>,
}

impl Stage {
    fn figure(&mut self, figure: Figure) {
        self.files.insert(format!("figures/{}.svg", figure.id), figure.svg.clone().into_bytes());
        self.files.insert(format!("figures/{}.csv", figure.id), figure.csv.clone().into_bytes());
        self.figures.insert(figure.id, figure);
    }

    /// A table by its id, headed by the registry's title.
    fn table(&mut self, id: &'static str, table: Table) -> Result<(), PipelineError> {
        let title = REGISTRY.iter().find(|e| e.kind == Kind::Table && e.id == id).map_or(id, |entry| entry.title);
        self.files.insert(format!("paper/generated/{id}.csv"), table.to_csv()?.into_bytes());
        let markdown = format!("# {title}\n\n{}", table.to_markdown());
        self.files.insert(format!("paper/generated/{id}.md"), markdown.into_bytes());
        self.tables.insert(id, table);
        Ok(())
    }
}

/// Every record of a GPU or of a run, by file name, which begins with the date.
fn records(root: &Path) -> Result<Vec<Record>, PipelineError> {
    let folder = root.join(GPU);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(Vec::new()) };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(FileError::at("read", &folder))?.path());
    }
    paths.sort();
    let is_record = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "json");
    Ok(paths.iter().filter(is_record).map(|path| Record::load(path)).collect::<Result<_, _>>()?)
}

fn run(root: &Path, ledger: &Ledger, drawn: &mut Stage) -> Result<(), PipelineError> {
    let (results, _) = kept::results(&root.join(REFERENCE))?;
    results.figures()?.into_iter().for_each(|figure| drawn.figure(figure));
    for (id, table) in ["evaluation", "choice"].into_iter().zip(results.tables()) {
        drawn.table(id, table)?;
    }
    let reference = reference(root)?.unwrap_or_default();
    let claims = ledger.table(Some(&reference), None)?.without("this machine now");
    let scale = format!("\nReference run: recipe `{}`, {}.\n", reference.run, reference.scale);
    drawn.readme.insert("claims", claims.to_markdown() + &scale);
    drawn.table("claims", claims)?;
    drawn.reproducing.insert("claims", ledger.reproducing(&reference).to_markdown() + &scale);
    let numbers = &mut drawn.numbers;
    numbers.claims(ledger, &reference);
    numbers.training(&Summary::of(&results.rows, results.parameters), results.recipe.seed);
    numbers.evaluation(&results.eval);
    results.balance.first().into_iter().for_each(|balance| numbers.corpus(&balance.languages));
    results.choice.iter().for_each(|report| numbers.choice(report));
    Ok(())
}

fn fertility(root: &Path, drawn: &mut Stage) -> Result<(), PipelineError> {
    let stored = load_study(&root.join(STUDY))?;
    drawn.figure(figure::cause(&stored.cause)?);
    drawn.figure(figure::vocabulary(&stored.trained)?);
    for (id, table) in study::generated(&stored) {
        drawn.table(id, table)?;
    }
    drawn.numbers.study(&stored);
    let models = load_consequence(&root.join(STUDY))?;
    drawn.figure(figure::consequence(&models)?);
    drawn.table("budget", consequence::budget(&models))?;
    drawn.table("consequence", consequence::loss(&models))?;
    drawn.numbers.consequence(&models);
    let released: Release = read_json(&root.join(RELEASE).join("release.json"))?;
    drawn.table("released-tokenizer", release::candidates(&released))?;
    drawn.readme.insert("release", release::headline(&released));
    drawn.numbers.release(&released);
    let card = release_card(&root.join(RELEASE), &root.join(STUDY))?;
    drawn.files.insert(format!("{RELEASE}/tokenizer.md"), card.into_bytes());
    Ok(())
}

fn catalogue(root: &Path, drawn: &mut Stage) -> Result<(), PipelineError> {
    let outcomes: Outcomes = read_json(&root.join(COMMITTED).join(CANDLE))?;
    let matrix: Matrix = read_json(&root.join(MATRIX))?;
    defects::figures(&outcomes)?.into_iter().for_each(|figure| drawn.figure(figure));
    drawn.figure(defects::matrix_figure(&matrix)?);
    drawn.table("candle-defects", defects::table(&outcomes))?;
    drawn.table("candle-versions", defects::matrix_table(&matrix))?;
    drawn.numbers.defects(&outcomes, &matrix);
    let burn: Outcomes = read_json(&root.join(COMMITTED).join(BURN))?;
    let versions: Matrix = read_json(&root.join(BURN_MATRIX))?;
    let meter: Efficiency = read_json(&root.join(COMMITTED).join(EFFICIENCY))?;
    drawn.figure(efficiency::figure(&meter)?);
    drawn.table("burn-defects", defects::table(&burn))?;
    drawn.table("burn-versions", defects::matrix_table(&versions))?;
    let attempts: Matrix = read_json(&root.join(BURN_VULKAN))?;
    drawn.table("burn-fusion", defects::attempts_table(&attempts))?;
    drawn.table("backward-efficiency", efficiency::table(&meter))?;
    drawn.numbers.burn(&burn, &versions, &attempts, &meter);
    let score = read_json(&root.join(SCORE))?;
    drawn.figure(arbiter::figure(&score)?);
    drawn.table("arbiter-score", arbiter::table(&score))?;
    drawn.readme.insert("arbiter", arbiter::headline(&score));
    drawn.numbers.arbiter(&score);
    Ok(())
}

fn bench(root: &Path, drawn: &mut Stage) -> Result<(), PipelineError> {
    let text = |name: &str| {
        let path = root.join(BENCH).join(name);
        std::fs::read_to_string(&path).map_err(FileError::at("read", &path))
    };
    let points: Vec<_> = read_json(&root.join(BENCH).join("cost.json"))?;
    drawn.figure(figure::cost(&points, &cost::caption(&points))?);
    drawn.table("cost", cost::table(&points))?;
    let preset = Preset::named("bench-17m")?;
    let (ways, tokens) = (speed::ways(&text("speed.csv")?)?, preset.batch * preset.time);
    let table = speed::table(&ways, tokens);
    drawn.readme.insert("speed", table.to_markdown());
    drawn.table("speed", table)?;
    drawn.numbers.speed(&ways, tokens);
    let streamed = read_json(&root.join(BENCH).join("stream.json"))?;
    drawn.numbers.streaming(&streamed);
    drawn.table("stream", streaming::table(&streamed))?;
    drawn.table("ops", speed::ops(&text("ops.csv")?)?)
}
