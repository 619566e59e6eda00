//! A training run on a device: beside the processor's, stopped and resumed, and its step that is left out.

use super::cpu::{Cpu, Hosts};
use super::host::{Host, compiler};
use crate::train::{Job, config, interrupted, job};
use shikha::arbiter::{Question, Verdict};
use shikha::ops::cuda::Backend;
use shikha::recipe::Precision;
use shikha::train::{
    Checkpoint, Interrupt, Outcome, Row, Start, TrainError, checkpoint_dir, deterministic_hash, device, read_metrics,
};
use std::path::Path;
use std::rc::Rc;

/// Twelve steps of two micro-batches, with a checkpoint and a validation every four.
fn short(precision: Precision) -> Job {
    let mut job = job(2);
    (job.recipe.steps, job.recipe.checkpoint_every, job.recipe.validate_every) = (12, 4, 4);
    job.recipe.precision = precision;
    job
}

/// Trains on a machine that `open` gives.
fn run_on<B: Backend + 'static>(open: impl Fn() -> B, job: &Job, directory: &Path, interrupt: &Interrupt) -> Outcome {
    let make = |config: &_, recipe: &_, at: &Checkpoint| device(open(), 1e9, config, recipe, at);
    job.run_with(&make, &job.toy, directory, Start::Continue, interrupt).unwrap()
}

/// Trains on the kernels, run on the CPU.
fn run(job: &Job, hosts: &Rc<Hosts>, directory: &Path, interrupt: &Interrupt) -> Outcome {
    run_on(|| Cpu::new(hosts, 0), job, directory, interrupt)
}

fn rows(directory: &Path) -> Vec<Row> {
    read_metrics(&directory.join("metrics.jsonl")).unwrap()
}

#[test]
fn a_run_on_kernels_follows_the_processor_s() {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    follows_the_processor(|| Cpu::new(&hosts, 0));
}

/// On a GPU, where there is one: the same run there.
#[cfg(feature = "cuda")]
#[test]
fn a_run_on_a_gpu_follows_the_processor_s() {
    use shikha::ops::cuda::Device;
    match Device::open(0) {
        Ok(_) => follows_the_processor(|| Device::open(0).unwrap()),
        Err(error) => eprintln!("not measured: {error}"),
    }
}

fn follows_the_processor<B: Backend + 'static>(open: impl Fn() -> B) {
    let here = tempfile::tempdir().unwrap();
    let (expected, expected_rows) = short(Precision::F32).finish(here.path(), Start::Continue);
    // f32: the same steps but for the order of sums.
    for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::Bf16, 2e-2)] {
        let (job, on_device) = (short(precision), tempfile::tempdir().unwrap());
        assert_eq!(run_on(&open, &job, on_device.path(), &Interrupt::default()), Outcome::Finished);
        let found = Checkpoint::load(on_device.path(), 12, &config()).unwrap();
        for (a, b) in rows(on_device.path()).iter().zip(&expected_rows) {
            let off = (a.loss.unwrap() / b.loss.unwrap() - 1.0).abs();
            assert!(off < tolerance, "step {}: {:?} on the device, {:?} on the processor", a.step, a.loss, b.loss);
            let off = (a.gradient_norm.unwrap() / b.gradient_norm.unwrap() - 1.0).abs();
            assert!(off < 20.0 * tolerance, "step {}: {:?} {:?}", a.step, a.gradient_norm, b.gradient_norm);
            assert_eq!(a.validation.keys().collect::<Vec<_>>(), b.validation.keys().collect::<Vec<_>>());
            for (language, loss) in &a.validation {
                let off = (loss.unwrap() / b.validation[language].unwrap() - 1.0).abs();
                assert!(off < tolerance, "validation {language}: {loss:?} {:?}", b.validation[language]);
            }
        }
        let distance = |a: &[f32], b: &[f32]| {
            let squares = |pairs: &mut dyn Iterator<Item = f64>| pairs.map(|x| x * x).sum::<f64>();
            let apart = squares(&mut a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
            (apart / squares(&mut b.iter().map(|x| f64::from(*x)))).sqrt()
        };
        let off = distance(&found.parameters.flat, &expected.parameters.flat);
        assert!(off < 10.0 * tolerance, "{precision:?}: the weights are off by {off:.1e}");
        let verdict = std::fs::read_to_string(on_device.path().join("arbiter.json")).unwrap();
        let verdict: Verdict = serde_json::from_str(&verdict).unwrap();
        // A weight rounded to bf16 cannot be moved by little, so *right* is asked in f32 alone.
        let asked = |question: &Question| precision == Precision::F32 || *question != Question::Right;
        let mut expected: Vec<Question> = Question::ALL.into_iter().filter(asked).collect();
        expected.sort_unstable();
        let mut found = verdict.asked.clone();
        found.sort_unstable();
        assert_eq!(found, expected);
        assert!(verdict.passed() && verdict.cost.steps > 0, "{}", verdict.report());
    }
}

