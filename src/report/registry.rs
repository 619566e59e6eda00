//! Every figure and table of the report: what it is made of, by what, and where a reader is walked through it.

use super::Table;

/// What a row of the registry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `figures/<id>.svg` and its numbers as CSV.
    Figure,
    /// `paper/generated/<id>.csv` and the same as Markdown.
    Table,
}

/// One figure or table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// File name without extension.
    pub id: &'static str,
    /// Figure or table.
    pub kind: Kind,
    /// What it shows.
    pub title: &'static str,
    /// The stored measurements it is made of, as paths in the repository.
    pub inputs: &'static [&'static str],
    /// The function that makes it.
    pub function: &'static str,
    /// The notebook that walks through it.
    pub notebook: &'static str,
}

impl Entry {
    /// Its files in the repository.
    pub fn files(&self) -> [String; 2] {
        match self.kind {
            Kind::Figure => ["svg", "csv"].map(|kind| format!("figures/{}.{kind}", self.id)),
            Kind::Table => ["csv", "md"].map(|kind| format!("paper/generated/{}.{kind}", self.id)),
        }
    }
}

const TOUR: &str = "00-tour";
const CORPUS: &str = "01-corpus";
const FERTILITY: &str = "02-fertility";
const ARBITER: &str = "04-arbiter";
const CANDLE: &str = "05-candle-defects";
const BURN_DEFECTS: &str = "06-burn-defects";
const TRAINING: &str = "07-pretraining";
const EVALUATION: &str = "08-evaluation";

const STUDY: &[&str] = &["checkpoints/fertility/study.json"];
const CONSEQUENCE: &[&str] = &["checkpoints/fertility/consequence.json"];
const OUTCOMES: &[&str] = &["defects/outcomes.json"];
const BURN: &[&str] = &["defects/burn.json"];
const BURN_MATRIX: &[&str] = &["defects/matrix/burn.json"];
const EFFICIENCY: &[&str] = &["defects/backward-efficiency.json"];
const MATRIX: &[&str] = &["defects/matrix/candle.json"];
const SCORE: &[&str] = &["checkpoints/arbiter/score.json"];
const CHOICE: &[&str] = &["checkpoints/reference/choice.json"];

const F: Kind = Kind::Figure;
const T: Kind = Kind::Table;

const fn row(
    kind: Kind,
    id: &'static str,
    title: &'static str,
    inputs: &'static [&'static str],
    function: &'static str,
    notebook: &'static str,
) -> Entry {
    Entry { id, kind, title, inputs, function, notebook }
}

