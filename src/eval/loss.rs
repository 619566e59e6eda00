//! Loss on held-out documents of a trained model beside its twin and two baselines, by language and domain.

use super::EvalError;
use super::memorisation::{Memorisation, memorisation};
use super::ngram::Ngram;
use super::scored::{Scored, by_decoder, by_ngram, by_unigram, encode};
use crate::corpus::Document;
use crate::model::{Config, Decoder, Parameters, initialise};
use crate::progress::Progress;
use crate::recipe::EvalRecipe;
use crate::statistics::{Interval, ratio_interval};
use crate::tokenizer::Tokenizer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Losses of one model on one group of documents, in nats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Losses {
    /// Nats per token of this run's tokenizer.
    pub per_token: Interval,
    /// Nats per Unicode character.
    pub per_character: Interval,
    /// Nats per UTF-8 byte.
    pub per_byte: Interval,
}

/// All models on one group of documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Language of the documents.
    pub language: String,
    /// Their domain; `all` for every document of the language.
    pub domain: String,
    /// Documents.
    pub documents: usize,
    /// Tokens scored.
    pub tokens: u64,
    /// Characters of the documents.
    pub characters: u64,
    /// Bytes of the documents.
    pub bytes: u64,
    /// By the names of [`MODELS`].
    pub models: BTreeMap<String, Losses>,
    /// Trained minus twin in nats per character, paired by document.
    pub gain_per_character: Interval,
    /// Trained minus 5-gram in nats per character, paired by document.
    pub gain_over_ngram_per_character: Interval,
}

/// The content of `eval.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalReport {
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// ln(vocabulary): the loss per token of knowing nothing.
    pub chance: f64,
    /// Seed that the twin was rebuilt from.
    pub twin_seed: u64,
    /// Bootstrap resamples of the intervals.
    pub resamples: usize,
    /// Training tokens the 5-gram baseline was made of.
    pub ngram_tokens: u64,
    /// By language, then domain; `all` first.
    pub groups: Vec<Group>,
    /// Training text beside held-out text, by language.
    pub memorisation: Vec<Memorisation>,
}

impl EvalReport {
    /// The group of all documents of a language.
    pub fn language(&self, language: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.language == language && g.domain == "all")
    }

    /// Nats per token of the twin over all languages.
    pub fn twin_per_token(&self) -> f64 {
        let all = self.groups.iter().filter(|g| g.domain == "all");
        let (nats, tokens) = all.fold((0.0, 0.0), |(nats, tokens), g| {
            let loss = g.models.get("twin").map_or(f64::NAN, |l| l.per_token.value);
            (nats + loss * g.tokens as f64, tokens + g.tokens as f64)
        });
        nats / tokens
    }
}

/// What is evaluated.
pub struct Evaluation<'a> {
    /// The model's shape.
    pub config: &'a Config,
    /// The trained weights.
    pub parameters: &'a Parameters<f32>,
    /// Seed of the run: the twin is rebuilt from it.
    pub seed: u64,
    /// The tokenizer it was trained with.
    pub tokenizer: &'a Tokenizer,
    /// How often each token occurs in the training shards, `[vocabulary]`.
    pub token_counts: &'a [u64],
    /// The baseline trained on the same shards.
    pub ngram: &'a Ngram,
    /// The documents the shards were made of.
    pub training: &'a [Document],
    /// Documents per language, resamples.
    pub recipe: &'a EvalRecipe,
}

/// The names of the models in [`Group::models`]: the trained one, the same at its initialisation, the
/// interpolated 5-gram model, and the token frequencies.
pub const MODELS: [&str; 4] = ["trained", "5-gram", "unigram", "twin"];

