//! Tests of `train`: exact resumption, the same bits for any thread count, refusals.

use shikha::corpus::CorpusError;
use shikha::corpus::loader::{Batch, Batches};
use shikha::model::{Config, Decoder, Parameters, initialise};
use shikha::recipe::{Recipe, TrainRecipe};
use shikha::rng::Stream;
use shikha::train::{
    Checkpoint, Identity, Interrupt, MakeEngine, Outcome, Row, Setup, Start, TrainError, checkpoint_dir,
    deterministic_hash, latest, preflight, processor, read_metrics, train_on,
};
use shikha::{artifact::hash_bytes, progress::Progress};
use std::collections::BTreeMap;
use std::path::Path;

const VOCABULARY: u64 = 40;
const CONTEXT: usize = 12;

/// Sequences that can be learnt: each token is the one before it plus 3, with some noise.
pub struct Toy {
    pub batch: usize,
    /// Batches from this one on hold no target at all.
    pub empty_from: u64,
}

impl Batches for Toy {
    fn batch(&self, n: u64) -> Result<Batch, CorpusError> {
        let stream = Stream::new(4, &format!("toy {n}"));
        let mut batch = Batch { inputs: vec![], targets: vec![], batch: self.batch, context: CONTEXT };
        for row in 0..self.batch as u64 {
            let mut token = stream.below(row, VOCABULARY);
            for i in 0..CONTEXT as u64 {
                batch.inputs.push(token as u32);
                let noise = stream.below(1000 * (row + 1) + i, 10) == 0;
                token = if noise { stream.below(row ^ i, VOCABULARY) } else { (token + 3) % VOCABULARY };
                batch.targets.push(if n >= self.empty_from { shikha::ops::IGNORE } else { token as u32 });
            }
        }
        Ok(batch)
    }
}

pub fn config() -> Config {
    let mut model = Recipe::load("pocket").unwrap().model;
    (model.layers, model.hidden, model.intermediate, model.heads, model.kv_heads, model.context) =
        (2, 16, 24, 2, 1, CONTEXT);
    Config::from_recipe(&model, VOCABULARY as usize, 0).unwrap()
}

fn recipe(steps: u64, accumulate: usize) -> TrainRecipe {
    let mut recipe = Recipe::load("pocket").unwrap().train;
    (recipe.steps, recipe.batch, recipe.accumulate, recipe.warmup_steps) = (steps, 4, accumulate, 4);
    (recipe.learning_rate, recipe.checkpoint_every, recipe.validate_every) = (2e-2, 10, 10);
    recipe
}

pub struct Job {
    pub recipe: TrainRecipe,
    pub seed: u64,
    pub toy: Toy,
    pub identity: Identity,
}

pub fn job(accumulate: usize) -> Job {
    let identity = BTreeMap::from([("recipe".to_owned(), hash_bytes(b"toy"))]);
    Job { recipe: recipe(40, accumulate), seed: 1, toy: Toy { batch: 4, empty_from: u64::MAX }, identity }
}

impl Job {
    pub fn run(&self, directory: &Path, start: Start, interrupt: &Interrupt) -> Result<Outcome, TrainError> {
        self.run_on(&self.toy, directory, start, interrupt)
    }

    pub fn run_on(
        &self,
        data: &dyn Batches,
        directory: &Path,
        start: Start,
        interrupt: &Interrupt,
    ) -> Result<Outcome, TrainError> {
        self.run_with(&processor, data, directory, start, interrupt)
    }

    pub fn run_with(
        &self,
        make: &MakeEngine,
        data: &dyn Batches,
        directory: &Path,
        start: Start,
        interrupt: &Interrupt,
    ) -> Result<Outcome, TrainError> {
        let held_out = Toy { batch: 4, empty_from: u64::MAX };
        let validation = BTreeMap::from([("toy".to_owned(), vec![held_out.batch(1_000_000).unwrap()])]);
        let config = config();
        let setup = Setup {
            recipe: &self.recipe,
            config: &config,
            seed: self.seed,
            data,
            validation: &validation,
            directory,
            made_from: &self.identity,
        };
        train_on(make, &setup, start, interrupt, &mut Progress::hidden(self.recipe.steps))
    }