/// The figures, then the tables, in the order of the report.
pub const REGISTRY: &[Entry] = &[
    row(F, "arbiter", "What each check flags, by kind of fault", SCORE, "report::arbiter::figure", ARBITER),
    row(F, "defects", "Defects by kind, and what gives them away", OUTCOMES, "report::defects::figures", CANDLE),
    row(
        F,
        "dead-parameters",
        "Loss curves that fall although parameters get no gradient",
        OUTCOMES,
        "report::defects::figures",
        CANDLE,
    ),
    row(
        F,
        "backward-efficiency",
        "A linear layer's forward and backward pass, share of the fastest GEMM",
        EFFICIENCY,
        "report::efficiency::figure",
        BURN_DEFECTS,
    ),
    row(F, "defect-versions", "Which version has which defect", MATRIX, "report::defects::matrix_figure", CANDLE),
    row(
        F,
        "fertility",
        "Characters per token by language and pattern",
        &["checkpoints/reference/fertility.json"],
        "report::figure::fertility",
        FERTILITY,
    ),
    row(
        F,
        "balance",
        "Language balance in characters, bytes and tokens",
        &["checkpoints/reference/balance.json"],
        "report::figure::balance",
        CORPUS,
    ),
    row(F, "fertility-cause", "Combining marks and what they cost", STUDY, "report::figure::cause", FERTILITY),
    row(
        F,
        "fertility-vocabulary",
        "Tokens per Bangla word by vocabulary",
        STUDY,
        "report::figure::vocabulary",
        FERTILITY,
    ),
    row(
        F,
        "fertility-consequence",
        "What the tokenizer alone does to a small model",
        CONSEQUENCE,
        "report::figure::consequence",
        FERTILITY,
    ),
    row(
        F,
        "training",
        "Loss by training step",
        &["checkpoints/reference/metrics.jsonl"],
        "report::figure::training",
        TRAINING,
    ),
    row(
        F,
        "loss",
        "Held-out loss beside its baselines",
        &["checkpoints/reference/eval.json"],
        "report::figure::loss",
        EVALUATION,
    ),
    row(F, "choice", "Multiple choice beside chance", CHOICE, "report::figure::choice", EVALUATION),
    row(
        F,
        "cost",
        "What a step costs when one size grows",
        &["checkpoints/bench/cost.json"],
        "report::figure::cost",
        TRAINING,
    ),
    row(
        T,
        "claims",
        "What the abstract reports beside the reference run",
        &[
            "paper/claims.toml",
            "checkpoints/reference/measurements.json",
            "defects/outcomes.json",
            "defects/burn.json",
            "defects/backward-efficiency.json",
        ],
        "report::Ledger::table",
        TOUR,
    ),
    row(T, "registry", "Every figure and table", &["src/report/registry.rs"], "report::registry::table", TOUR),
    row(T, "arithmetic", "What the reported numbers imply", &["paper/claims.toml"], "report::arithmetic", TRAINING),
    row(T, "sources", "Training text and its licences", &["data-manifests/small.toml"], "report::sources", CORPUS),
    row(T, "arbiter-score", "What each check caught, by kind of fault", SCORE, "report::arbiter::table", ARBITER),
    row(T, "candle-defects", "The catalogue of Candle's defects", OUTCOMES, "report::defects::table", CANDLE),
    row(T, "candle-versions", "Which version has which defect", MATRIX, "report::defects::matrix_table", CANDLE),
    row(T, "burn-defects", "The catalogue of Burn's defects", BURN, "report::defects::table", BURN_DEFECTS),
    row(
        T,
        "burn-versions",
        "Which version of Burn has which defect",
        BURN_MATRIX,
        "report::defects::matrix_table",
        BURN_DEFECTS,
    ),
    row(
        T,
        "burn-fusion",
        "Burn's fusion tried on software Vulkan",
        &["defects/matrix/burn-vulkan.json"],
        "report::defects::attempts_table",
        BURN_DEFECTS,
    ),
    row(
        T,
        "backward-efficiency",
        "A linear layer's forward and backward speed",
        EFFICIENCY,
        "report::efficiency::table",
        BURN_DEFECTS,
    ),
    row(
        T,
        "released-tokenizer",
        "The tokenizers that the released one was chosen from",
        &["checkpoints/tokenizer/release.json"],
        "report::release::candidates",
        FERTILITY,
    ),
    row(T, "budget", "What the tokenizer does to the budget", CONSEQUENCE, "report::consequence::budget", FERTILITY),
    row(
        T,
        "consequence",
        "Small models that differ in their tokenizer alone",
        CONSEQUENCE,
        "report::consequence::loss",
        FERTILITY,
    ),
    row(T, "study-words", "Words step by step", STUDY, "report::study::walks", FERTILITY),
    row(T, "study-trial", "What the trap and the cure depend on", STUDY, "report::study::trial", FERTILITY),
    row(T, "study-trained", "Tokenizers trained here", STUDY, "report::study::trained", FERTILITY),
    row(T, "study-known", "Well-known tokenizers", STUDY, "report::study::known", FERTILITY),
    row(
        T,
        "evaluation",
        "Held-out loss by language and domain",
        &["checkpoints/reference/eval.json"],
        "pipeline::evaluate::table",
        EVALUATION,
    ),
    row(T, "choice", "Multiple choice beside chance", CHOICE, "report::choice::table", EVALUATION),
    row(
        T,
        "cost",
        "What a step costs when one size grows",
        &["checkpoints/bench/cost.json"],
        "report::cost::table",
        TRAINING,
    ),
    row(
        T,
        "speed",
        "Training speed beside composed Candle",
        &["checkpoints/bench/speed.csv"],
        "report::speed::table",
        TRAINING,
    ),
    row(
        T,
        "gpu",
        "Training speed on a GPU beside the reported",
        &["paper/claims.toml", "recipes/bn-0.4b-h100.toml", "checkpoints/gpu"],
        "report::gpu::table",
        TRAINING,
    ),
    row(
        T,
        "runs",
        "Whole runs beside the reported",
        &["paper/claims.toml", "checkpoints/gpu"],
        "report::runs::table",
        TRAINING,
    ),
    row(
        T,
        "kernels",
        "What each kernel takes of a GPU, and the bytes its threads ask for",
        &["src/ops/cuda/ptx/resources.csv", "src/ops/cuda/traffic.csv"],
        "report::gpu::kernels",
        TRAINING,
    ),
    row(
        T,
        "stream",
        "From Parquet to tokens while training goes on",
        &["checkpoints/bench/stream.json"],
        "report::streaming::table",
        TRAINING,
    ),
    row(T, "ops", "Each op beside its composed twin", &["checkpoints/bench/ops.csv"], "report::speed::ops", TRAINING),
];

/// The registry for a reader.
pub fn table() -> Table {
    let mut table = Table::new("registry", &["id", "kind", "what it shows", "made of", "by", "notebook"]);
    for entry in REGISTRY {
        table.push(vec![
            entry.id.to_owned(),
            if entry.kind == Kind::Figure { "figure" } else { "table" }.to_owned(),
            entry.title.to_owned(),
            entry.inputs.join(", "),
            entry.function.to_owned(),
            entry.notebook.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_one_pair_of_files_and_names_a_function_that_exists() {
        let files: BTreeSet<String> = REGISTRY.iter().flat_map(Entry::files).collect();
        assert_eq!(files.len(), 2 * REGISTRY.len());
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for entry in REGISTRY {
            let parts: Vec<&str> = entry.function.split("::").collect();
            let name = format!("fn {}(", parts[parts.len() - 1]);
            let sources = globbed(&root.join(parts[0]));
            assert!(sources.iter().any(|text| text.contains(&name)), "{}", entry.function);
        }
    }

    fn globbed(directory: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().path());
        let of = |path: std::path::PathBuf| {
            if path.is_dir() { globbed(&path) } else { vec![std::fs::read_to_string(path).unwrap()] }
        };
        entries.flat_map(of).collect()
    }
}
