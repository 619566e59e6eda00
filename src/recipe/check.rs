//! The ranges of a recipe's values.

use super::{Recipe, RecipeError, TASKS};
use std::collections::BTreeMap;

/// Names of the pre-tokenizers a recipe can ask for.
const PRE_TOKENIZERS: [&str; 6] = ["gpt2", "cl100k", "o200k", "marks", "marks-stop", "grapheme"];

struct Checker<'a> {
    origin: &'a str,
}

impl Checker<'_> {
    fn require(&self, ok: bool, field: &'static str, found: impl ToString, expected: &str) -> Result<(), RecipeError> {
        if ok {
            return Ok(());
        }
        Err(RecipeError::Value {
            origin: self.origin.to_owned(),
            field,
            found: found.to_string(),
            expected: expected.to_owned(),
        })
    }

    fn at_least_one(&self, field: &'static str, value: u64) -> Result<(), RecipeError> {
        self.require(value >= 1, field, value, "at least 1")
    }

    fn within(&self, field: &'static str, value: f64, low: f64, high: f64) -> Result<(), RecipeError> {
        let expected = format!("a number from {low} up to {high}");
        self.require(value >= low && value <= high, field, value, &expected)
    }
}

/// Refuses the first value that cannot be used.
pub(super) fn recipe(recipe: &Recipe, origin: &str) -> Result<(), RecipeError> {
    let check = Checker { origin };
    let name_ok = !recipe.name.is_empty()
        && !recipe.name.starts_with('.')
        && recipe.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    check.require(name_ok, "name", &recipe.name, "letters, digits, `-`, `_` and `.`")?;
    check.require(!recipe.mix.is_empty(), "mix", "empty", "at least one language")?;
    mix(&check, "mix", &recipe.mix)?;
    mix(&check, "tokenizer.mix", &recipe.tokenizer.mix)?;
    text(&check, recipe)?;
    model(&check, recipe)?;
    train(&check, recipe)?;
    check.at_least_one("eval.documents", recipe.eval.documents as u64)?;
    check.at_least_one("eval.bootstrap", recipe.eval.bootstrap as u64)?;
    check.at_least_one("eval.items", recipe.eval.items as u64)?;
    let unknown = recipe.eval.tasks.iter().find(|task| !TASKS.contains(&task.as_str()));
    check.require(unknown.is_none(), "eval.tasks", unknown.map_or("", |t| t), &TASKS.join(", "))
}

fn mix(check: &Checker, field: &'static str, mix: &BTreeMap<String, f64>) -> Result<(), RecipeError> {
    for (language, share) in mix {
        let found = format!("{language} = {share}");
        check.require(share.is_finite() && *share > 0.0, field, found, "positive shares")?;
    }
    Ok(())
}

fn text(check: &Checker, recipe: &Recipe) -> Result<(), RecipeError> {
    let corpus = &recipe.corpus;
    check.within("corpus.held_out", corpus.held_out, 0.001, 0.5)?;
    check.within("corpus.near_duplicate", corpus.near_duplicate, 0.1, 1.0)?;
    check.at_least_one("corpus.contamination_window", corpus.contamination_window as u64)?;
    let tokenizer = &recipe.tokenizer;
    let known = PRE_TOKENIZERS.contains(&tokenizer.pre_tokenizer.as_str());
    check.require(known, "tokenizer.pre_tokenizer", &tokenizer.pre_tokenizer, &PRE_TOKENIZERS.join(" or "))?;
    let in_range = (258..=1 << 20).contains(&tokenizer.vocabulary);
    check.require(in_range, "tokenizer.vocabulary", tokenizer.vocabulary, "from 258 (256 bytes and more) up to 1048576")
}

fn model(check: &Checker, recipe: &Recipe) -> Result<(), RecipeError> {
    let model = &recipe.model;
    for (field, value) in [
        ("model.layers", model.layers),
        ("model.hidden", model.hidden),
        ("model.intermediate", model.intermediate),
        ("model.heads", model.heads),
        ("model.kv_heads", model.kv_heads),
        ("model.context", model.context),
    ] {
        check.at_least_one(field, value as u64)?;
    }
    check.require(
        model.hidden.is_multiple_of(2 * model.heads),
        "model.hidden",
        model.hidden,
        "a multiple of twice `heads`",
    )?;
    check.require(
        model.heads.is_multiple_of(model.kv_heads),
        "model.kv_heads",
        model.kv_heads,
        "a divisor of `heads`",
    )?;
    check.within("model.rope_theta", model.rope_theta, 1.0, 1e9)?;
    check.within("model.norm_epsilon", model.norm_epsilon, 1e-12, 1e-2)
}

fn train(check: &Checker, recipe: &Recipe) -> Result<(), RecipeError> {
    let train = &recipe.train;
    for (field, value) in [
        ("train.steps", train.steps),
        ("train.batch", train.batch as u64),
        ("train.accumulate", train.accumulate as u64),
        ("train.validate_every", train.validate_every),
        ("train.checkpoint_every", train.checkpoint_every),
        ("train.keep_last", train.keep_last as u64),
    ] {
        check.at_least_one(field, value)?;
    }
    check.within("train.learning_rate", train.learning_rate, 1e-9, 10.0)?;
    check.within("train.minimum_learning_rate", train.minimum_learning_rate, 0.0, train.learning_rate)?;
    let planned = train.warmup_steps.saturating_add(train.decay_steps);
    let expected = "at most `steps` together with `decay_steps`";
    check.require(planned <= train.steps, "train.warmup_steps", train.warmup_steps, expected)?;
    check.within("train.weight_decay", train.weight_decay, 0.0, 1.0)?;
    check.within("train.beta1", train.beta1, 0.0, 0.999_999)?;
    check.within("train.beta2", train.beta2, 0.0, 0.999_999)?;
    check.within("train.epsilon", train.epsilon, 1e-12, 1e-3)?;
    check.within("train.clip_norm", train.clip_norm, 1e-6, 1e6)
}
