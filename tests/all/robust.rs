//! Nothing lost: a run is killed or refused at every boundary below the artifact layer, and at random
//! moments, and goes on to the same bits.

use crate::train::{Job, job};
use shikha::artifact::boundary::{self, Fault};
use shikha::train::{Interrupt, Outcome, Start, TrainError, deterministic_hash};
use std::path::Path;
use std::process::Command;

/// Tells a process of this test that it is the one to die, where, and in which directory.
const DIE: &str = "SHIKHA_TEST_DIE";

/// Refusals of the disk, and what the error says of each.
pub const REFUSALS: [(Fault, &str); 3] = [
    (Fault::Full, "free some space"),
    (Fault::Denied, "check the permissions"),
    (Fault::Broken, "the disk does not answer"),
];

/// A run of six steps with a checkpoint every second one, of which two are kept.
fn short() -> Job {
    let mut job = job(1);
    (job.recipe.steps, job.recipe.checkpoint_every, job.recipe.validate_every) = (6, 2, 2);
    (job.recipe.keep_last, job.recipe.warmup_steps) = (2, 2);
    job
}

/// Everything the seed decides: weights, moments, state and metrics.
fn result(directory: &Path, job: &Job) -> String {
    let (checkpoint, rows) = job.read(directory);
    let state = checkpoint.state.clone();
    let facts = (state.step, state.tokens, state.updates, state.metrics.to_string());
    format!("{} {facts:?} {}", checkpoint.content_hash(), deterministic_hash(&rows))
}

/// The uninterrupted run: what it gives and how many boundaries it crosses.
fn uninterrupted(job: &Job) -> (String, u64) {
    let dir = tempfile::tempdir().unwrap();
    boundary::at(None);
    assert_eq!(job.run(dir.path(), Start::Continue, &Interrupt::default()).unwrap(), Outcome::Finished);
    // Those of the run: reading what it left crosses more.
    let boundaries = boundary::crossed();
    (result(dir.path(), job), boundaries)
}

#[test]
fn a_disk_that_refuses_at_any_boundary_is_an_error_and_loses_nothing() {
    let job = short();
    let (expected, boundaries) = uninterrupted(&job);
    assert!(boundaries > 80, "{boundaries}");
    let (mut errors, mut repeated) = (0, 0);
    for number in (1..=boundaries).step_by(every(7)) {
        let (fault, cause) = REFUSALS[number as usize % 3];
        let dir = tempfile::tempdir().unwrap();
        boundary::at(Some((number, fault)));
        let error = job.run(dir.path(), Start::Continue, &Interrupt::default());
        boundary::at(None);
        let message = error.map(|outcome| format!("{outcome:?}")).unwrap_err().to_string();
        assert!(message.contains(cause) && message.lines().count() == 1, "boundary {number}: {message}");
        errors += 1;
        let before = shikha::train::read_metrics(&dir.path().join("metrics.jsonl")).map_or(0, |rows| rows.len());
        let at = saved(dir.path(), &job);
        repeated += before as u64 - at.min(before as u64);
        assert!(before as u64 <= at + 2, "boundary {number}: at most the steps since the last checkpoint are repeated");
        job.finish(dir.path(), Start::Continue);
        assert_eq!(result(dir.path(), &job), expected, "boundary {number}");
    }
    println!("{boundaries} boundaries, {errors} errors that name their cause, {repeated} steps repeated, 0 runs lost");
}

#[test]
fn a_disk_that_cannot_be_read_when_a_run_goes_on_is_an_error_and_loses_nothing() {
    let job = short();
    let (expected, _) = uninterrupted(&job);
    let dir = tempfile::tempdir().unwrap();
    let stopped = dir.path().join("stopped");
    for step in 1..=5 {
        assert_eq!(
            job.run(&stopped, Start::Continue, &crate::train::interrupted()).unwrap(),
            Outcome::Interrupted(step)
        );
    }
    let again = |number: Option<u64>| {
        let root = dir.path().join("again");
        let _ = std::fs::remove_dir_all(&root);
        crate::robust_faults::copy(&stopped, &root);
        boundary::at(number.map(|number| (number, Fault::Broken)));
        let outcome = job.run(&root, Start::Resume, &Interrupt::default());
        (root, outcome, boundary::crossed())
    };
    let (_, outcome, boundaries) = again(None);
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    let (mut refused, mut passed_over) = (0, 0);
    for number in (1..=boundaries).step_by(every(3)) {
        let (root, outcome, _) = again(Some(number));
        boundary::at(None);
        match outcome {
            // An older checkpoint or a copy did it.
            Ok(_) => passed_over += 1,
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("the disk does not answer"), "boundary {number}: {message}");
                assert_eq!(message.lines().count(), 1, "{message}");
                refused += 1;
            }
        }
        job.finish(&root, Start::Resume);
        assert_eq!(result(&root, &job), expected, "boundary {number}");
    }
    println!("{boundaries} boundaries: {refused} refused with their cause, {passed_over} went on, 0 runs lost");
    assert!(refused > passed_over && passed_over > 0);
}