    pub fn finish(&self, directory: &Path, start: Start) -> (Checkpoint, Vec<Row>) {
        assert_eq!(self.run(directory, start, &Interrupt::default()).unwrap(), Outcome::Finished);
        self.read(directory)
    }

    pub fn read(&self, directory: &Path) -> (Checkpoint, Vec<Row>) {
        let checkpoint = Checkpoint::load(directory, self.recipe.steps, &config()).unwrap();
        (checkpoint, read_metrics(&directory.join("metrics.jsonl")).unwrap())
    }
}

pub fn interrupted() -> Interrupt {
    let interrupt = Interrupt::default();
    interrupt.raise();
    interrupt
}

#[test]
fn stopping_and_resuming_at_every_step_gives_the_same_bits() {
    for accumulate in [1, 3] {
        let job = job(accumulate);
        let (whole, pieces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (expected, rows) = job.finish(whole.path(), Start::Continue);
        for step in 1..40 {
            let outcome = job.run(pieces.path(), Start::Continue, &interrupted()).unwrap();
            assert_eq!(outcome, Outcome::Interrupted(step));
        }
        let (found, again) = job.finish(pieces.path(), Start::Resume);
        assert_eq!(found.content_hash(), expected.content_hash());
        assert_eq!(found.state.tokens, 40 * accumulate as u64 * 4 * CONTEXT as u64);
        assert_eq!(deterministic_hash(&again), deterministic_hash(&rows));
    }
}

#[test]
fn threads_do_not_change_the_bits_and_seeds_do() {
    let run = |threads: usize, seed| {
        let dir = tempfile::tempdir().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (checkpoint, rows) = pool.install(|| Job { seed, ..job(1) }.finish(dir.path(), Start::Continue));
        (checkpoint.content_hash(), deterministic_hash(&rows))
    };
    let one = run(1, 1);
    assert_eq!(one, run(2, 1));
    assert_ne!(one.0, run(1, 2).0);
}

#[test]
fn the_loss_falls_and_the_metrics_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let (_, rows) = job(1).finish(dir.path(), Start::Continue);
    assert_eq!(rows.len(), 40);
    let first = rows[0].loss.unwrap();
    assert!((first - (VOCABULARY as f64).ln()).abs() < 0.05, "step 0: {first}");
    assert!(rows[39].loss.unwrap() < first - 1.0, "{:?}", rows[39]);
    let validated: Vec<u64> = rows.iter().filter(|r| r.validation.contains_key("toy")).map(|r| r.step).collect();
    assert_eq!(validated, [10, 20, 30, 40]);
    assert!(rows.iter().all(|r| r.machine.tokens_per_second > 0.0 && r.gradient_norm.unwrap() > 0.0));
    assert_eq!(rows[9].tokens, 10 * 4 * CONTEXT as u64);
}

#[test]
fn old_checkpoints_go_and_the_best_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(1);
    (job.recipe.checkpoint_every, job.recipe.keep_last) = (5, 1);
    let (_, rows) = job.finish(dir.path(), Start::Continue);
    let best = rows
        .iter()
        .filter(|r| !r.validation.is_empty())
        .min_by(|a, b| a.validation["toy"].unwrap().total_cmp(&b.validation["toy"].unwrap()));
    let mut kept: Vec<u64> = (1..=40).filter(|step| checkpoint_dir(dir.path(), *step).exists()).collect();
    kept.sort_unstable();
    let mut expected = vec![best.unwrap().step, 40];
    expected.dedup();
    assert_eq!(kept, expected);
}

#[test]
fn any_flipped_bit_or_cut_is_noticed_and_the_checkpoint_before_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(1);
    let (expected, _) = job.finish(dir.path(), Start::Continue);
    let last = checkpoint_dir(dir.path(), 40);
    for file in ["model.safetensors", "optimizer.safetensors", "state.json"] {
        let path = last.join(file);
        let good = std::fs::read(&path).unwrap();
        for (cut, at) in [(false, 0), (false, good.len() / 2), (false, good.len() - 1), (true, good.len() / 2)] {
            let mut bad = good.clone();
            if cut {
                bad.truncate(at)
            } else {
                bad[at] ^= 0x10
            }
            std::fs::write(&path, &bad).unwrap();
            let (found, rejected) = match latest(dir.path(), &config(), &job.identity) {
                Ok(found) => found,
                Err(error) => panic!("{file} {at}: {error}"),
            };
            let step = found.unwrap().state.step;
            assert!(step == 30 && rejected.len() == 1, "{file} byte {at}: step {step}, {rejected:?}");
        }
        std::fs::write(&path, &good[..good.len() - 1]).unwrap();
        let (again, _) = job.finish(dir.path(), Start::Continue);
        assert_eq!(again.content_hash(), expected.content_hash(), "the last ten steps, repeated");
    }
}

