//! A model as a Hugging Face directory, out of a run and back.

use super::evaluate::EVAL;
use super::text::TOKENIZER;
use super::train::{METRICS, Trained};
use super::{PipelineError, read_json, write_json};
use crate::arbiter::Verdict;
use crate::artifact::write_atomic;
use crate::corpus::source::{Manifest, Role};
use crate::error::FileError;
use crate::eval::EvalReport;
use crate::model::{Config, ModelError, Parameters, WeightType, read_model, write_model};
use crate::report::{Card, CardLoss, CardSource, CardTraining};
use crate::statistics::Interval;
use crate::tokenizer::{END_OF_TEXT, Tokenizer};
use crate::train::{Summary, read_metrics};
use serde_json::json;
use std::path::Path;

const CARD: &str = "shikha.json";

/// A model that can be used anywhere: its shape, weights, tokenizer and card.
pub struct Exported {
    /// The model's shape.
    pub config: Config,
    /// Its weights.
    pub parameters: Parameters<f32>,
    /// Its tokenizer.
    pub tokenizer: Tokenizer,
    /// What it was made of.
    pub card: Card,
}

impl Exported {
    /// Loads the model of a finished run, or one that was exported or imported.
    ///
    /// # Errors
    /// [`PipelineError::NoModel`] when the directory is neither, others when a file is missing or wrong.
    pub fn load(directory: &Path) -> Result<Self, PipelineError> {
        if directory.join("recipe.toml").exists() {
            return Self::of_run(directory);
        }
        if !directory.join("config.json").exists() {
            return Err(PipelineError::NoModel { directory: directory.to_path_buf() });
        }
        let (config, parameters) = read_model(directory)?;
        let tokenizer = Tokenizer::load(&directory.join(TOKENIZER))?;
        let found = (tokenizer.vocabulary_size(), tokenizer.end_of_text());
        if found != (config.vocab_size, config.bos_token_id) {
            let message = format!(
                "{TOKENIZER} has {} tokens and ends a text with {}, the model expects {} and {}; put its own {TOKENIZER} there",
                found.0, found.1, config.vocab_size, config.bos_token_id
            );
            return Err(ModelError::Config(message).into());
        }
        let path = directory.join(CARD);
        let card = if path.exists() { read_json(&path)? } else { unknown(directory, &config, &parameters) };
        Ok(Exported { config, parameters, tokenizer, card })
    }

    fn of_run(directory: &Path) -> Result<Self, PipelineError> {
        let trained = Trained::load(directory)?;
        let card = card(directory, &trained)?;
        let Trained { config, parameters, tokenizer, .. } = trained;
        Ok(Exported { config, parameters, tokenizer, card })
    }

    /// Writes a directory that loads as a Hugging Face `LlamaForCausalLM`: configuration, weights,
    /// tokenizer, model card. The same model gives the same bytes.
    ///
    /// # Errors
    /// [`PipelineError::IsRun`] when `directory` is a run, others when a file cannot be written.
    pub fn save(&self, directory: &Path, kind: WeightType) -> Result<(), PipelineError> {
        if directory.join("recipe.toml").exists() {
            return Err(PipelineError::IsRun { directory: directory.to_path_buf() });
        }
        std::fs::create_dir_all(directory).map_err(FileError::at("create the directory", directory))?;
        write_model(directory, &self.config, &self.parameters, kind)?;
        self.tokenizer.save(&directory.join(TOKENIZER))?;
        let special = json!({ "bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT });
        write_json(&directory.join("special_tokens_map.json"), &special)?;
        let id = self.tokenizer.end_of_text();
        let token = json!({
            "content": END_OF_TEXT, "lstrip": false, "normalized": false, "rstrip": false,
            "single_word": false, "special": true,
        });
        let config = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END_OF_TEXT,
            "eos_token": END_OF_TEXT,
            "added_tokens_decoder": { id.to_string(): token },
            "clean_up_tokenization_spaces": false,
            "model_max_length": self.config.max_position_embeddings,
        });
        write_json(&directory.join("tokenizer_config.json"), &config)?;
        write_json(&directory.join(CARD), &self.card)?;
        Ok(write_atomic(&directory.join("README.md"), self.card.to_markdown().as_bytes())?)
    }
}

/// The card of a model that came without one.
fn unknown(directory: &Path, config: &Config, parameters: &Parameters<f32>) -> Card {
    Card {
        name: directory.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        parameters: parameters.flat.len() as u64,
        vocabulary: config.vocab_size,
        context: config.max_position_embeddings,
        ..Card::default()
    }
}

/// The card of a run, from what it recorded.
fn card(directory: &Path, trained: &Trained) -> Result<Card, PipelineError> {
    let recipe = &trained.recipe;
    let parameters = trained.parameters.flat.len() as u64;
    let summary = Summary::of(&read_metrics(&directory.join(METRICS))?, parameters);
    let verdict: Verdict = read_json(&directory.join("arbiter.json"))?;
    let total: f64 = recipe.mix.values().sum();
    let training = CardTraining {
        tokens: summary.tokens,
        steps: recipe.train.steps,
        seed: recipe.seed,
        mix: recipe.mix.iter().map(|(language, share)| (language.clone(), share / total)).collect(),
        hours: summary.seconds / 3600.0,
        energy_kwh: None,
        checked_tensors: verdict.passed().then_some(verdict.parameters as u64),
    };
    let path = directory.join(EVAL);
    let eval: Option<EvalReport> = path.exists().then(|| read_json(&path)).transpose()?;
    Ok(Card {
        name: recipe.name.clone(),
        parameters,
        vocabulary: trained.config.vocab_size,
        context: trained.config.max_position_embeddings,
        training: Some(training),
        losses: eval.as_ref().map(losses).unwrap_or_default(),
        sources: sources(&Manifest::load(&recipe.corpus.manifest)?, |language| recipe.mix.contains_key(language)),
    })
}

fn losses(eval: &EvalReport) -> Vec<CardLoss> {
    let three = |i: Interval| [i.value, i.low, i.high];
    let all = eval.groups.iter().filter(|group| group.domain == "all");
    let loss = |group: &crate::eval::Group| {
        Some(CardLoss {
            language: group.language.clone(),
            documents: group.documents,
            per_character: three(group.models.get("trained")?.per_character),
            ngram_per_character: three(group.models.get("5-gram")?.per_character),
        })
    };
    all.filter_map(loss).collect()
}

/// The texts that were trained on.
fn sources(manifest: &Manifest, in_mix: impl Fn(&str) -> bool) -> Vec<CardSource> {
    let read = manifest.sources.iter().filter(|s| s.role == Role::Train && manifest.allows(s) && in_mix(&s.language));
    let source = |s: &crate::corpus::source::Source| CardSource {
        id: s.id.clone(),
        language: s.language.clone(),
        origin: if s.revision.is_empty() { s.origin.to_string() } else { format!("{}@{}", s.origin, s.revision) },
        licence: s.licence.clone(),
        attribution: s.attribution.clone(),
    };
    read.map(source).collect()
}
