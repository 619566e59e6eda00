//! Bad numbers and odd batches: what a step does with them, what the metrics say, what is left of them.

use crate::train::{Job, config, interrupted, job};
use shikha::corpus::CorpusError;
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
    /// Another token after each than the one that was learnt.
    Surprising,
}

/// The toy's batches, some of them replaced.
struct Odd<'a> {
    job: &'a Job,
    at: &'a [u64],
    kind: Kind,
}

impl Batches for Odd<'_> {
    fn batch(&self, n: u64) -> Result<Batch, CorpusError> {
        let mut batch = self.job.toy.batch(n)?;
        if self.at.contains(&n) {
            match self.kind {
                Kind::Padding => batch.targets.fill(IGNORE),
                Kind::Surprising => batch.targets.iter_mut().for_each(|token| *token = (*token + 17) % 40),
                Kind::Repeated => {
                    batch.inputs.fill(7);
                    batch.targets.fill(7);
                }
            }
        }
        Ok(batch)
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

/// A run that has learnt the toy after a hundred steps.
fn learnt() -> Job {
    let mut job = job(1);
    (job.recipe.steps, job.recipe.checkpoint_every) = (130, 1);
    (job.recipe.validate_every, job.recipe.keep_last) = (65, 130);
    job
}

#[test]
fn a_loss_that_jumps_is_skipped_recorded_and_harms_nothing() {
    let job = learnt();
    let data = Odd { job: &job, at: &[120], kind: Kind::Surprising };
    let (whole, pieces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(run(&data, whole.path(), false).unwrap(), Outcome::Finished);
    let found = rows(whole.path());
    let skipped: Vec<&Row> = found.iter().filter(|row| row.skipped).collect();
    assert_eq!(skipped.iter().map(|row| row.step).collect::<Vec<_>>(), [121], "{:?}", found[120]);
    let (before, spike) = (found[119].loss.unwrap(), skipped[0].loss.unwrap());
    assert!(spike > before + 2.0, "the row keeps the loss that jumped: {before} {spike}");
    assert_eq!(at(whole.path(), 121).content_hash(), at(whole.path(), 120).content_hash());
    assert!(found[121].loss.unwrap() < before + 1.0, "and the run goes on where it was");
    // Interrupted just before, at and after it: the same judgement, the same bits.
    crate::robust_faults::copy(whole.path(), pieces.path());
    for step in 119..=130 {
        std::fs::remove_dir_all(pieces.path().join(format!("checkpoints/step-{step:06}"))).unwrap();
    }
    for _ in 118..130 {
        run(&data, pieces.path(), true).unwrap();
    }
    assert_eq!(at(pieces.path(), 130).content_hash(), at(whole.path(), 130).content_hash());
    assert_eq!(deterministic_hash(&rows(pieces.path())), deterministic_hash(&found));
}

#[test]
fn a_loss_that_stays_up_stops_the_run() {
    let job = learnt();
    let data = Odd { job: &job, at: &[120, 121, 122, 123, 124], kind: Kind::Surprising };
    let dir = tempfile::tempdir().unwrap();
    let error = run(&data, dir.path(), false).unwrap_err();
    assert!(matches!(error, TrainError::Spike { step: 125, count: 5, loss, usual } if loss > usual + 2.0), "{error}");
    assert!(error.to_string().contains("far above the usual"), "{error}");
    assert_eq!(at(dir.path(), 124).content_hash(), at(dir.path(), 120).content_hash());
}

#[test]
fn parameters_that_give_no_numbers_move_nothing_and_are_never_saved() {
    let job = every_step(1);
    let odd = Odd { job: &job, at: &[], kind: Kind::Padding };
    let whole = tempfile::tempdir().unwrap();
    run(&odd, whole.path(), false).unwrap();
    let good = at(whole.path(), 5);
    let mut stopped = 0;
    for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e38, -1e38] {
        for tensor in good.parameters.tensors() {
            let dir = tempfile::tempdir().unwrap();
            std::fs::copy(whole.path().join("metrics.jsonl"), dir.path().join("metrics.jsonl")).unwrap();
            std::fs::copy(whole.path().join("arbiter.json"), dir.path().join("arbiter.json")).unwrap();
            let mut bad = good.clone();
            bad.parameters.values_mut(tensor).fill(poison);
            bad.save(dir.path()).unwrap();
            let name = format!("{poison} in {}", tensor.name);
            match run(&odd, dir.path(), false) {
                // A large but finite number may still be learnt away from, with finite losses.
                Ok(_) => {
                    assert!(poison.is_finite(), "{name}");
                    assert!(rows(dir.path()).iter().skip(5).all(|row| row.skipped || row.loss.is_some()), "{name}");
                }
                Err(error) => {
                    let stated = match &error {
                        TrainError::NothingUsable { .. } => !poison.is_finite(), // refused before a step
                        TrainError::NotFinite { .. } | TrainError::Diverged { .. } | TrainError::Spike { .. } => true,
                        _ => false,
                    };
                    assert!(stated, "{name}: {error}");
                    stopped += 1;
                }
            }
            let moved: Vec<u64> =
                (6..=10).filter(|step| dir.path().join(format!("checkpoints/step-{step:06}")).exists()).collect();
            for step in moved {
                let found = at(dir.path(), step);
                assert!(found.parameters.flat.iter().all(|x| x.is_finite()), "{name}: saved at step {step}");
            }
        }
    }
    println!("{stopped} of {} poisoned states stopped by name, none saved again", 5 * good.parameters.tensors().len());
    assert!(stopped >= 3 * good.parameters.tensors().len());
}
