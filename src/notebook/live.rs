//! A short training run in a cell, in a directory of its own that goes when the run does.

use super::NotebookError;
use super::pocket::Pocket;
use crate::arbiter::Verdict;
use crate::corpus::Document;
use crate::corpus::loader::{Batch, Batches, Loader, validation_windows};
use crate::corpus::shard::{Shard, write_shard};
use crate::error::FileError;
use crate::model::{Config, Parameters};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::report::figure::Curve;
use crate::tokenizer::Tokenizer;
use crate::train::{Checkpoint, Interrupt, Row, Setup, Start, read_metrics, train};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tempfile::TempDir;

/// Validation windows a language.
const WINDOWS: usize = 16;

/// A progress that prints a whole line on standard output every `every` steps and at the end: what a notebook can show
/// while a cell runs. Speed is left out, so that the same run prints the same.
pub fn told(label: &str, total: u64, every: u64) -> Progress {
    let label = label.to_owned();
    Progress::told(total, move |done, message| {
        if done == total || done.is_multiple_of(every.max(1)) {
            println!("{label} {done} of {total}: {}", message.split(',').next().unwrap_or_default());
        }
    })
}

/// Token shards of a corpus, and the model that is trained on them.
pub struct LiveRun {
    directory: TempDir,
    /// The recipe.
    pub recipe: Recipe,
    /// The model's shape.
    pub config: Config,
    data: Loader,
    validation: BTreeMap<String, Vec<Batch>>,
}

impl LiveRun {
    /// Writes the shards of the pocket corpus under `tokenizer`; trains nothing yet.
    ///
    /// # Errors
    /// When a shard cannot be written or is too short, or the sizes of the recipe do not fit together.
    pub fn new(pocket: &Pocket, tokenizer: &Tokenizer, recipe: &Recipe) -> Result<Self, NotebookError> {
        let directory = tempfile::tempdir().map_err(FileError::at("create a directory in", &std::env::temp_dir()))?;
        let config = Config::from_recipe(&recipe.model, tokenizer.vocabulary_size(), tokenizer.end_of_text())?;
        let (batch, context) = (recipe.train.batch, recipe.model.context);
        let (mut shards, mut validation) = (Vec::new(), BTreeMap::new());
        for language in recipe.mix.keys() {
            let shard = |part: &str, documents: &[Document]| -> Result<Shard, NotebookError> {
                let texts = documents.iter().filter(|d| d.language == *language).map(|d| d.text.as_str());
                let mut tokens = tokenizer.encode_all(texts)?;
                tokens.iter_mut().for_each(|ids| ids.push(tokenizer.end_of_text()));
                let (path, hash) = (directory.path().join(format!("{part}-{language}.bin")), tokenizer.hash()?);
                write_shard(&path, hash, tokenizer.vocabulary_size(), tokens.into_iter())?;
                Ok(Shard::open(&path, hash)?)
            };
            let held_out = shard("held-out", &pocket.text.held_out)?;
            validation.insert(language.clone(), validation_windows(language, &held_out, batch, context, WINDOWS)?);
            shards.push((language.clone(), shard("train", &pocket.text.train)?));
        }
        let data = Loader::new(shards, &recipe.mix, batch, context, recipe.seed)?;
        Ok(LiveRun { directory, recipe: recipe.clone(), config, data, validation })
    }

    /// Training batch `n`, from 0.
    ///
    /// # Errors
    /// As [`Batches::batch`].
    pub fn batch(&self, n: u64) -> Result<Batch, NotebookError> {
        Ok(self.data.batch(n)?)
    }

    /// How often each language's text is seen in the whole run, in epochs.
    pub fn epochs(&self) -> BTreeMap<String, f64> {
        self.data.epochs(self.recipe.train.steps)
    }

    /// Trains from the seed to the last step, with a line every `every` steps; gives the row of each step.
    ///
    /// # Errors
    /// When the arbiter refuses the model, or a file cannot be written.
    pub fn train(&self, every: u64) -> Result<Vec<Row>, NotebookError> {
        let setup = Setup {
            recipe: &self.recipe.train,
            config: &self.config,
            seed: self.recipe.seed,
            data: &self.data,
            validation: &self.validation,
            directory: self.directory.path(),
            made_from: &BTreeMap::new(),
        };
        let mut progress = told("step", self.recipe.train.steps, every);
        train(&setup, Start::Over, &Interrupt::default(), &mut progress)?;
        Ok(read_metrics(&self.file("metrics.jsonl"))?)
    }

    /// What the arbiter said before the first step.
    ///
    /// # Errors
    /// When nothing was trained yet.
    pub fn verdict(&self) -> Result<Verdict, NotebookError> {
        Ok(crate::pipeline::read_json(&self.file("arbiter.json"))?)
    }

    /// The weights after the last step.
    ///
    /// # Errors
    /// When the run is not finished.
    pub fn parameters(&self) -> Result<Parameters<f32>, NotebookError> {
        Ok(Checkpoint::load(self.directory.path(), self.recipe.train.steps, &self.config)?.parameters)
    }

    /// The curve of these rows, for the figure `training`.
    pub fn curve(&self, rows: &[Row]) -> Curve {
        let tokens = rows.last().map_or(0, |row| row.tokens) as f64;
        let parameters = Parameters::<f32>::count(&self.config) as f64;
        let mut validation: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for row in rows {
            for (language, loss) in &row.validation {
                validation.entry(language.clone()).or_default().extend(loss.map(|loss| (row.tokens as f64, loss)));
            }
        }
        Curve {
            training: rows.iter().filter_map(|row| Some((row.tokens as f64, row.loss?))).collect(),
            validation,
            chance: (self.config.vocab_size as f64).ln(),
            caption: format!(
                "{:.2} M parameters, {:.2} M training tokens; seed {}; validation on held-out windows.",
                parameters / 1e6,
                tokens / 1e6,
                self.recipe.seed
            ),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}