/// Kernels whose fault a curve of losses would hide, and the question that sees it before the first step.
const HIDDEN: [(&str, &str, &str, &str, Question); 4] = [
    ("adamw", "adamw", "v.at[j] * correct", "v.at[j]", Question::Applied),
    ("adamw", "adamw", "i < count; i += stride", "i + N < count; i += stride", Question::Applied),
    ("rms_norm", "rms_norm_gain", ".at[0] + sum}", ".at[0] - sum}", Question::Right),
    ("swiglu", "swiglu_backward", "(s + silu * (1 - s))", "(s + silu)", Question::Right),
];

#[test]
fn a_run_on_a_faulty_kernel_does_not_start() {
    if !compiler() {
        return;
    }
    let (hosts, job) = (Hosts::new(), short(Precision::F32));
    for (file, kernel, right, wrong, question) in HIDDEN {
        let faulty = Rc::new(Host::with(file, &[(right, wrong)]));
        let open = || Cpu::new(&hosts, 0).with_fault(kernel, &faulty);
        let directory = tempfile::tempdir().unwrap();
        let make = |config: &_, recipe: &_, at: &Checkpoint| device(open(), 1e9, config, recipe, at);
        let error = job.run_with(&make, &job.toy, directory.path(), Start::Continue, &Interrupt::default());
        assert!(matches!(error, Err(TrainError::Preflight { .. })), "{kernel}, {wrong}: {error:?}");
        let text = std::fs::read_to_string(directory.path().join("arbiter.json")).unwrap();
        let verdict: Verdict = serde_json::from_str(&text).unwrap();
        assert!(verdict.failed(question), "{kernel}, {wrong}: {}", verdict.report());
        println!("{kernel}, {wrong}: {}", verdict.report().lines().next().unwrap_or_default());
    }
}

#[test]
fn a_run_on_kernels_that_is_stopped_goes_on_with_the_same_bits() {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    let job = short(Precision::Bf16);
    let (whole, pieces) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(run(&job, &hosts, whole.path(), &Interrupt::default()), Outcome::Finished);
    for step in 1..12 {
        assert_eq!(run(&job, &hosts, pieces.path(), &interrupted()), Outcome::Interrupted(step));
    }
    assert_eq!(run(&job, &hosts, pieces.path(), &Interrupt::default()), Outcome::Finished);
    let [a, b] = [&whole, &pieces].map(|folder| Checkpoint::load(folder.path(), 12, &config()).unwrap());
    assert_eq!(a.content_hash(), b.content_hash());
    assert_eq!(deterministic_hash(&rows(whole.path())), deterministic_hash(&rows(pieces.path())));
    assert!(checkpoint_dir(whole.path(), 12).exists());
}

#[test]
fn a_step_without_a_target_moves_nothing_on_a_device() {
    if !compiler() {
        return;
    }
    let (hosts, directory) = (Hosts::new(), tempfile::tempdir().unwrap());
    let mut job = short(Precision::F32);
    (job.recipe.steps, job.recipe.checkpoint_every, job.toy.empty_from) = (6, 1, 10);
    job.recipe.keep_last = 10;
    assert_eq!(run(&job, &hosts, directory.path(), &Interrupt::default()), Outcome::Finished);
    let skipped: Vec<bool> = rows(directory.path()).iter().map(|row| row.skipped).collect();
    assert_eq!(skipped, [false, false, false, false, false, true]);
    let [before, after] = [5, 6].map(|step| Checkpoint::load(directory.path(), step, &config()).unwrap());
    assert_eq!(before.parameters.flat, after.parameters.flat);
    assert_eq!((before.state.updates, after.state.updates), (5, 5));
}
