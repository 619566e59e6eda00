//! Loss on held-out documents of a trained model, its twin and a unigram model, by language and domain.

use super::EvalError;
use crate::corpus::Document;
use crate::model::{Config, Decoder, Parameters, Window, initialise};
use crate::ops::IGNORE;
use crate::progress::Progress;
use crate::recipe::EvalRecipe;
use crate::statistics::{Interval, ratio_interval};
use crate::tokenizer::Tokenizer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Windows evaluated at a time.
const BATCH: usize = 16;

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
    /// `trained`, `twin` and `unigram`.
    pub models: BTreeMap<String, Losses>,
    /// Trained minus twin in nats per character, paired by document.
    pub gain_per_character: Interval,
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
    /// By language, then domain; `all` first.
    pub groups: Vec<Group>,
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
    /// Documents per language, resamples.
    pub recipe: &'a EvalRecipe,
}

/// One document's tokens and its loss under each model.
struct Scored {
    language: String,
    domain: String,
    characters: f64,
    bytes: f64,
    /// End of text, then the tokens of the text.
    ids: Vec<u32>,
    nats: BTreeMap<&'static str, f64>,
}

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
    let mut documents = choose(held_out, evaluation)?;
    if documents.is_empty() {
        let languages: Vec<&str> = held_out.iter().map(|d| d.language.as_str()).collect();
        return Err(EvalError::Empty(languages.join(", ")));
    }
    let twin = initialise(config, evaluation.seed);
    let mut decoder = Decoder::new(config.clone(), false)?;
    for (name, parameters) in [("trained", evaluation.parameters), ("twin", &twin)] {
        score(&mut decoder, name, parameters, &mut documents)?;
        progress.advance(1, name);
    }
    score_unigram(evaluation.token_counts, &mut documents);
    progress.advance(1, "unigram");
    let resamples = evaluation.recipe.bootstrap;
    Ok(EvalReport {
        vocabulary: config.vocab_size,
        chance: (config.vocab_size as f64).ln(),
        twin_seed: evaluation.seed,
        resamples,
        groups: groups(&documents, resamples, evaluation.seed),
    })
}

fn choose(held_out: &[Document], evaluation: &Evaluation) -> Result<Vec<Scored>, EvalError> {
    let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
    let mut documents = Vec::new();
    for document in held_out {
        let taken = taken.entry(&document.language).or_default();
        let tokens = evaluation.tokenizer.encode(&document.text)?;
        if *taken == evaluation.recipe.documents || tokens.is_empty() {
            continue;
        }
        *taken += 1;
        let mut ids = vec![evaluation.tokenizer.end_of_text()];
        ids.extend(tokens);
        documents.push(Scored {
            language: document.language.clone(),
            domain: document.domain.clone(),
            characters: document.text.chars().count() as f64,
            bytes: document.text.len() as f64,
            ids,
            nats: BTreeMap::new(),
        });
    }
    Ok(documents)
}

/// Adds the loss of every document under a model, several windows at a time.
fn score(
    decoder: &mut Decoder<f32>,
    name: &'static str,
    parameters: &Parameters<f32>,
    documents: &mut [Scored],
) -> Result<(), EvalError> {
    let context = decoder.config().max_position_embeddings;
    let starts = |(d, document): (usize, &Scored)| {
        (0..document.ids.len() - 1).step_by(context).map(move |start| (d, start)).collect::<Vec<_>>()
    };
    let windows: Vec<(usize, usize)> = documents.iter().enumerate().flat_map(starts).collect();
    for windows in windows.chunks(BATCH) {
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for (d, start) in windows {
            let ids = &documents[*d].ids;
            let end = (start + context).min(ids.len() - 1);
            inputs.extend_from_slice(&ids[*start..end]);
            targets.extend_from_slice(&ids[start + 1..=end]);
            inputs.resize(inputs.len().next_multiple_of(context), 0);
            targets.resize(inputs.len(), IGNORE);
        }
        let losses = decoder.token_losses(parameters, Window { inputs: &inputs, targets: &targets, time: context })?;
        for ((d, _), losses) in windows.iter().zip(losses.chunks(context)) {
            *documents[*d].nats.entry(name).or_default() += losses.iter().sum::<f64>();
        }
    }
    Ok(())
}

/// Loss under the token frequencies of the training text, with one added to every count.
fn score_unigram(counts: &[u64], documents: &mut [Scored]) {
    let total = counts.iter().sum::<u64>() as f64 + counts.len() as f64;
    let nats = |id: &u32| (total / (counts.get(*id as usize).copied().unwrap_or(0) as f64 + 1.0)).ln();
    for document in documents {
        let sum = document.ids[1..].iter().map(nats).sum();
        document.nats.insert("unigram", sum);
    }
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
    let column = |f: &dyn Fn(&Scored) -> f64| documents.iter().map(|d| f(d)).collect::<Vec<f64>>();
    let tokens = column(&|d| (d.ids.len() - 1) as f64);
    let (characters, bytes) = (column(&|d| d.characters), column(&|d| d.bytes));
    let mut models = BTreeMap::new();
    for name in ["trained", "twin", "unigram"] {
        let nats = column(&|d| d.nats[name]);
        let per = |under: &[f64]| ratio_interval(&nats, under, resamples, seed);
        let losses = Losses { per_token: per(&tokens), per_character: per(&characters), per_byte: per(&bytes) };
        models.insert(name.to_owned(), losses);
    }
    let gain = column(&|d| d.nats["trained"] - d.nats["twin"]);
    Group {
        language: (*language).to_owned(),
        domain: (*domain).to_owned(),
        documents: documents.len(),
        tokens: tokens.iter().sum::<f64>() as u64,
        characters: characters.iter().sum::<f64>() as u64,
        bytes: bytes.iter().sum::<f64>() as u64,
        models,
        gain_per_character: ratio_interval(&gain, &characters, resamples, seed),
    }
}
