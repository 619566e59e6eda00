//! Figures and the claims table of a run.

use super::choice::CHOICE;
use super::evaluate::EVAL;
use super::measure::measure;
use super::text::{BALANCE, FERTILITY, Measurement, TokenBalance};
use super::train::METRICS;
use super::{Pipeline, PipelineError, part, program, read_json, write_json};
use crate::arbiter::Verdict;
use crate::artifact::{Hash, write_atomic};
use crate::defects::Outcomes;
use crate::eval::choice::ChoiceReport;
use crate::eval::{EvalReport, MODELS};
use crate::report::defects::measured;
use crate::report::figure::{self, Bar, Curve, LossPoint, Share};
use crate::report::{Ledger, Measured, Measurements, arithmetic, choice};
use crate::statistics::Interval;
use crate::train::{Row, deterministic_hash, read_metrics};
use std::collections::BTreeMap;
use std::path::Path;

const MEASUREMENTS: &str = "measurements.json";
const FIGURES: [&str; 4] = ["training", "fertility", "balance", "loss"];
const CHOICE_TABLE: [&str; 2] = ["tables/choice.md", "tables/choice.csv"];

/// Where the committed reference run lies, when there is one.
const REFERENCE: &str = "checkpoints/reference/measurements.json";

/// Where a run of the defect catalogue is kept: the committed one, and this machine's (`make defects`).
const DEFECTS: [&str; 2] = ["defects/outcomes.json", "runs/defects/outcomes.json"];

/// Everything the figures and claims are made of.
pub(super) struct Results {
    pub rows: Vec<Row>,
    pub eval: EvalReport,
    pub choice: Option<ChoiceReport>,
    pub fertility: Vec<Measurement>,
    pub balance: Vec<TokenBalance>,
    pub verdict: Verdict,
    pub parameters: u64,
}

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
        let directory = self.dir.path("figures");
        let scale = self.scale(&results);
        let root = self.root().to_path_buf();
        self.stage("figures", inputs, &outputs, |context| {
            draw(&results, &scale, context.recipe.seed, &directory)?;
            results.choice.as_ref().map_or(Ok(()), |choice| draw_choice(choice, &scale, &root))
        })?;
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
            scale: self.scale(&results),
            values: measure(&results, &self.recipe.tokenizer.pre_tokenizer),
        };
        measurements.values.extend(defects(DEFECTS[1])?);
        let ledger = Ledger::built_in()?;
        ledger.check(&measurements)?;
        write_json(&self.dir.path(MEASUREMENTS), &measurements)?;
        let mut reference: Option<Measurements> =
            Path::new(REFERENCE).exists().then(|| read_json(Path::new(REFERENCE))).transpose()?;
        let committed = defects(DEFECTS[0])?;
        if !committed.is_empty() {
            reference.get_or_insert_default().values.extend(committed);
        }
        let table = ledger.table(reference.as_ref(), Some(&measurements))?;
        write_atomic(&self.dir.path("claims.md"), table.to_markdown().as_bytes())?;
        write_atomic(&self.dir.path("claims.csv"), table.to_csv()?.as_bytes())?;
        let implied = arithmetic(&ledger)?;
        write_atomic(&self.dir.path("arithmetic.md"), implied.to_markdown().as_bytes())?;
        write_atomic(&self.dir.path("arithmetic.csv"), implied.to_csv()?.as_bytes())?;
        let scale = format!("\nThis machine now: recipe `{}`, {}.\n", measurements.run, measurements.scale);
        let arbiter = results.verdict.report();
        let implied = format!("\nWhat the reported numbers imply:\n\n{}", implied.to_text(super::WIDTH));
        Ok(table.to_text(super::WIDTH) + &scale + &arbiter + &implied)
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
        let path = |name: &str| self.dir.path(name);
        Ok(Results {
            rows: read_metrics(&path(METRICS))?,
            eval: read_json(&path(EVAL))?,
            choice: self.has_choice().then(|| read_json(&path(CHOICE))).transpose()?,
            fertility: read_json(&path(FERTILITY))?,
            balance: read_json(&path(BALANCE))?,
            verdict: read_json(&path("arbiter.json"))?,
            parameters: super::Trained::load(self.root())?.parameters.flat.len() as u64,
        })
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

    fn scale(&self, results: &Results) -> String {
        let tokens = results.rows.last().map_or(0, |row| row.tokens) as f64;
        format!("{:.2} M parameters, {:.2} M training tokens", results.parameters as f64 / 1e6, tokens / 1e6)
    }
}

fn figure_files(id: &str) -> [String; 2] {
    ["svg", "csv"].map(|kind| format!("figures/{id}.{kind}"))
}