#[test]
fn another_recipe_is_refused_by_name_and_starting_over_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(1);
    job.finish(dir.path(), Start::Continue);
    job.identity.insert("tokenizer".to_owned(), hash_bytes(b"another"));
    let message = job.run(dir.path(), Start::Continue, &Interrupt::default()).unwrap_err().to_string();
    assert!(message.contains("another tokenizer") && message.contains("--force"), "{message}");
    assert!(checkpoint_dir(dir.path(), 40).exists(), "nothing was removed");
    job.finish(dir.path(), Start::Over);
}

#[test]
fn there_must_be_something_to_resume() {
    let dir = tempfile::tempdir().unwrap();
    let message = job(1).run(dir.path(), Start::Resume, &Interrupt::default()).unwrap_err().to_string();
    assert!(message.contains("no usable checkpoint") && message.contains("shikha train"), "{message}");
}

#[test]
fn steps_without_a_finite_loss_are_left_out_and_five_in_a_row_end_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(1);
    job.toy.empty_from = 22;
    let error = job.run(dir.path(), Start::Continue, &Interrupt::default()).unwrap_err();
    assert!(matches!(error, TrainError::NotFinite { step: 27, count: 5 }), "{error}");
    let rows = read_metrics(&dir.path().join("metrics.jsonl")).unwrap();
    assert_eq!(rows.iter().filter(|r| r.skipped).map(|r| r.step).collect::<Vec<_>>(), [23, 24, 25, 26, 27]);
    let (found, _) = latest(dir.path(), &config(), &job.identity).unwrap();
    assert_eq!(found.unwrap().state.step, 20, "the last checkpoint is unharmed");
}

#[test]
fn a_diverging_run_stops_and_its_rows_can_still_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(1);
    job.recipe.steps = 10;
    job.finish(dir.path(), Start::Continue);
    (job.recipe.steps, job.recipe.learning_rate, job.recipe.minimum_learning_rate) = (40, 3e38, 3e38);
    (job.recipe.warmup_steps, job.recipe.validate_every) = (0, 1);
    let error = job.run(dir.path(), Start::Resume, &Interrupt::default()).unwrap_err();
    assert!(matches!(error, TrainError::NotFinite { count: 5, .. }), "{error}");
    let rows = read_metrics(&dir.path().join("metrics.jsonl")).unwrap();
    assert!(rows.iter().any(|r| r.validation.get("toy") == Some(&None)), "a loss that is not finite is null");
    assert!(rows.iter().filter(|r| r.skipped).count() >= 5);
}

#[test]
fn a_learning_rate_that_blows_up_the_first_steps_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(1);
    (job.recipe.learning_rate, job.recipe.minimum_learning_rate, job.recipe.warmup_steps) = (10.0, 1.0, 0);
    let error = job.run(dir.path(), Start::Continue, &Interrupt::default()).unwrap_err();
    assert!(matches!(&error, TrainError::Preflight { .. }), "{error}");
    assert!(error.to_string().contains("more than its own size"), "{error}");
    assert!(!dir.path().join("checkpoints").exists());
}

