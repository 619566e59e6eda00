//! Figures and the claims table of a run.

use super::choice::CHOICE;
use super::evaluate::EVAL;
use super::kept::REFERENCE;
use super::measure::measure;
use super::results::Results;
use super::text::{BALANCE, FERTILITY};
use super::train::METRICS;
use super::{Pipeline, PipelineError, kept, part, program, read_json, write_json};
use crate::artifact::{Hash, write_atomic};
use crate::defects::Outcomes;
use crate::report::defects::measured;
use crate::report::{Ledger, Measured, Measurements, arithmetic, choice};
use crate::train::{deterministic_hash, read_metrics};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const MEASUREMENTS: &str = "measurements.json";
const FIGURES: [&str; 4] = ["training", "fertility", "balance", "loss"];
const CHOICE_TABLE: [&str; 2] = ["tables/choice.md", "tables/choice.csv"];

/// Where runs of the defect catalogues and of the meter are kept, in the repository and on this machine.
pub(super) const COMMITTED: &str = "defects";
const HERE: &str = "runs/defects";
/// A run of Candle's catalogue, there.
pub(super) const CANDLE: &str = "outcomes.json";
/// A run of Burn's.
pub(super) const BURN: &str = "burn.json";
/// A run of the backward-efficiency meter.
pub(super) const EFFICIENCY: &str = "backward-efficiency.json";

/// The run whose measurements `shikha claims` shows as "this machine now" when none is named.
const LAST: &str = "runs/pocket";

impl Pipeline {
    /// Draws the figures into the run directory.
    ///
    /// # Errors
    /// When an earlier stage fails or a file cannot be written.
    pub fn figures(&mut self) -> Result<String, PipelineError> {
        self.results()?;
        let inputs = self.result_inputs()?;
        let mut outputs: Vec<String> = FIGURES.iter().flat_map(|id| figure_files(id)).collect();
        if self.has_choice() {
            outputs.extend(figure_files("choice").into_iter().chain(CHOICE_TABLE.map(str::to_owned)));
        }
        let results = self.load_results()?;
        let root = self.root().to_path_buf();
        self.stage("figures", inputs, &outputs, |_| draw(&results, &root))?;
        let lines = outputs.iter().filter(|o| o.ends_with("svg")).map(|o| format!("{}\n", self.dir.path(o).display()));
        Ok(lines.collect())
    }

    /// The claims table: reported, reference run, this machine now.
    ///
    /// # Errors
    /// When an earlier stage fails or a file cannot be written.
    pub fn claims(&mut self) -> Result<String, PipelineError> {
        self.results()?;
        let results = self.load_results()?;
        let mut measurements = Measurements {
            run: self.recipe.name.clone(),
            scale: results.scale(),
            values: measure(&results, &self.recipe.tokenizer.pre_tokenizer),
        };
        write_json(&self.dir.path(MEASUREMENTS), &measurements)?;
        measurements.values.extend(defects(Path::new(HERE))?);
        let ledger = Ledger::built_in()?;
        let table = ledger.table(reference(Path::new(""))?.as_ref(), Some(&measurements))?;
        write_atomic(&self.dir.path("claims.md"), table.to_markdown().as_bytes())?;
        write_atomic(&self.dir.path("claims.csv"), table.to_csv()?.as_bytes())?;
        let implied = arithmetic(&ledger)?;
        write_atomic(&self.dir.path("arithmetic.md"), implied.to_markdown().as_bytes())?;
        write_atomic(&self.dir.path("arithmetic.csv"), implied.to_csv()?.as_bytes())?;
        let scale = scale_line(&measurements);
        let same = kept::compare(self.root(), &self.recipe, Path::new(REFERENCE))?;
        let arbiter = results.verdict.report();
        let implied = format!("\nWhat the reported numbers imply:\n\n{}", implied.to_text(super::WIDTH));
        Ok(table.to_text(super::WIDTH) + &scale + &same + &arbiter + &implied)
    }

