//! What a tokenizer does to a model and its budget: models that differ in their tokenizer alone.

use super::Table;
use crate::corpus::balance::LanguageBalance;
use crate::statistics::Interval;
use crate::tokenizer::study::RARE;
use serde::{Deserialize, Serialize};

/// The arm that the others are compared with.
pub const BASE: &str = "marks";

/// Models of one shape trained with different tokenizers on the same text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consequence {
    /// Recipe of the text.
    pub text: String,
    /// Blocks of every model.
    pub layers: usize,
    /// Width of every model.
    pub hidden: usize,
    /// Tokens of a window.
    pub context: usize,
    /// Windows of a step.
    pub batch: usize,
    /// Share of each language in the training windows.
    pub mix: Vec<(String, f64)>,
    /// Models of each arm, one a seed.
    pub seeds: u64,
    /// Resamples of the intervals.
    pub resamples: usize,
    /// The tokenizers.
    pub arms: Vec<Arm>,
}

/// The models of one tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Parameters of a model.
    pub parameters: u64,
    /// Steps of its training.
    pub steps: u64,
    /// Operations to train on one token.
    pub flops_per_token: f64,
    /// Share of the vocabulary that is rare in the training text.
    pub rare: f64,
    /// Seconds of training, all seeds together.
    pub seconds: f64,
    /// By language.
    pub languages: Vec<ArmLanguage>,
}

/// One tokenizer and one language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmLanguage {
    /// The language in the training text, with its shares.
    pub balance: LanguageBalance,
    /// Characters of it that a model was trained on, repeats counted.
    pub seen: f64,
    /// Name of the sentences of the next two.
    pub sentences: String,
    /// Tokens per word.
    pub tokens_per_word: Interval,
    /// Tokens per sentence.
    pub tokens_per_sentence: Interval,
    /// Held-out documents that losses are measured on.
    pub documents: usize,
    /// Nats per character of held-out text: the mean over the seeds, texts and seeds resampled.
    pub nats_per_character: Interval,
    /// The same of each seed.
    pub by_seed: Vec<f64>,
    /// Nats per character minus those of [`BASE`], paired by text and seed; none for itself.
    pub over_base: Option<Interval>,
}

impl Arm {
    /// Operations of the whole training.
    pub fn flops(&self, consequence: &Consequence) -> f64 {
        self.flops_per_token * (self.steps * (consequence.batch * consequence.context) as u64) as f64
    }
}

impl Consequence {
    /// What was trained, in a sentence.
    pub fn scale(&self) -> String {
        let first = self.arms.first();
        let mix: Vec<String> = self.mix.iter().map(|(language, share)| format!("{language} {share}")).collect();
        format!(
            "{} seeds a tokenizer; {} blocks of width {}, {} M parameters, window {}; text `{}`, windows {}",
            self.seeds,
            self.layers,
            self.hidden,
            first.map_or(f64::NAN, |arm| (arm.parameters as f64 / 1e4).round() / 100.0),
            self.context,
            self.text,
            mix.join(", ")
        )
    }
}

/// Budget: the shares of the languages, what a window holds and what a sentence costs.
pub fn budget(consequence: &Consequence) -> Table {
    let header = [
        "tokenizer",
        "language",
        "share of characters",
        "of bytes",
        "of tokens",
        "tokens/word",
        "words in a window",
        "tokens/sentence",
        "training GFLOP/sentence",
    ];
    let mut table = Table::new("budget", &header);
    // More steps change nothing here.
    let mut seen: Vec<&str> = Vec::new();
    for arm in &consequence.arms {
        let tokenizer = arm.name.split(',').next().unwrap_or(&arm.name);
        if seen.contains(&tokenizer) {
            continue;
        }
        seen.push(tokenizer);
        for row in &arm.languages {
            let balance = &row.balance;
            let flops = row.tokens_per_sentence.value * arm.flops_per_token / 1e9;
            table.push(vec![
                tokenizer.to_owned(),
                balance.language.clone(),
                percent(balance.character_share),
                percent(balance.byte_share),
                percent(balance.token_share),
                format!("{:.2}", row.tokens_per_word.value),
                format!("{:.0}", consequence.context as f64 / row.tokens_per_word.value),
                format!("{:.1}", row.tokens_per_sentence.value),
                format!("{flops:.3}"),
            ]);
        }
    }
    table
}

/// Loss per character, and what was spent on it.
pub fn loss(consequence: &Consequence) -> Table {
    let minus = format!("minus `{BASE}`");
    let rare = format!("vocabulary met < {RARE} times");
    let header = [
        "models",
        "vocabulary",
        "parameters",
        "training TFLOP",
        &rare,
        "language",
        "characters seen",
        "nats/character",
        &minus,
    ];
    let mut table = Table::new("consequence", &header);
    for arm in &consequence.arms {
        for row in &arm.languages {
            table.push(vec![
                arm.name.clone(),
                arm.vocabulary.to_string(),
                arm.parameters.to_string(),
                format!("{:.1}", arm.flops(consequence) / 1e12),
                percent(arm.rare),
                row.balance.language.clone(),
                format!("{:.2} M", row.seen / 1e6),
                spread(row.nats_per_character),
                row.over_base.map_or("-".to_owned(), spread),
            ]);
        }
    }
    table
}

fn spread(found: Interval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", found.value, found.low, found.high)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