/// Evaluates on the first `recipe.documents` held-out documents of each language. Every token of a
/// document is scored once, in windows of the model's context; the first follows an end-of-text token.
///
/// # Errors
/// [`EvalError`] when tokenizer and model do not fit, or there is no document.
pub fn evaluate(
    evaluation: &Evaluation,
    held_out: &[Document],
    progress: &mut Progress,
) -> Result<EvalReport, EvalError> {
    let (tokenizer, config) = (evaluation.tokenizer, evaluation.config);
    if tokenizer.vocabulary_size() != config.vocab_size {
        let (tokenizer, model) = (tokenizer.vocabulary_size(), config.vocab_size);
        return Err(EvalError::Vocabulary { tokenizer, model });
    }
    let mut documents = first_documents(held_out, evaluation)?;
    if documents.is_empty() {
        let languages: Vec<&str> = held_out.iter().map(|d| d.language.as_str()).collect();
        return Err(EvalError::Empty(languages.join(", ")));
    }
    let twin = initialise(config, evaluation.seed);
    let mut decoder = Decoder::new(config.clone(), false)?;
    for (name, parameters) in [("trained", evaluation.parameters), ("twin", &twin)] {
        by_decoder(&mut decoder, name, parameters, &mut documents)?;
        progress.advance(1, name);
    }
    by_unigram("unigram", evaluation.token_counts, &mut documents);
    by_ngram("5-gram", evaluation.ngram, &mut documents);
    progress.advance(2, "baselines");
    let memorisation = memorisation(evaluation, &mut decoder, &documents)?;
    progress.advance(1, "training text");
    let resamples = evaluation.recipe.bootstrap;
    Ok(EvalReport {
        vocabulary: config.vocab_size,
        chance: (config.vocab_size as f64).ln(),
        twin_seed: evaluation.seed,
        resamples,
        ngram_tokens: evaluation.ngram.tokens(),
        groups: groups(&documents, resamples, evaluation.seed),
        memorisation,
    })
}

fn first_documents(held_out: &[Document], evaluation: &Evaluation) -> Result<Vec<Scored>, EvalError> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    encode(held_out.iter(), evaluation.tokenizer, |document| {
        let taken = taken.entry(document.language.clone()).or_default();
        *taken += 1;
        *taken <= evaluation.recipe.documents
    })
}

fn groups(documents: &[Scored], resamples: usize, seed: u64) -> Vec<Group> {
    let mut keys: Vec<(&str, &str)> = documents.iter().map(|d| (d.language.as_str(), d.domain.as_str())).collect();
    keys.extend(documents.iter().map(|d| (d.language.as_str(), "all")));
    keys.sort_unstable_by_key(|(language, domain)| (*language, *domain != "all", *domain));
    keys.dedup();
    let member = |d: &&Scored, key: &(&str, &str)| d.language == key.0 && (key.1 == "all" || d.domain == key.1);
    keys.iter().map(|key| group(key, documents.iter().filter(|d| member(d, key)).collect(), resamples, seed)).collect()
}

fn group((language, domain): &(&str, &str), documents: Vec<&Scored>, resamples: usize, seed: u64) -> Group {
    let sum = |f: fn(&Scored) -> f64| documents.iter().map(|d| f(d)).sum::<f64>() as u64;
    let characters: Vec<f64> = documents.iter().map(|d| d.characters).collect();
    let gain = |other: &str| {
        let nats: Vec<f64> = documents.iter().map(|d| d.nats["trained"] - d.nats[other]).collect();
        ratio_interval(&nats, &characters, resamples, seed)
    };
    Group {
        language: (*language).to_owned(),
        domain: (*domain).to_owned(),
        documents: documents.len(),
        tokens: sum(Scored::tokens),
        characters: sum(|d| d.characters),
        bytes: sum(|d| d.bytes),
        models: MODELS.map(|name| (name.to_owned(), losses(&documents, name, resamples, seed))).into(),
        gain_per_character: gain("twin"),
        gain_over_ngram_per_character: gain("5-gram"),
    }
}

/// The loss of `documents` under one model by each unit.
pub(super) fn losses(documents: &[&Scored], model: &str, resamples: usize, seed: u64) -> Losses {
    let column = |f: &dyn Fn(&Scored) -> f64| documents.iter().map(|d| f(d)).collect::<Vec<f64>>();
    let nats = column(&|d| d.nats[model]);
    let per = |under: &[f64]| ratio_interval(&nats, under, resamples, seed);
    Losses {
        per_token: per(&column(&Scored::tokens)),
        per_character: per(&column(&|d| d.characters)),
        per_byte: per(&column(&|d| d.bytes)),
    }
}
