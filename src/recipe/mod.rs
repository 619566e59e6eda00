//! The recipe: one TOML file describes one run, from the data mix to the evaluation.
//!
//! Unknown keys are refused with their name, ranges are checked on loading, and the resolved recipe
//! is written into the run directory, so that a run can always say what made it.

mod check;

use crate::artifact::boundary::guard;
use crate::error::FileError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The recipes that come with the program, by name.
const BUILT_IN: [(&str, &str); 3] = [
    ("pocket", include_str!("../../recipes/pocket.toml")),
    ("small", include_str!("../../recipes/small.toml")),
    ("bn-0.4b-h100", include_str!("../../recipes/bn-0.4b-h100.toml")),
];

/// The multiple-choice tasks that `eval.tasks` can name.
pub const TASKS: [&str; 8] =
    ["piqa", "hellaswag", "arc-easy", "arc-challenge", "openbookqa", "winogrande", "copa", "boolq"];

/// Why a recipe was refused.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Neither a built-in name nor a path.
    #[error("there is no recipe called `{name}`: use {} or the path of a .toml file", known())]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
    /// Not TOML, an unknown key, or a value of another type.
    #[error("recipe {origin}: {message}")]
    Syntax {
        /// Name or path of the recipe.
        origin: String,
        /// The parser's words with line and column.
        message: String,
    },
    /// A value that cannot be used.
    #[error("recipe {origin}: `{field}` is {found}, expected {expected}")]
    Value {
        /// Name or path of the recipe.
        origin: String,
        /// Dotted name of the field.
        field: &'static str,
        /// The value found.
        found: String,
        /// What it must be.
        expected: String,
    },
}

fn known() -> String {
    BUILT_IN.map(|(name, _)| format!("`{name}`")).join(", ")
}

/// One run: every choice that can change its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the run and of its directory.
    pub name: String,
    /// The seed of all randomness.
    pub seed: u64,
    /// Which text, and how it is cleaned and split.
    pub corpus: CorpusRecipe,
    /// How the text is cut into tokens.
    pub tokenizer: TokenizerRecipe,
    /// Share of each language in the training windows; the values are normalised to sum to 1.
    pub mix: BTreeMap<String, f64>,
    /// The decoder's shape.
    pub model: ModelRecipe,
    /// How it is trained.
    pub train: TrainRecipe,
    /// How it is evaluated.
    pub eval: EvalRecipe,
}

/// Which text, and how it is cleaned and split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusRecipe {
    /// Name (`pocket`) or path of the manifest in `data-manifests/`.
    pub manifest: String,
    /// Share of the documents held out, chosen by a hash of their text.
    pub held_out: f64,
    /// Documents whose sets of 5-character shingles have at least this Jaccard similarity are
    /// near-duplicates, and only the first is kept. Text that is streamed is not compared with all of itself: there
    /// it holds for the documents that stand for each language in measurements, and a warning says so.
    pub near_duplicate: f64,
    /// A training document that shares a window of this many words with held-out, parallel or
    /// evaluation text is dropped.
    pub contamination_window: usize,
}

/// How the text is cut into tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerRecipe {
    /// Name of the pre-tokenizer: `gpt2`, `cl100k`, `o200k`, `marks`, `marks-stop` or `grapheme`.
    pub pre_tokenizer: String,
    /// Tokens in the vocabulary, at most; a small text can give fewer.
    pub vocabulary: usize,
    /// Share of each language in the characters it is trained on, reached by leaving documents out; all
    /// of the text when not given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mix: BTreeMap<String, f64>,
    /// A `tokenizer.json` that was trained before, of that vocabulary; none is trained then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The decoder's shape, in the terms of the Llama configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRecipe {
    /// Decoder blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width inside the SwiGLU feed-forward part.
    pub intermediate: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Tokens in a window.
    pub context: usize,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// ε of RMSNorm.
    pub norm_epsilon: f64,
    /// Whether the output matrix is the embedding matrix.
    pub tie_embeddings: bool,
}

/// Shape of the learning rate over the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleKind {
    /// Linear warmup, then half a cosine down to the minimum.
    WarmupCosine,
    /// Linear warmup, constant, then linear decay to the minimum over `decay_steps`.
    WarmupStableDecay,
}

/// In which precision matrix products multiply; sums, weights and moments are always f32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// The numbers as they are.
    #[default]
    F32,
    /// Both factors rounded to bf16 (8 bits of mantissa), as GPUs train.
    Bf16,
}

impl Precision {
    /// The name in a recipe and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
        }
    }

    /// The precision called `name`.
    pub fn named(name: &str) -> Option<Self> {
        [Precision::F32, Precision::Bf16].into_iter().find(|p| p.name() == name)
    }
}

