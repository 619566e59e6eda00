//! The fault matrix: what is wrong with which artifact of a finished run, and what the next run does.
//! It may refuse and name the cause, or make again the same bits; never anything else.

use crate::robust::{REFUSALS, every};
use shikha::artifact::{boundary, hash_bytes};
use shikha::pipeline::{Options, Pipeline, Trained};
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

/// Of these, what tells of the machine or the moment too, and is compared in its own way; the seed decides the rest.
const UNDECIDED: [&str; 4] = ["recipe.toml", "run.lock", "arbiter.json", "checkpoints/step-000006/state.json"];

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
    let options = Options { run_dir: Some(root.to_path_buf()), ..Options::default() };
    let mut pipeline = Pipeline::open(recipe.clone(), &options).map_err(|e| e.to_string())?;
    pipeline.train().map(drop).map_err(|e| e.to_string())
}

/// Hashes of what the seed decides of a run of so many steps.
pub fn result(root: &Path, steps: u64) -> Vec<String> {
    let place = |name: &str| root.join(name.replace("000006", &format!("{steps:06}")));
    let hash = |name: &str| hash_bytes(&std::fs::read(place(name)).unwrap()).to_string();
    let mut found: Vec<String> = ARTIFACTS.into_iter().filter(|name| !UNDECIDED.contains(name)).map(hash).collect();
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
    let options = Options { run_dir: Some(root.clone()), ..Options::default() };
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

#[test]
fn a_disk_that_refuses_anywhere_from_text_to_weights_is_an_error_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = small(dir.path());
    let whole = dir.path().join("whole");
    boundary::at(None);
    train(&recipe, &whole).unwrap();
    let (boundaries, expected) = (boundary::crossed(), result(&whole, 6));
    let (mut refused, mut unharmed) = (0, 0);
    for number in (1..=boundaries).step_by(every(boundaries as usize / 8)) {
        let root = dir.path().join("refused");
        let _ = std::fs::remove_dir_all(&root);
        let (fault, cause) = REFUSALS[number as usize % 3];
        boundary::at(Some((number, fault)));
        let outcome = train(&recipe, &root);
        boundary::at(None);
        match outcome {
            Ok(()) => unharmed += 1,
            Err(message) => {
                assert!(message.contains(cause) && message.lines().count() == 1, "boundary {number}: {message}");
                refused += 1;
            }
        }
        train(&recipe, &root).unwrap();
        assert!(result(&root, 6) == expected, "boundary {number}, {fault:?}: a silent wrong run");
    }
    println!("{boundaries} boundaries: {refused} refused with their cause, {unharmed} unharmed, 0 wrong");
    assert!(boundaries > 100 && refused > unharmed);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = small(dir.path());
    let root = dir.path().join("text.txt/run"); // below a plain file, where even root can make none
    let message = train(&recipe, &root).unwrap_err();
    assert!(message.contains("cannot create the directory") && message.contains("text.txt/run"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn what_reads_a_finished_run_takes_nothing_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = small(dir.path());
    let root = dir.path().join("run");
    train(&recipe, &root).unwrap();
    let expected = Trained::load(&root).unwrap().parameters;
    let mut refused = 0;
    for artifact in ["tokenizer.json", ARTIFACTS[9], ARTIFACTS[10], ARTIFACTS[11]] {
        let good = std::fs::read(root.join(artifact)).unwrap();
        for fault in FAULTS {
            fault.happen(&root.join(artifact));
            let message = Trained::load(&root).err().unwrap_or_else(|| panic!("{fault:?} × {artifact}")).to_string();
            assert_eq!(message.lines().count(), 1, "{message}");
            refused += 1;
            let _ = std::fs::remove_dir(root.join(artifact));
            std::fs::write(root.join(artifact), &good).unwrap();
        }
    }
    // The recipe says which checkpoint is the last: one that is not there is refused too.
    for (from, to) in [("steps = 6", "steps = 7"), ("steps = 6", "stops = 6")] {
        let text = std::fs::read_to_string(root.join("recipe.toml")).unwrap();
        std::fs::write(root.join("recipe.toml"), text.replace(from, to)).unwrap();
        assert!(Trained::load(&root).is_err(), "{to}");
        std::fs::write(root.join("recipe.toml"), text).unwrap();
        refused += 1;
    }
    println!("{refused} refused");
    assert_eq!(Trained::load(&root).unwrap().parameters, expected);
}

#[test]
fn a_checkpoint_of_another_version_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = small(dir.path());
    let root = dir.path().join("run");
    train(&recipe, &root).unwrap();
    let path = root.join(ARTIFACTS[11]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"format\": 1"));
    std::fs::write(&path, text.replace("\"format\": 1", "\"format\": 9")).unwrap();
    let message = train(&recipe, &root).unwrap_err();
    assert!(message.contains("format 9") && message.contains("use the program that wrote it"), "{message}");
    assert!(root.join(ARTIFACTS[9]).exists(), "nothing was removed");
}

/// What the figures of a run are drawn from, and the figures.
#[test]
fn a_fault_in_what_figures_are_drawn_from_changes_no_figure() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = crate::pipeline::recipe(17);
    let whole = dir.path().join("whole");
    crate::pipeline::run(recipe.clone(), &whole);
    let drawn = |root: &Path| {
        let mut names: Vec<PathBuf> =
            std::fs::read_dir(root.join("figures")).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort_unstable();
        names.iter().map(|path| hash_bytes(&std::fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let (expected, root) = (drawn(&whole), dir.path().join("damaged"));
    let (mut refused, mut good) = (0, 0);
    let inputs =
        ["eval.json", "fertility.json", "balance.json", "metrics.jsonl", "corpus/report.json", "figures/loss.csv"];
    for (i, artifact) in inputs.into_iter().enumerate() {
        let _ = std::fs::remove_dir_all(&root);
        copy(&whole, &root);
        let fault = FAULTS[i % 5];
        fault.happen(&root.join(artifact));
        let options = Options { run_dir: Some(root.clone()), ..Options::default() };
        let outcome = Pipeline::open(recipe.clone(), &options).and_then(|mut pipeline| pipeline.reproduce());
        match outcome {
            Ok(_) => {
                assert!(drawn(&root) == expected, "{fault:?} × {artifact}");
                good += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains(artifact), "{fault:?} × {artifact}: {error}");
                refused += 1;
            }
        }
    }
    println!("{refused} refused with their cause, {good} made good, 0 wrong");
}