fn draw_choice(report: &ChoiceReport, scale: &str, root: &Path) -> Result<(), PipelineError> {
    let shared: u64 = report.tasks.iter().map(|task| task.contaminated_documents).sum();
    let caption = format!(
        "{scale}; zero-shot, at most {} questions a task; seed {}; 95 % intervals; {shared} training documents share {} words.",
        report.limit, report.seed, report.window
    );
    figure::choice(&choice::rows(report), &caption)?.save(&root.join("figures"))?;
    let table = choice::table(report);
    let [markdown, csv] = CHOICE_TABLE.map(|name| root.join(name));
    write_atomic(&markdown, format!("{}\n{}", table.to_markdown(), choice::notes(report)).as_bytes())?;
    Ok(write_atomic(&csv, table.to_csv()?.as_bytes())?)
}

/// What a stored run of the catalogue measured; nothing where there is none.
fn defects(path: &str) -> Result<BTreeMap<String, Measured>, PipelineError> {
    if !Path::new(path).exists() {
        return Ok(BTreeMap::new());
    }
    let outcomes: Outcomes = read_json(Path::new(path))?;
    Ok(measured(&outcomes, path))
}

fn draw(results: &Results, scale: &str, seed: u64, directory: &Path) -> Result<(), PipelineError> {
    let held_out: Vec<&Measurement> = results.fertility.iter().filter(|m| m.texts == "held-out").collect();
    let texts: usize = held_out.iter().map(|m| m.fertility.texts).sum::<usize>() / 2;
    let resampled = format!("95 % bootstrap intervals over documents, {} resamples", results.eval.resamples);
    let bars: Vec<Bar> = held_out.iter().map(|m| bar(m)).collect();
    let counted =
        format!("Held-out text, {texts} documents, vocabulary at most {}; {resampled}.", vocabulary(&held_out));
    figure::fertility(&bars, &counted)?.save(directory)?;
    let documents: u64 = results.balance.first().map_or(0, |b| b.languages.iter().map(|l| l.documents).sum());
    figure::balance(&shares(&results.balance), &format!("Training text, {documents} documents."))?.save(directory)?;
    let caption = format!("{scale}; seed {seed}; validation on held-out windows.");
    figure::training(&curve(results, caption))?.save(directory)?;
    let documents: usize = results.eval.groups.iter().filter(|g| g.domain == "all").map(|g| g.documents).sum();
    let caption = format!("{scale}; {documents} held-out documents; seed {seed}; {resampled}.");
    figure::loss(&losses(&results.eval), &caption)?.save(directory)?;
    Ok(())
}

fn vocabulary(measurements: &[&Measurement]) -> usize {
    measurements.iter().map(|m| m.vocabulary).max().unwrap_or(0)
}

fn bar(m: &Measurement) -> Bar {
    let ratio = m.fertility.characters_per_token;
    let (language, pre_tokenizer) = (m.language.clone(), m.pre_tokenizer.clone());
    Bar { language, pre_tokenizer, value: ratio.value, interval: [ratio.low, ratio.high] }
}

fn shares(balances: &[TokenBalance]) -> Vec<Share> {
    let mut shares = Vec::new();
    if let Some(first) = balances.first() {
        let of = |f: fn(&crate::corpus::balance::LanguageBalance) -> f64| {
            first.languages.iter().map(|l| (l.language.clone(), f(l))).collect()
        };
        shares.push(Share { unit: "characters".to_owned(), shares: of(|l| l.character_share) });
        shares.push(Share { unit: "bytes".to_owned(), shares: of(|l| l.byte_share) });
    }
    for balance in balances {
        let tokens = balance.languages.iter().map(|l| (l.language.clone(), l.token_share)).collect();
        shares.push(Share { unit: format!("tokens, {}", balance.pre_tokenizer), shares: tokens });
    }
    shares
}

fn curve(results: &Results, caption: String) -> Curve {
    let training = results.rows.iter().filter_map(|row| Some((row.tokens as f64, row.loss?))).collect();
    let mut validation: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in &results.rows {
        for (language, loss) in &row.validation {
            if let Some(loss) = loss {
                validation.entry(language.clone()).or_default().push((row.tokens as f64, *loss));
            }
        }
    }
    Curve { training, validation, chance: results.eval.chance, caption }
}

fn losses(eval: &EvalReport) -> Vec<LossPoint> {
    let mut points = Vec::new();
    for group in eval.groups.iter().filter(|g| g.domain == "all") {
        for model in MODELS {
            if let Some(losses) = group.models.get(model) {
                let Interval { value, low, high } = losses.per_character;
                points.push(LossPoint {
                    language: group.language.clone(),
                    model: model.to_owned(),
                    value,
                    interval: [low, high],
                });
            }
        }
        let chance = eval.chance * group.tokens as f64 / group.characters as f64;
        let model = "chance".to_owned();
        points.push(LossPoint { language: group.language.clone(), model, value: chance, interval: [chance, chance] });
    }
    points
}
