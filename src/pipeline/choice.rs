//! The multiple-choice stage, which a run has when its recipe names tasks.

use super::text::{CORPUS_REPORT, TOKENIZER, TRAIN};
use super::train::{Trained, last_checkpoint};
use super::{Context, Pipeline, PipelineError, part, program, read_json, write_json};
use crate::corpus::contamination::Protected;
use crate::corpus::normalise::normalise;
use crate::corpus::source::{Manifest, Reader, Store};
use crate::corpus::{CorpusReport, Document, read_documents};
use crate::eval::EvalError;
use crate::eval::choice::{ChoiceReport, Item, TaskReport, drawn, judge, load, score};
use crate::model::Decoder;
use crate::progress::Progress;
use crate::report::choice::table;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const CHOICE: &str = "choice.json";

impl Pipeline {
    /// Asks the trained model the questions of the recipe's tasks; says nothing when it names none.
    ///
    /// # Errors
    /// When a task's file is missing or wrong, or a file cannot be written.
    pub fn choice(&mut self) -> Result<String, PipelineError> {
        if self.recipe.eval.tasks.is_empty() {
            return Ok(String::new());
        }
        self.train()?;
        let eval = self.recipe.eval.clone();
        let manifest = Manifest::load(&eval.task_manifest)?;
        let weights = last_checkpoint(&self.recipe, "model.safetensors");
        let artifacts = [TRAIN, CORPUS_REPORT, TOKENIZER, &weights].map(|name| self.input(name));
        let mut inputs = artifacts.into_iter().collect::<Result<BTreeMap<_, _>, _>>()?;
        inputs.extend([
            part("tasks", &(&eval.tasks, eval.items, self.recipe.corpus.contamination_window)),
            part("seed", &self.recipe.seed),
            program(),
        ]);
        inputs.insert("manifest".to_owned(), manifest.hash());
        let root = self.root().to_path_buf();
        self.stage("choice", inputs, &[CHOICE.to_owned()], |context| make_choice(context, &manifest, &root))?;
        Ok(table(&read_json(&self.dir.path(CHOICE))?).to_text(super::WIDTH))
    }
}

fn make_choice(context: &Context, manifest: &Manifest, root: &Path) -> Result<(), PipelineError> {
    let (eval, window) = (&context.recipe.eval, context.recipe.corpus.contamination_window);
    let trained = Trained::load(root)?;
    let training = read_documents(&root.join(TRAIN))?;
    let corpus: CorpusReport = read_json(&root.join(CORPUS_REPORT))?;
    let tasks: Result<Vec<Task>, PipelineError> =
        eval.tasks.iter().map(|name| Task::read(name, manifest, context.store)).collect();
    let tasks = tasks?;
    let seed = context.recipe.seed;
    let asked: Vec<Vec<Item>> = tasks.iter().map(|task| task.draw(eval.items, seed)).collect();
    let choices: usize = asked.iter().flatten().map(|item| item.choices.len()).sum();
    let mut progress = Progress::new("choice", choices as u64, "choices");
    let mut decoder = Decoder::new(trained.config.clone(), false)?;
    let mut reports: Vec<TaskReport> = Vec::new();
    for (task, items) in tasks.iter().zip(&asked) {
        let scores = score(&mut decoder, &trained.parameters, &trained.tokenizer, items, &mut progress)?;
        let found = task.contaminated(&training, window);
        reports.push(judge(&task.name, task.items.len(), items, &scores, found, seed));
    }
    progress.finish(&format!("{} tasks", reports.len()));
    let protects = context.manifest.protect.is_some();
    let report = ChoiceReport {
        limit: eval.items,
        seed,
        window,
        dropped_documents: protects.then(|| corpus.contamination.dropped.values().sum()),
        tasks: reports,
    };
    write_json(&root.join(CHOICE), &report)
}

/// The questions of one task, and all its text.
struct Task {
    name: String,
    items: Vec<Item>,
    texts: Vec<String>,
}

impl Task {
    fn read(name: &str, manifest: &Manifest, store: &Store) -> Result<Self, PipelineError> {
        let refuse = |message: String| EvalError::Task { task: name.to_owned(), message };
        let id = format!("eval-{name}");
        let source = manifest.sources.iter().find(|source| source.id == id);
        let source = source.ok_or_else(|| refuse(format!("the manifest has no source `{id}`")))?;
        let (mut files, mut texts) = (Vec::new(), Vec::new());
        for file in &source.files {
            let bytes = store.bytes(source, file)?;
            texts.extend(Reader::task_texts(&file.path, &bytes).map_err(refuse)?);
            files.push((file.path.clone(), bytes));
        }
        let items = load(name, &files).map_err(refuse)?;
        Ok(Task { name: name.to_owned(), items, texts })
    }

    fn draw(&self, limit: usize, seed: u64) -> Vec<Item> {
        drawn(self.items.len(), limit, seed, &self.name).into_iter().map(|i| self.items[i].clone()).collect()
    }

    /// Training documents that share a window of words with any text of the task.
    fn contaminated(&self, training: &[Document], window: usize) -> u64 {
        let texts: Vec<String> = self.texts.iter().map(|text| normalise(text)).collect();
        let (found, _) = Protected::new(texts.iter().map(String::as_str), window).scan(training);
        found.into_iter().filter(|found| *found).count() as u64
    }
}
