//! Tests of `pipeline`: from recipe to claims, what is redone and what is not, the same bits anywhere.

use shikha::artifact::{Hash, Made, hash_file};
use shikha::pipeline::{Options, Pipeline};
use shikha::recipe::Recipe;
use shikha::train::{deterministic_hash, read_metrics};
use std::path::Path;

/// The pocket recipe, cut to a few seconds.
pub(crate) fn recipe(seed: u64) -> Recipe {
    let mut recipe = Recipe::load("pocket").unwrap();
    recipe.seed = seed;
    recipe.tokenizer.vocabulary = 1500;
    (recipe.model.layers, recipe.model.hidden, recipe.model.intermediate) = (1, 48, 96);
    (recipe.train.steps, recipe.train.warmup_steps, recipe.train.batch) = (30, 4, 8);
    (recipe.train.learning_rate, recipe.train.checkpoint_every, recipe.train.validate_every) = (1e-2, 10, 10);
    (recipe.eval.documents, recipe.eval.bootstrap) = (60, 100);
    recipe
}

fn open(recipe: Recipe, root: &Path, force: bool) -> Pipeline {
    let options = Options { run_dir: Some(root.to_path_buf()), force, ..Options::default() };
    Pipeline::open(recipe, &options).unwrap()
}

/// Runs everything; gives the table and the stages that ran.
pub(crate) fn run(recipe: Recipe, root: &Path) -> (String, Vec<String>) {
    let mut pipeline = open(recipe, root, false);
    let table = pipeline.reproduce().unwrap();
    let ran = pipeline.log().iter().filter(|(_, made)| *made == Made::Now).map(|(name, _)| name.clone()).collect();
    (table, ran)
}

const STAGES: [&str; 7] = ["corpus", "tokenizers", "fertility", "shards", "train", "eval", "figures"];

#[test]
fn a_second_run_redoes_nothing_and_a_deleted_artifact_only_its_own_stage() {
    let dir = tempfile::tempdir().unwrap();
    let (table, ran) = run(recipe(17), dir.path());
    assert_eq!(ran, STAGES);
    assert!(table.contains("12.6 nats/token") && table.contains("not measured: needs"), "{table}");
    let (again, ran) = run(recipe(17), dir.path());
    assert!(ran.is_empty(), "{ran:?}");
    assert_eq!(again, table);
    for (artifact, stage) in [
        ("corpus/report.json", "corpus"),
        ("tokenizer.json", "tokenizers"),
        ("shards/train-bn.bin", "shards"),
        ("fertility.json", "fertility"),
        ("checkpoints/step-000030/model.safetensors", "train"),
        ("metrics.jsonl", "train"),
        ("eval.json", "eval"),
        ("figures/loss.svg", "figures"),
    ] {
        let path = dir.path().join(artifact);
        let before = hash_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(run(recipe(17), dir.path()).1, [stage], "{artifact}");
        if artifact != "metrics.jsonl" {
            assert_eq!(hash_file(&path).unwrap(), before, "{artifact} is made again to the bit");
        }
        let mut damaged = std::fs::read(&path).unwrap();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(run(recipe(17), dir.path()).1, [stage], "a flipped bit in {artifact} is noticed");
    }
}

#[test]
fn a_changed_part_of_the_recipe_redoes_what_depends_on_it() {
    let dir = tempfile::tempdir().unwrap();
    run(recipe(17), dir.path());
    let mut changed = recipe(17);
    changed.eval.documents = 40;
    assert_eq!(run(changed, dir.path()).1, ["eval", "figures"]);
    let mut changed = recipe(17);
    changed.eval.documents = 40;
    changed.train.weight_decay = 0.2;
    let resolved = std::fs::read(dir.path().join("recipe.toml")).unwrap();
    let options = Options { run_dir: Some(dir.path().to_path_buf()), ..Options::default() };
    let refused = Pipeline::open(changed.clone(), &options).err().unwrap().to_string();
    assert!(refused.contains("another recipe (train differ)") && refused.contains("--force"), "{refused}");
    assert_eq!(std::fs::read(dir.path().join("recipe.toml")).unwrap(), resolved, "nothing was written");
    let mut forced = open(changed, dir.path(), true);
    forced.reproduce().unwrap();
    assert!(forced.log().iter().all(|(_, made)| *made == Made::Now));
}

/// Everything that must be the same wherever it is made.
fn prints(root: &Path) -> Vec<(String, Hash)> {
    let mut names: Vec<String> = ["training", "fertility", "balance", "loss"]
        .iter()
        .flat_map(|id| [format!("figures/{id}.svg"), format!("figures/{id}.csv")])
        .collect();
    names.extend(
        ["corpus/train.jsonl", "tokenizer.json", "shards/train-bn.bin", "eval.json", "arbiter.json"].map(str::to_owned),
    );
    names.extend(["model", "optimizer"].map(|name| format!("checkpoints/step-000030/{name}.safetensors")));
    let mut prints: Vec<(String, Hash)> =
        names.into_iter().map(|name| (name.clone(), hash_file(&root.join(name)).unwrap())).collect();
    let rows = read_metrics(&root.join("metrics.jsonl")).unwrap();
    prints.push(("metrics".to_owned(), deterministic_hash(&rows)));
    prints
}

#[test]
fn one_and_two_threads_make_the_same_run_and_another_seed_another() {
    let run = |threads: usize, seed| {
        let dir = tempfile::tempdir().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run(recipe(seed), dir.path()));
        prints(dir.path())
    };
    let one = run(1, 17);
    assert_eq!(one, run(2, 17));
    let other = run(2, 18);
    let differ = |name: &str| {
        let find = |prints: &[(String, Hash)]| prints.iter().find(|(n, _)| n.contains(name)).map(|(_, hash)| *hash);
        find(&one) != find(&other)
    };
    assert!(differ("model.safetensors") && differ("metrics") && differ("figures/training.svg") && differ("eval"));
    assert!(!differ("tokenizer.json"), "the text does not depend on the seed");
}

#[test]
fn the_trained_model_beats_its_twin_which_knows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    run(recipe(17), dir.path());
    let report: shikha::eval::EvalReport =
        serde_json::from_slice(&std::fs::read(dir.path().join("eval.json")).unwrap()).unwrap();
    assert!((report.twin_per_token() - report.chance).abs() < 0.05, "{}", report.twin_per_token());
    for language in ["bn", "en"] {
        let group = report.language(language).unwrap();
        let [trained, twin] = ["trained", "twin"].map(|name| group.models[name].per_token);
        assert!(trained.high < twin.low - 0.8, "{language}: {trained:?} {twin:?}");
        assert!(group.gain_per_character.high < 0.0, "{language}: {:?}", group.gain_per_character);
    }
}
