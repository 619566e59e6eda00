//! The fault matrix: what is wrong with which artifact of a finished run, and what the next run does.
//! It may refuse and name the cause, or make again the same bits; never anything else.

use shikha::artifact::hash_bytes;
use shikha::pipeline::{Options, Pipeline};
use shikha::recipe::Recipe;
use shikha::train::{deterministic_hash, read_metrics};
use std::path::{Path, PathBuf};

/// What a run makes, short of figures.
const ARTIFACTS: [&str; 12] = [
    "recipe.toml",
    "run.lock",
    "corpus/train.jsonl",
    "corpus/held_out.jsonl",
    "tokenizer.json",
    "tokenizer-naive.json",
    "shards/train-bn.bin",
    "shards/held_out-bn.bin",
    "arbiter.json",
    "checkpoints/step-000006/model.safetensors",
    "checkpoints/step-000006/optimizer.safetensors",
    "checkpoints/step-000006/state.json",
];

/// Bytes that the seed decides; the others are compared in their own way.
const DECIDED: [&str; 8] = [
    "corpus/train.jsonl",
    "corpus/held_out.jsonl",
    "tokenizer.json",
    "tokenizer-naive.json",
    "shards/train-bn.bin",
    "shards/held_out-bn.bin",
    "checkpoints/step-000006/model.safetensors",
    "checkpoints/step-000006/optimizer.safetensors",
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    LowBit,
    HighBit,
    Cut,
    Empty,
    Missing,
    /// A folder in its place: it is there, and every read fails.
    Unreadable,
}

const FAULTS: [Fault; 6] = [Fault::LowBit, Fault::HighBit, Fault::Cut, Fault::Empty, Fault::Missing, Fault::Unreadable];

impl Fault {
    fn happen(self, path: &Path) {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        match self {
            Fault::LowBit => bytes[middle] ^= 1,
            Fault::HighBit => bytes[middle] ^= 0x80,
            Fault::Cut => bytes.truncate(middle),
            Fault::Empty => bytes.clear(),
            Fault::Missing | Fault::Unreadable => std::fs::remove_file(path).unwrap(),
        }
        match self {
            Fault::Missing => {}
            Fault::Unreadable => std::fs::create_dir(path).unwrap(),
            _ => std::fs::write(path, bytes).unwrap(),
        }
    }
}

/// A manifest of 300 sentences and a recipe of a second.
pub fn small(dir: &Path) -> Recipe {
    let word = |n: u64| ["আমি", "তুমি", "ভাত", "বই", "পড়ি", "খাই", "নদী", "দেশ", "গান", "ভালো"][n as usize % 10];
    let line = |n: u64| (0..9).map(|i| word(n * 7 + i * i * (n / 10 + 1) + n / 3)).collect::<Vec<_>>().join(" ");
    let text: String = (0..300).map(|n| format!("{} {n}।\n", line(n))).collect();
    std::fs::write(dir.join("text.txt"), &text).unwrap();
    let manifest = format!(
        "[[source]]\nid = \"mine\"\nlanguage = \"bn\"\nrole = \"train\"\ndomain = \"web\"\norigin = \"local:\"\n\
         licence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\nreader = \"lines\"\n\
         files = [{{ path = \"text.txt\", bytes = {}, sha256 = \"{}\" }}]\n",
        text.len(),
        hash_bytes(text.as_bytes())
    );
    std::fs::write(dir.join("manifest.toml"), manifest).unwrap();
    let mut recipe = Recipe::load("pocket").unwrap();
    recipe.corpus.manifest = dir.join("manifest.toml").display().to_string();
    (recipe.tokenizer.vocabulary, recipe.corpus.near_duplicate) = (300, 0.95);
    recipe.mix.retain(|language, _| language == "bn");
    recipe.mix.insert("bn".to_owned(), 1.0);
    (recipe.model.layers, recipe.model.hidden, recipe.model.intermediate, recipe.model.context) = (1, 16, 24, 16);
    (recipe.train.steps, recipe.train.checkpoint_every, recipe.train.validate_every) = (6, 2, 2);
    (recipe.train.warmup_steps, recipe.train.batch) = (2, 2);
    recipe
}

