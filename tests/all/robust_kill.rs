//! The program itself, killed at random moments: what it makes afterwards is what it would have made.

use crate::robust_faults::{copy, result, small};
use shikha::rng::Stream;
use shikha::train::read_metrics;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs to be killed: `make kill` asks for 200.
fn kills() -> u64 {
    std::env::var("SHIKHA_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(5)
}

fn start(recipe: &Path, root: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_shikha"))
        .args([Path::new("train"), recipe, Path::new("--run-dir"), root])
        .env_remove("SHIKHA_MIRROR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn finish(recipe: &Path, root: &Path) -> Duration {
    let started = Instant::now();
    let output = start(recipe, root).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    started.elapsed()
}

fn rows(root: &Path) -> u64 {
    std::fs::read(root.join("metrics.jsonl")).map_or(0, |text| text.iter().filter(|b| **b == b'\n').count() as u64)
}

fn checkpointed(root: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(root.join("checkpoints")) else { return 0 };
    let step = |name: String| name.strip_prefix("step-").and_then(|digits| digits.parse().ok());
    entries.filter_map(|entry| step(entry.unwrap().file_name().to_string_lossy().into_owned())).max().unwrap_or(0)
}

/// A recipe file of 120 steps with a checkpoint every six, and the folder of the uninterrupted run.
fn prepared(dir: &Path) -> (std::path::PathBuf, std::path::PathBuf, Duration) {
    let mut recipe = small(dir);
    (recipe.train.steps, recipe.train.checkpoint_every, recipe.train.validate_every) = (120, 6, 60);
    let path = dir.join("small.toml");
    std::fs::write(&path, recipe.to_toml()).unwrap();
    let whole = dir.join("whole");
    let duration = finish(&path, &whole);
    (path, whole, duration)
}

#[test]
fn killed_at_random_moments_it_goes_on_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let (recipe, whole, duration) = prepared(dir.path());
    let expected = result(&whole, 120);
    let stream = Stream::new(3, "kill");
    let (mut killed, mut in_training, mut repeated) = (0, 0, 0);
    for n in 0..kills() {
        let root = dir.path().join("killed");
        let _ = std::fs::remove_dir_all(&root);
        // Some start from the finished text, so that more of the moments fall into training.
        if n % 2 == 1 {
            copy(&whole, &root);
            std::fs::remove_dir_all(root.join("checkpoints")).unwrap();
            std::fs::remove_file(root.join("metrics.jsonl")).unwrap();
        }
        let mut child = start(&recipe, &root);
        std::thread::sleep(duration.mul_f64(stream.uniform(n)));
        killed += u64::from(child.try_wait().unwrap().is_none());
        let _ = child.kill(); // SIGKILL
        child.wait().unwrap();
        let (done, kept) = (rows(&root), checkpointed(&root));
        in_training += u64::from(done > 0 && done < 120);
        repeated += done.saturating_sub(kept);
        assert!(done <= kept + 6, "kill {n}: {done} steps done, the last checkpoint is of {kept}");
        finish(&recipe, &root);
        assert_eq!(result(&root, 120), expected, "kill {n}");
    }
    println!(
        "{killed} of {} killed before the end, {in_training} in training; 0 lost, {repeated} steps repeated",
        kills()
    );
}

#[test]
fn asked_to_stop_it_saves_first_and_repeats_no_step() {
    let dir = tempfile::tempdir().unwrap();
    let (recipe, whole, _) = prepared(dir.path());
    for signal in ["-TERM", "-INT"] {
        stop_with(signal, &recipe, &whole, &dir.path().join(signal));
    }
}

fn stop_with(signal: &str, recipe: &Path, whole: &Path, root: &Path) {
    let child = start(recipe, root);
    let started = Instant::now();
    while rows(root) < 4 && started.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let send = |signal: &str| {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    };
    // Held while it is asked, so that it cannot have ended before.
    send("-STOP");
    let reached = rows(root);
    assert!((4..110).contains(&reached), "it was to be met in training, and is at step {reached}");
    send(signal);
    send("-CONT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("everything is saved"), "{text}");
    let done = read_metrics(&root.join("metrics.jsonl")).unwrap().len() as u64;
    assert!(done < 120, "it went on to the end");
    assert_eq!(done, checkpointed(root), "no step is repeated");
    finish(recipe, root);
    assert_eq!(result(root, 120), result(whole, 120));
}
