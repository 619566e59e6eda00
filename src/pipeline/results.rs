//! What a run measured, read back from its directory, and the figures and tables made of it.

use super::choice::CHOICE;
use super::evaluate::{EVAL, table as evaluation};
use super::text::{BALANCE, FERTILITY, Measurement, TokenBalance};
use super::train::METRICS;
use super::{PipelineError, read_json};
use crate::arbiter::Verdict;
use crate::eval::choice::ChoiceReport;
use crate::eval::{EvalReport, MODELS};
use crate::recipe::Recipe;
use crate::report::figure::{self, Bar, Curve, Figure, LossPoint, Share};
use crate::report::{Table, choice};
use crate::statistics::Interval;
use crate::train::{Row, read_metrics};
use std::collections::BTreeMap;
use std::path::Path;

/// Everything the figures and claims of a run are made of.
pub(super) struct Results {
    pub recipe: Recipe,
    pub rows: Vec<Row>,
    pub eval: EvalReport,
    pub choice: Option<ChoiceReport>,
    pub fertility: Vec<Measurement>,
    pub balance: Vec<TokenBalance>,
    pub verdict: Verdict,
    pub parameters: u64,
}

impl Results {
    /// Reads a run's results; `parameters` is how many numbers its model has.
    pub(super) fn read(directory: &Path, parameters: u64) -> Result<Self, PipelineError> {
        let recipe = Recipe::from_file(&directory.join("recipe.toml"))?;
        let choice = !recipe.eval.tasks.is_empty();
        Ok(Results {
            rows: read_metrics(&directory.join(METRICS))?,
            eval: read_json(&directory.join(EVAL))?,
            choice: choice.then(|| read_json(&directory.join(CHOICE))).transpose()?,
            fertility: read_json(&directory.join(FERTILITY))?,
            balance: read_json(&directory.join(BALANCE))?,
            verdict: read_json(&directory.join("arbiter.json"))?,
            parameters,
            recipe,
        })
    }

    /// The size of the run, for a caption.
    pub(super) fn scale(&self) -> String {
        let tokens = self.rows.last().map_or(0, |row| row.tokens) as f64;
        format!("{:.2} M parameters, {:.2} M training tokens", self.parameters as f64 / 1e6, tokens / 1e6)
    }

    /// The figures of the run: training, fertility, balance, loss, and choice where it has tasks.
    pub(super) fn figures(&self) -> Result<Vec<Figure>, PipelineError> {
        let (scale, seed) = (self.scale(), self.recipe.seed);
        let held_out: Vec<&Measurement> = self.fertility.iter().filter(|m| m.texts == "held-out").collect();
        let texts: usize = held_out.iter().map(|m| m.fertility.texts).sum::<usize>() / 2;
        let resampled = format!("95 % bootstrap intervals over documents, {} resamples", self.eval.resamples);
        let vocabulary = held_out.iter().map(|m| m.vocabulary).max().unwrap_or(0);
        let bars: Vec<Bar> = held_out.iter().map(|m| bar(m)).collect();
        let counted = format!("Held-out text, {texts} documents, vocabulary at most {vocabulary}; {resampled}.");
        let trained_on: u64 = self.balance.first().map_or(0, |b| b.languages.iter().map(|l| l.documents).sum());
        let curve = curve(self, format!("{scale}; seed {seed}; validation on held-out windows."));
        let documents: usize = self.eval.groups.iter().filter(|g| g.domain == "all").map(|g| g.documents).sum();
        let caption = format!("{scale}; {documents} held-out documents; seed {seed}; {resampled}.");
        let mut figures = vec![
            figure::fertility(&bars, &counted)?,
            figure::balance(&shares(&self.balance), &format!("Training text, {trained_on} documents."))?,
            figure::training(&curve)?,
            figure::loss(&losses(&self.eval), &caption)?,
        ];
        if let Some(report) = &self.choice {
            figures.push(figure::choice(&choice::rows(report), &choice_caption(report, &scale))?);
        }
        Ok(figures)
    }

    /// The tables of the run: evaluation, and choice where it has tasks.
    pub(super) fn tables(&self) -> Vec<Table> {
        let choice = self.choice.as_ref().map(choice::table);
        [evaluation(&self.eval)].into_iter().chain(choice).collect()
    }
}

fn choice_caption(report: &ChoiceReport, scale: &str) -> String {
    let shared: u64 = report.tasks.iter().map(|task| task.contaminated_documents).sum();
    format!(
        "{scale}; zero-shot, at most {} questions a task; seed {}; 95 % intervals; {shared} training documents share {} words.",
        report.limit, report.seed, report.window
    )
}

fn bar(m: &Measurement) -> Bar {
    let ratio = m.fertility.characters_per_token;
    let (language, pre_tokenizer) = (m.language.clone(), m.pre_tokenizer.clone());
    Bar { language, pre_tokenizer, value: ratio.value, interval: [ratio.low, ratio.high] }
}

/// The shares of each language in characters, bytes and the tokens of each tokenizer.
pub(crate) fn shares(balances: &[TokenBalance]) -> Vec<Share> {
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