    fn results(&mut self) -> Result<(), PipelineError> {
        self.fertility()?;
        self.evaluate()?;
        self.choice().map(|_| ())
    }

    fn has_choice(&self) -> bool {
        !self.recipe.eval.tasks.is_empty()
    }

    fn load_results(&self) -> Result<Results, PipelineError> {
        let parameters = super::Trained::load(self.root())?.parameters.flat.len();
        Results::read(self.root(), parameters as u64)
    }

    /// The figures show nothing that depends on the machine, so its part of the metrics is left out.
    fn result_inputs(&self) -> Result<BTreeMap<String, Hash>, PipelineError> {
        let mut inputs = BTreeMap::from([self.input(EVAL)?, self.input(FERTILITY)?, self.input(BALANCE)?, program()]);
        if self.has_choice() {
            inputs.extend([self.input(CHOICE)?]);
        }
        inputs.insert("metrics".to_owned(), deterministic_hash(&read_metrics(&self.dir.path(METRICS))?));
        inputs.extend([part("recipe", &self.recipe)]);
        Ok(inputs)
    }
}

/// The claims table from what is stored: the reference run, and the last run of the pocket recipe as this machine now.
/// Runs nothing.
///
/// # Errors
/// When a stored file is damaged.
pub fn stored_claims() -> Result<String, PipelineError> {
    let (ledger, path) = (Ledger::built_in()?, Path::new(LAST).join(MEASUREMENTS));
    let mut now: Option<Measurements> = path.exists().then(|| read_json(&path)).transpose()?;
    let defects = defects(Path::new(HERE))?;
    if !defects.is_empty() {
        now.get_or_insert_default().values.extend(defects);
    }
    let reference = reference(Path::new(""))?;
    let table = ledger.table(reference.as_ref(), now.as_ref())?;
    let named = |what: &str, m: &Option<Measurements>| match m {
        Some(m) if !m.run.is_empty() => format!("\n{what}: recipe `{}`, {}.\n", m.run, m.scale),
        _ => String::new(),
    };
    Ok(table.to_text(super::WIDTH) + &named("Reference run", &reference) + &named("This machine now", &now))
}

fn scale_line(measurements: &Measurements) -> String {
    format!("\nThis machine now: recipe `{}`, {}.\n", measurements.run, measurements.scale)
}

/// The reference column of the repository at `root`: the committed run and the committed catalogue, as far as they
/// are there.
pub(super) fn reference(root: &Path) -> Result<Option<Measurements>, PipelineError> {
    let path = root.join(REFERENCE).join(MEASUREMENTS);
    let mut reference: Option<Measurements> = path.exists().then(|| read_json(&path)).transpose()?;
    let committed = defects(&root.join(COMMITTED))?;
    if !committed.is_empty() {
        reference.get_or_insert_default().values.extend(committed);
    }
    Ok(reference)
}

/// What the runs of the catalogues that are kept in `directory` measured; nothing where there are none.
fn defects(directory: &Path) -> Result<BTreeMap<String, Measured>, PipelineError> {
    let mut values = BTreeMap::new();
    for name in [CANDLE, BURN] {
        let path = directory.join(name);
        if path.exists() {
            let outcomes: Outcomes = read_json(&path)?;
            values.extend(measured(&outcomes, &format!("defects/{name}")));
        }
    }
    Ok(values)
}

fn figure_files(id: &str) -> [String; 2] {
    ["svg", "csv"].map(|kind| format!("figures/{id}.{kind}"))
}

fn draw(results: &Results, root: &Path) -> Result<(), PipelineError> {
    let directory = root.join("figures");
    for figure in results.figures()? {
        figure.save(&directory)?;
    }
    if let Some(report) = &results.choice {
        let table = choice::table(report);
        let [markdown, csv] = CHOICE_TABLE.map(|name| root.join(name));
        write_atomic(&markdown, format!("{}\n{}", table.to_markdown(), choice::notes(report)).as_bytes())?;
        write_atomic(&csv, table.to_csv()?.as_bytes())?;
    }
    Ok(())
}
