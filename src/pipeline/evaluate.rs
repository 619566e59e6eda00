//! The evaluation stage.

use super::text::{HELD_OUT, TOKENIZER, TRAIN, shard_path};
use super::train::{Trained, last_checkpoint};
use super::{Pipeline, PipelineError, part, program, read_json, write_json};
use crate::corpus::shard::Shard;
use crate::corpus::{Document, read_documents};
use crate::eval::{EvalReport, Evaluation, Losses, MODELS, Ngram, evaluate};
use crate::progress::Progress;
use crate::report::Table;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const EVAL: &str = "eval.json";

impl Pipeline {
    /// Evaluates the trained model beside its twin on held-out documents.
    ///
    /// # Errors
    /// When the model and the tokenizer do not fit, or a file cannot be written.
    pub fn evaluate(&mut self) -> Result<String, PipelineError> {
        self.train()?;
        self.shards()?;
        let weights = last_checkpoint(&self.recipe, "model.safetensors");
        let mut inputs =
            BTreeMap::from([self.input(HELD_OUT)?, self.input(TRAIN)?, self.input(TOKENIZER)?, self.input(&weights)?]);
        for language in self.recipe.mix.keys() {
            inputs.extend([self.input(&shard_path("train", language))?]);
        }
        let eval = &self.recipe.eval;
        inputs.extend([
            part("recipe.eval", &(eval.documents, eval.bootstrap)),
            part("seed", &self.recipe.seed),
            program(),
        ]);
        let root = self.root().to_path_buf();
        self.stage("eval", inputs, &[EVAL.to_owned()], |_| make_evaluation(&root))?;
        let report: EvalReport = read_json(&self.dir.path(EVAL))?;
        Ok(table(&report).to_text(super::WIDTH))
    }
}

fn make_evaluation(root: &Path) -> Result<(), PipelineError> {
    let trained = Trained::load(root)?;
    let hash = trained.tokenizer.hash()?;
    let mut streams = Vec::new();
    for language in trained.recipe.mix.keys() {
        let shard = Shard::open(&root.join(shard_path("train", language)), hash)?;
        let mut tokens = vec![0; shard.len() as usize];
        shard.window(0, &mut tokens);
        streams.push(tokens);
    }
    let mut counts = vec![0u64; trained.config.vocab_size];
    streams.iter().flatten().for_each(|token| counts[*token as usize] += 1);
    let streams: Vec<&[u32]> = streams.iter().map(Vec::as_slice).collect();
    let ngram = Ngram::train(&streams, trained.config.vocab_size, trained.tokenizer.end_of_text());
    let in_mix = |documents: &mut Vec<Document>| documents.retain(|d| trained.recipe.mix.contains_key(&d.language));
    let [mut training, mut held_out] = [read_documents(&root.join(TRAIN))?, read_documents(&root.join(HELD_OUT))?];
    [&mut training, &mut held_out].into_iter().for_each(in_mix);
    let evaluation = Evaluation {
        config: &trained.config,
        parameters: &trained.parameters,
        seed: trained.recipe.seed,
        tokenizer: &trained.tokenizer,
        token_counts: &counts,
        ngram: &ngram,
        training: &training,
        recipe: &trained.recipe.eval,
    };
    let mut progress = Progress::new("eval", 5, "models");
    let report = evaluate(&evaluation, &held_out, &mut progress)?;
    progress.finish(&format!("{} groups of documents", report.groups.len()));
    write_json(&root.join(EVAL), &report)
}

pub(super) fn table(report: &EvalReport) -> Table {
    let header = ["language", "domain", "documents", "model", "nats/token", "nats/character", "nats/byte"];
    let mut table = Table::new("eval", &header);
    for group in &report.groups {
        for name in MODELS {
            let losses = group.models.get(name).map_or([const { String::new() }; 3], cells);
            let group = [&group.language, &group.domain, &group.documents.to_string(), name].map(str::to_owned);
            table.push(group.into_iter().chain(losses).collect());
        }
    }
    for row in &report.memorisation {
        let name = "trained".to_owned();
        let first = [row.language.clone(), "all, training text".to_owned(), row.documents.to_string(), name];
        table.push(first.into_iter().chain(cells(&row.training)).collect());
    }
    table
}

fn cells(losses: &Losses) -> [String; 3] {
    [losses.per_token, losses.per_character, losses.per_byte]
        .map(|i| format!("{:.3} [{:.3}, {:.3}]", i.value, i.low, i.high))
}