#[test]
fn altered_metrics_send_the_run_back_to_where_they_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(1);
    job.recipe.keep_last = 4;
    let (expected, rows) = job.finish(dir.path(), Start::Continue);
    let path = dir.path().join("metrics.jsonl");
    // Row 25, in the file itself and in both copies that have it.
    let copy = |step| checkpoint_dir(dir.path(), step).join("metrics.jsonl");
    for path in [path, copy(30), copy(40)] {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[24] = lines[24].replace("\"loss\":", "\"loss\":1");
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let (found, rejected) = latest(dir.path(), &config(), &job.identity).unwrap();
    assert!(found.unwrap().state.step == 20 && rejected.len() == 2, "{rejected:?}");
    assert!(rejected[0].contains("metrics"), "{rejected:?}");
    // Stopped on the way, the new state counts: nothing that lay further on is left.
    assert_eq!(job.run(dir.path(), Start::Resume, &interrupted()).unwrap(), Outcome::Interrupted(21));
    assert!(checkpoint_dir(dir.path(), 21).exists() && !checkpoint_dir(dir.path(), 40).exists());
    let (again, new_rows) = job.finish(dir.path(), Start::Resume);
    assert_eq!(again.content_hash(), expected.content_hash());
    assert_eq!(deterministic_hash(&new_rows), deterministic_hash(&rows));
}

#[test]
fn a_state_of_another_version_or_place_or_content_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(1);
    job.finish(dir.path(), Start::Continue);
    let path = checkpoint_dir(dir.path(), 40).join("state.json");
    let good = std::fs::read_to_string(&path).unwrap();
    for (from, to) in
        [("\"updates\": 40", "\"updates\": 41"), ("\"step\": 40", "\"step\": 30"), ("\"tokens\": 1", "\"tokens\": 2")]
    {
        assert!(good.contains(from), "{good}");
        std::fs::write(&path, good.replace(from, to)).unwrap();
        let (found, rejected) = latest(dir.path(), &config(), &job.identity).unwrap();
        assert!(found.unwrap().state.step == 30 && rejected[0].contains("altered"), "{rejected:?}");
    }
    for at in 0..good.len() {
        let mut bad = good.clone().into_bytes();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        let used = latest(dir.path(), &config(), &job.identity).map(|(found, _)| found.unwrap().state.step);
        assert!(!matches!(used, Ok(40)), "a flipped bit in byte {at} of state.json");
    }
    std::fs::write(&path, good.replace("\"format\": 1", "\"format\": 2")).unwrap();
    let message = latest(dir.path(), &config(), &job.identity).unwrap_err().to_string();
    assert!(message.contains("format 2") && message.contains("reads format 1"), "{message}");
}

#[test]
fn the_preflight_passes_a_healthy_model_and_names_a_dead_parameter() {
    let config = config();
    let batch = Toy { batch: 8, empty_from: u64::MAX }.batch(0).unwrap();
    let mut decoder = Decoder::new(config.clone(), false).unwrap();
    let healthy: Parameters<f32> = initialise(&config, 1);
    let verdict = preflight(&mut decoder, &healthy, &batch, &recipe(40, 1)).unwrap();
    assert!(verdict.passed() && verdict.parameters == healthy.tensors().len(), "{}", verdict.report());
    let mut dead = healthy.clone();
    let gain = dead.tensors().iter().find(|t| t.name == "model.layers.1.input_layernorm.weight").unwrap().clone();
    dead.values_mut(&gain).fill(0.0); // its projections get no input, so no gradient
    let verdict = preflight(&mut decoder, &dead, &batch, &recipe(40, 1)).unwrap();
    assert!(!verdict.passed());
    let named: Vec<&str> = verdict.findings.iter().map(|f| f.parameter.as_str()).collect();
    for part in ["q_proj", "k_proj", "v_proj"] {
        assert!(named.contains(&format!("model.layers.1.self_attn.{part}.weight").as_str()), "{named:?}");
    }
    assert!(!named.iter().any(|name| name.contains("layers.0.mlp")), "{named:?}");
}

#[test]
fn a_torn_line_in_the_metrics_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(1);
    let (expected, rows) = job.finish(dir.path(), Start::Continue);
    let path = dir.path().join("metrics.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(checkpoint_dir(dir.path(), 40)).unwrap();
    std::fs::write(&path, &text[..text.len() - 40]).unwrap();
    assert!(read_metrics(&path).unwrap_err().to_string().contains("line 40"));
    let (found, again) = job.finish(dir.path(), Start::Resume);
    assert_eq!(found.content_hash(), expected.content_hash());
    assert_eq!(deterministic_hash(&again), deterministic_hash(&rows));
}