/// How the model is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainRecipe {
    /// Optimizer steps.
    pub steps: u64,
    /// Windows in a micro-batch.
    pub batch: usize,
    /// Micro-batches whose gradients are summed before a step.
    pub accumulate: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Learning rate at the last step.
    pub minimum_learning_rate: f64,
    /// Shape of the learning rate.
    pub schedule: ScheduleKind,
    /// Steps of linear warmup.
    pub warmup_steps: u64,
    /// Steps of the final decay; used by `warmup-stable-decay` only.
    pub decay_steps: u64,
    /// Decoupled weight decay, applied to matrices and never to gains.
    pub weight_decay: f64,
    /// β₁ of AdamW.
    pub beta1: f64,
    /// β₂ of AdamW.
    pub beta2: f64,
    /// ε of AdamW.
    pub epsilon: f64,
    /// Largest global norm of a step's gradient.
    pub clip_norm: f64,
    /// Steps between two validations.
    pub validate_every: u64,
    /// Steps between two checkpoints.
    pub checkpoint_every: u64,
    /// Checkpoints kept beside the best one.
    pub keep_last: usize,
    /// Recompute each block's activations in the backward pass instead of keeping them.
    pub recompute: bool,
    /// Precision of matrix products.
    #[serde(default)]
    pub precision: Precision,
}

/// How the model is evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalRecipe {
    /// Held-out documents of each language, at most.
    pub documents: usize,
    /// Bootstrap resamples over documents.
    pub bootstrap: usize,
    /// Multiple-choice tasks to measure, by the names of [`TASKS`]; none unless the recipe names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Questions of each task, at most.
    #[serde(default = "items")]
    pub items: usize,
    /// Name or path of the manifest that has the source `eval-NAME` for each task.
    #[serde(default = "task_manifest")]
    pub task_manifest: String,
}

fn items() -> usize {
    500
}

fn task_manifest() -> String {
    "eval".to_owned()
}

impl Recipe {
    /// Loads a recipe by built-in name (`pocket`) or from a path.
    ///
    /// # Errors
    /// [`RecipeError`] when it is unknown, unreadable, misspelt or out of range.
    pub fn load(name_or_path: &str) -> Result<Self, RecipeError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
            return Self::parse(text, name);
        }
        let path = PathBuf::from(name_or_path);
        if path.extension().is_none_or(|kind| kind != "toml") && !path.exists() {
            return Err(RecipeError::Unknown { name: name_or_path.to_owned() });
        }
        Self::from_file(&path)
    }

    /// Loads the recipe at `path`.
    ///
    /// # Errors
    /// [`RecipeError`] when it is unreadable, misspelt or out of range.
    pub fn from_file(path: &Path) -> Result<Self, RecipeError> {
        let text = guard(|| std::fs::read_to_string(path)).map_err(FileError::at("read", path))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses and checks the TOML text of a recipe; `origin` names it in errors.
    ///
    /// # Errors
    /// [`RecipeError::Syntax`] or [`RecipeError::Value`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, RecipeError> {
        let recipe: Recipe = toml::from_str(text)
            .map_err(|e| RecipeError::Syntax { origin: origin.to_owned(), message: one_line(&e.to_string()) })?;
        check::recipe(&recipe, origin)?;
        Ok(recipe)
    }

    /// The recipe as canonical TOML: what a run directory keeps and what hashes are taken of.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).unwrap_or_else(|e| unreachable!("a recipe is plain data: {e}"))
    }

    /// Tokens of one optimizer step.
    pub fn tokens_per_step(&self) -> u64 {
        (self.train.batch * self.train.accumulate * self.model.context) as u64
    }
}

/// A parser's report on one line: what is wrong and where.
pub(crate) fn one_line(message: &str) -> String {
    let lines: Vec<&str> =
        message.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with(['|', '^'])).collect();
    lines.join("; ").replace(" |", ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pocket_with(from: &str, to: &str) -> Result<Recipe, RecipeError> {
        let text = BUILT_IN[0].1;
        assert!(text.contains(from), "{from}");
        Recipe::parse(&text.replacen(from, to, 1), "test.toml")
    }

    #[test]
    fn the_built_in_recipes_are_valid_and_survive_a_round_trip() {
        for (name, _) in BUILT_IN {
            let recipe = Recipe::load(name).unwrap();
            assert_eq!(recipe.name, name);
            assert_eq!(Recipe::parse(&recipe.to_toml(), name).unwrap(), recipe);
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let message = pocket_with("seed =", "sede = 1\nseed =").unwrap_err().to_string();
        assert!(message.contains("test.toml") && message.contains("sede") && message.contains("line"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }

    #[test]
    fn values_out_of_range_are_refused_with_what_was_expected() {
        for (from, to, field) in [
            ("held_out = 0.1", "held_out = 1.5", "corpus.held_out"),
            ("layers = ", "layers = 0 # ", "model.layers"),
            ("steps = ", "steps = 0 # ", "train.steps"),
            ("bn = ", "bn = -1.0 # ", "mix"),
            ("beta2 = ", "beta2 = 1.0 # ", "train.beta2"),
            ("learning_rate = ", "learning_rate = nan # ", "train.learning_rate"),
        ] {
            let message = pocket_with(from, to).unwrap_err().to_string();
            assert!(message.contains(field) && message.contains("expected"), "{from}: {message}");
        }
    }

    #[test]
    fn a_name_that_does_not_exist_lists_those_that_do() {
        let message = Recipe::load("pokket").unwrap_err().to_string();
        assert!(message.contains("`pokket`") && message.contains("`pocket`"), "{message}");
    }
}
