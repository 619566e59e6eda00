//! The evaluation stage.

use super::text::{HELD_OUT, TOKENIZER, shard_path};
use super::train::{Trained, last_checkpoint};
use super::{Pipeline, PipelineError, part, program, read_json, write_json};
use crate::corpus::read_documents;
use crate::corpus::shard::Shard;
use crate::eval::{EvalReport, Evaluation, evaluate};
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
        let weights = last_checkpoint(&self.recipe, "model.safetensors");
        let mut inputs = BTreeMap::from([self.input(HELD_OUT)?, self.input(TOKENIZER)?, self.input(&weights)?]);
        for language in self.recipe.mix.keys() {
            inputs.extend([self.input(&shard_path("train", language))?]);
        }
        inputs.extend([part("recipe.eval", &self.recipe.eval), part("seed", &self.recipe.seed), program()]);
        let root = self.root().to_path_buf();
        self.stage("eval", inputs, &[EVAL.to_owned()], |_| make_evaluation(&root))?;
        let report: EvalReport = read_json(&self.dir.path(EVAL))?;
        Ok(table(&report).to_text(super::WIDTH))
    }
}

fn make_evaluation(root: &Path) -> Result<(), PipelineError> {
    let trained = Trained::load(root)?;
    let hash = trained.tokenizer.hash()?;
    let mut counts = vec![0u64; trained.config.vocab_size];
    for language in trained.recipe.mix.keys() {
        let shard = Shard::open(&root.join(shard_path("train", language)), hash)?;
        (0..shard.len()).for_each(|i| counts[shard.get(i) as usize] += 1);
    }
    let evaluation = Evaluation {
        config: &trained.config,
        parameters: &trained.parameters,
        seed: trained.recipe.seed,
        tokenizer: &trained.tokenizer,
        token_counts: &counts,
        recipe: &trained.recipe.eval,
    };
    let mut progress = Progress::new("eval", 3, "models");
    let mut held_out = read_documents(&root.join(HELD_OUT))?;
    held_out.retain(|d| trained.recipe.mix.contains_key(&d.language));
    let report = evaluate(&evaluation, &held_out, &mut progress)?;
    progress.finish(&format!("{} groups of documents", report.groups.len()));
    write_json(&root.join(EVAL), &report)
}

fn table(report: &EvalReport) -> Table {
    let header = ["language", "domain", "documents", "model", "nats/token", "nats/character", "nats/byte"];
    let mut table = Table::new("eval", &header);
    for group in &report.groups {
        for (name, losses) in &group.models {
            let [token, character, byte] = [losses.per_token, losses.per_character, losses.per_byte]
                .map(|i| format!("{:.3} [{:.3}, {:.3}]", i.value, i.low, i.high));
            let documents = group.documents.to_string();
            table.push(vec![
                group.language.clone(),
                group.domain.clone(),
                documents,
                name.clone(),
                token,
                character,
                byte,
            ]);
        }
    }
    table
}
