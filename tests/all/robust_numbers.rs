//! Bad numbers and odd batches: what a step does with them, what the metrics say, what is left of them.

use crate::train::{Job, config, interrupted, job};
use shikha::corpus::loader::{Batch, Batches};
use shikha::ops::IGNORE;
use shikha::train::{Checkpoint, Interrupt, Outcome, Row, Start, TrainError, deterministic_hash, read_metrics};
use std::path::Path;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// No target at all.
    Padding,
    /// One token, again and again.
    Repeated,
}

/// The toy's batches, some of them replaced.
struct Odd<'a> {
    job: &'a Job,
    at: &'a [u64],
    kind: Kind,
}

impl Batches for Odd<'_> {
    fn batch(&self, n: u64) -> Batch {
        let mut batch = self.job.toy.batch(n);
        if self.at.contains(&n) {
            match self.kind {
                Kind::Padding => batch.targets.fill(IGNORE),
                Kind::Repeated => {
                    batch.inputs.fill(7);
                    batch.targets.fill(7);
                }
            }
        }
        batch
    }
}

/// Ten steps, each with a checkpoint that is kept.
fn every_step(accumulate: usize) -> Job {
    let mut job = job(accumulate);
    (job.recipe.steps, job.recipe.checkpoint_every, job.recipe.validate_every) = (10, 1, 10);
    job.recipe.keep_last = 20;
    job
}

fn run(data: &Odd, directory: &Path, stop: bool) -> Result<Outcome, TrainError> {
    let interrupt = if stop { interrupted() } else { Interrupt::default() };
    data.job.run_on(data, directory, Start::Continue, &interrupt)
}

fn rows(directory: &Path) -> Vec<Row> {
    read_metrics(&directory.join("metrics.jsonl")).unwrap()
}

fn at(directory: &Path, step: u64) -> Checkpoint {
    Checkpoint::load(directory, step, &config()).unwrap()
}

#[test]
fn an_all_padding_batch_is_skipped_recorded_and_harms_nothing() {
    let job = every_step(1);
    let data = Odd { job: &job, at: &[3, 7], kind: Kind::Padding };
    let (whole, pieces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(run(&data, whole.path(), false).unwrap(), Outcome::Finished);
    let found = rows(whole.path());
    let skipped: Vec<u64> = found.iter().filter(|row| row.skipped).map(|row| row.step).collect();
    assert_eq!(skipped, [4, 8]);
    assert!(found.iter().all(|row| row.skipped == row.loss.is_none()));
    for step in [4, 8] {
        assert_eq!(at(whole.path(), step).content_hash(), at(whole.path(), step - 1).content_hash(), "step {step}");
    }
    assert_eq!(at(whole.path(), 10).state.updates, 8, "AdamW counts the steps that were taken");
    for step in 1..10 {
        assert_eq!(run(&data, pieces.path(), true).unwrap(), Outcome::Interrupted(step));
    }
    assert_eq!(run(&data, pieces.path(), false).unwrap(), Outcome::Finished);
    assert_eq!(at(pieces.path(), 10).content_hash(), at(whole.path(), 10).content_hash());
    assert_eq!(deterministic_hash(&rows(pieces.path())), deterministic_hash(&found));
}

#[test]
fn skips_are_counted_across_interruptions() {
    let job = every_step(1);
    let data = Odd { job: &job, at: &[2, 3, 4, 5, 6], kind: Kind::Padding };
    let dir = tempfile::tempdir().unwrap();
    for _ in 1..=6 {
        run(&data, dir.path(), true).unwrap();
    }
    let error = run(&data, dir.path(), true).unwrap_err();
    assert!(matches!(error, TrainError::NotFinite { step: 7, count: 5 }), "{error}");
    assert_eq!(at(dir.path(), 6).state.skipped_in_a_row, 4);
    // The same answer again: it is not forgotten by trying once more.
    assert_eq!(run(&data, dir.path(), false).unwrap_err().to_string(), error.to_string());
}

#[test]
fn padding_in_one_of_several_micro_batches_only_counts_less() {
    let job = every_step(3);
    let data = Odd { job: &job, at: &[4], kind: Kind::Padding }; // the second of step 2
    let dir = tempfile::tempdir().unwrap();
    run(&data, dir.path(), false).unwrap();
    let found = rows(dir.path());
    assert!(found.iter().all(|row| !row.skipped && row.loss.is_some_and(f64::is_finite)), "{found:?}");
}

#[test]
fn one_token_again_and_again_is_a_step_like_any_other() {
    let job = every_step(1);
    let data = Odd { job: &job, at: &[5, 6], kind: Kind::Repeated };
    let dir = tempfile::tempdir().unwrap();
    run(&data, dir.path(), false).unwrap();
    let found = rows(dir.path());
    assert!(found.iter().all(|row| !row.skipped && row.loss.is_some() && row.gradient_norm.is_some()));
    let last = at(dir.path(), 10);
    for part in [&last.parameters, &last.first, &last.second] {
        assert!(part.flat.iter().all(|x| x.is_finite()));
    }
    assert!(found[6].loss < found[5].loss, "the second such batch is easier: {:?} {:?}", found[5].loss, found[6].loss);
}