fn train(recipe: &Recipe, root: &Path) -> Result<(), String> {
    let options = Options { run_dir: Some(root.to_path_buf()), mirror: None, force: false };
    let mut pipeline = Pipeline::open(recipe.clone(), &options).map_err(|e| e.to_string())?;
    pipeline.train().map(drop).map_err(|e| e.to_string())
}

/// Hashes of what the seed decides of a run of so many steps.
pub fn result(root: &Path, steps: u64) -> Vec<String> {
    let place = |name: &str| root.join(name.replace("000006", &format!("{steps:06}")));
    let hash = |name: &&str| hash_bytes(&std::fs::read(place(name)).unwrap()).to_string();
    let mut found: Vec<String> = DECIDED.iter().map(hash).collect();
    found.push(deterministic_hash(&read_metrics(&root.join("metrics.jsonl")).unwrap()).to_string());
    found
}

/// A copy of a run, to be damaged.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name): (PathBuf, _) = {
            let e = entry.unwrap();
            (e.path(), e.file_name())
        };
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            std::fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

#[test]
fn every_fault_in_every_artifact_is_refused_or_made_good() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = small(dir.path());
    let whole = dir.path().join("whole");
    train(&recipe, &whole).unwrap();
    let expected = result(&whole, 6);
    let (mut refused, mut good) = (0, 0);
    for artifact in ARTIFACTS.into_iter().chain(["metrics.jsonl"]) {
        for fault in FAULTS {
            let root = dir.path().join("damaged");
            let _ = std::fs::remove_dir_all(&root);
            copy(&whole, &root);
            fault.happen(&root.join(artifact));
            match train(&recipe, &root) {
                Ok(()) => {
                    assert!(result(&root, 6) == expected, "{fault:?} × {artifact}: a silent wrong run");
                    println!("{fault:?} × {artifact} → the same bits");
                    good += 1;
                }
                Err(message) => {
                    let file = Path::new(artifact).file_name().unwrap().to_str().unwrap();
                    let names_it = message.contains(file) || (artifact == "recipe.toml" && message.contains("recipe"));
                    assert!(names_it, "{fault:?} × {artifact}: {message}");
                    assert_eq!(message.lines().count(), 1, "{message}");
                    println!("{fault:?} × {artifact} → refused: {message}");
                    refused += 1;
                }
            }
        }
    }
    println!("{refused} refused with their cause, {good} made good, 0 wrong");
    assert!(good > refused);
}

#[test]
fn what_does_not_belong_together_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = small(dir.path());
    let root = dir.path().join("run");
    train(&recipe, &root).unwrap();
    let mut other = recipe.clone();
    other.train.learning_rate *= 2.0;
    let message = train(&other, &root).unwrap_err();
    assert!(message.contains("train"), "changed recipe: {message}");
    // Two trainers on one directory.
    let options = Options { run_dir: Some(root.clone()), mirror: None, force: false };
    let held = Pipeline::open(recipe.clone(), &options).unwrap();
    assert!(train(&recipe, &root).unwrap_err().contains("in use by another process"));
    drop(held);
    // Another tokenizer in the place of the run's own is made again, as its hash is recorded.
    let expected = result(&root, 6);
    std::fs::copy(root.join("tokenizer-naive.json"), root.join("tokenizer.json")).unwrap();
    train(&recipe, &root).unwrap();
    assert_eq!(result(&root, 6), expected);
    // A clock set back: files that seem to come from the future, and older than what they are made from.
    for (name, seconds) in [("tokenizer.json", 4_000_000_000), ("corpus/train.jsonl", 5_000_000_000), ("run.lock", 1)] {
        let file = std::fs::OpenOptions::new().append(true).open(root.join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
    }
    train(&recipe, &root).unwrap();
    assert_eq!(result(&root, 6), expected);
}