/// Every how many boundaries one is tried: each with `SHIKHA_EVERY_BOUNDARY` set, as `make kill` does.
pub fn every(few: usize) -> usize {
    if std::env::var_os("SHIKHA_EVERY_BOUNDARY").is_some() { 1 } else { few }
}

/// The step of the newest whole checkpoint.
fn saved(directory: &Path, job: &Job) -> u64 {
    let (found, _) = shikha::train::latest(directory, &crate::train::config(), &job.identity).unwrap();
    found.map_or(0, |checkpoint| checkpoint.state.step)
}

/// Not a test by itself: the process that dies, started by the test below.
#[test]
fn the_process_that_dies() {
    let Ok(order) = std::env::var(DIE) else { return };
    let (number, directory) = order.split_once(' ').unwrap();
    boundary::at(Some((number.parse().unwrap(), Fault::Abort)));
    let _ = short().run(Path::new(directory), Start::Continue, &Interrupt::default());
}

/// Starts that process; whether it died of the abort.
fn die_at(number: u64, directory: &Path) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["the_process_that_dies", "--nocapture", "--test-threads=1"])
        .env(DIE, format!("{number} {}", directory.display()))
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .unwrap();
    !output.status.success()
}

#[test]
fn a_process_that_dies_at_any_boundary_goes_on_to_the_same_bits() {
    let job = short();
    let (expected, boundaries) = uninterrupted(&job);
    let mut killed = 0;
    for number in (1..=boundaries).step_by(every(29)) {
        let dir = tempfile::tempdir().unwrap();
        assert!(die_at(number, dir.path()), "boundary {number}: it should have died");
        killed += 1;
        if number % 3 == 0 {
            killed += u64::from(die_at(1 + number / 3, dir.path())); // and again while it recovers
        }
        job.finish(dir.path(), Start::Continue);
        assert_eq!(result(dir.path(), &job), expected, "boundary {number}");
    }
    println!("{boundaries} boundaries, killed {killed} times, 0 runs lost");
}

#[test]
fn damage_beside_the_checkpoints_is_put_back_and_all_damaged_is_left_alone() {
    let job = short();
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(job.run(dir.path(), Start::Continue, &crate::train::interrupted()).unwrap(), Outcome::Interrupted(1));
    job.finish(dir.path(), Start::Resume);
    let expected = result(dir.path(), &job);
    for name in ["metrics.jsonl", "arbiter.json"] {
        let path = dir.path().join(name);
        let good = std::fs::read(&path).unwrap();
        let flipped = |mask: u8| good.iter().enumerate().map(|(i, b)| b ^ if i == 20 { mask } else { 0 }).collect();
        let damaged: [Option<Vec<u8>>; 4] = [Some(flipped(1)), Some(flipped(0x80)), Some(good[..30].to_vec()), None];
        for bytes in damaged {
            match bytes {
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            job.finish(dir.path(), Start::Continue);
            assert_eq!(result(dir.path(), &job), expected);
            assert!(std::fs::read(&path).unwrap() == good, "{name} is as it was");
        }
    }
    for step in [4, 6] {
        let path = shikha::train::checkpoint_dir(dir.path(), step).join("model.safetensors");
        let cut = std::fs::read(&path).unwrap().split_off(9);
        std::fs::write(&path, cut).unwrap();
    }
    std::fs::remove_dir_all(shikha::train::checkpoint_dir(dir.path(), 2)).ok();
    let error = job.run(dir.path(), Start::Continue, &Interrupt::default()).unwrap_err();
    assert!(matches!(&error, TrainError::NothingUsable { rejected, .. } if rejected.len() == 2), "{error}");
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert!(shikha::train::checkpoint_dir(dir.path(), 6).exists());
}
