//! Tests of `defects`: the verdicts, checks that can change their mind, and children that misbehave.

use candle_core::{DType, Device, Result, Tensor};
use shikha::defects::{Kind, Limits, Outcome, Verdict, catalogue, judge_gradient, run_all, run_child};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn every_entry_gives_a_verdict_and_every_control_is_clean() {
    let entries = catalogue();
    let ids: BTreeSet<&str> = entries.iter().map(|e| e.id).collect();
    assert!(ids.len() == entries.len() && entries.len() >= 20, "{} entries", entries.len());
    let mut seen = 0;
    run_all(Path::new(env!("CARGO_BIN_EXE_shikha")), &entries, Limits::default(), |entry, check, control| {
        seen += 1;
        assert!(!control.shows(), "{}: {}", entry.id, control.evidence());
        assert!(!check.evidence().is_empty(), "{}", entry.id);
        let needs_hardware = matches!(check, Outcome::Verdict(Verdict::NeedsHardware(_)));
        // True of the pinned version: a new Candle that cures one makes this fail, and should.
        assert!(check.shows() || needs_hardware, "{}: {}", entry.id, check.evidence());
    });
    assert_eq!(seen, entries.len());
}

#[test]
fn the_arbiter_catches_every_silent_gradient_defect_by_parameter_and_names_the_cutting_op() {
    let entries = catalogue();
    let program = Path::new(env!("CARGO_BIN_EXE_shikha"));
    let (mut missing, mut wrong) = (0, 0);
    run_all(program, &entries, Limits::default(), |entry, check, control| {
        let silent = matches!(entry.kind, Kind::MissingGradient | Kind::WrongGradient);
        if !silent || matches!(check, Outcome::Verdict(Verdict::NeedsHardware(_))) {
            return;
        }
        let (said, clean) = (check.evidence(), control.evidence());
        assert!(clean.contains("the arbiter: passes"), "{}: {clean}", entry.id);
        if entry.kind == Kind::MissingGradient {
            missing += 1;
            assert!(said.contains("the arbiter: x (present), cut: candle_"), "{}: {said}", entry.id);
            assert!(said.contains("has no backward pass") && said.contains("; use "), "{}: {said}", entry.id);
        } else {
            wrong += 1;
            let named = ["x (right)", "kernel (right)", "w (repeatable)"].iter().any(|n| said.contains(n));
            assert!(named, "{}: {said}", entry.id);
        }
    });
    assert!(missing >= 8 && wrong >= 6, "{missing} missing, {wrong} wrong");
}

fn tensor(shape: &[usize], dtype: DType) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f64> = (0..count).map(|i| ((i * 7 % 11) as f64 - 5.0) / 3.0 + 0.1).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
}

#[test]
fn the_verdict_turns_to_absent_when_the_op_is_mended() {
    let gain = tensor(&[6], DType::F32);
    let x = tensor(&[3, 6], DType::F32);
    type Norm = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let judge = |norm: Norm| judge_gradient(&|x| norm(x, &gain), &x).unwrap();
    let fused = judge(|x, gain| candle_nn::ops::rms_norm(x, gain, 1e-5));
    let mended = judge(|x, gain| shikha::ops::candle::rms_norm(x, gain, 1e-5));
    assert!(matches!(fused, Verdict::Present(_)), "{fused:?}");
    assert!(matches!(mended, Verdict::Absent(_)), "{mended:?}");
}

fn child(script: &str, limits: Limits) -> Outcome {
    run_child(Path::new("sh"), &["-c", script], limits)
}

#[test]
fn children_that_crash_hang_or_swell_are_reported() {
    let limits = Limits { time: Duration::from_secs(20), memory: 2048 };
    let verdict = child(r#"echo '{"verdict":"absent","evidence":"fine"}'"#, limits);
    assert_eq!(verdict, Outcome::Verdict(Verdict::Absent("fine".to_owned())));
    let crashed = child("kill -SEGV $$", limits);
    assert!(crashed.shows() && crashed.evidence().contains("signal: 11"), "{crashed:?}");
    let failed = child("echo first >&2; echo last words >&2; exit 3", limits);
    assert!(failed.evidence().contains("exit status: 3") && failed.evidence().contains("last words"), "{failed:?}");
    let silent = child("true", limits);
    assert!(silent.evidence().contains("no verdict"), "{silent:?}");
    let started = Instant::now();
    let hung = child("sleep 100", Limits { time: Duration::from_millis(300), ..limits });
    assert!(hung.evidence().contains("limit") && started.elapsed() < Duration::from_secs(10), "{hung:?}");
    let swollen = child("x=0123456789abcdef; while :; do x=$x$x; done", Limits { memory: 64, ..limits });
    assert!(matches!(&swollen, Outcome::Ended(_)), "{swollen:?}");
    let nowhere = run_child(Path::new("/nowhere/program"), &[], limits);
    assert!(matches!(&nowhere, Outcome::Ended(_)), "{nowhere:?}");
}

#[test]
fn the_command_names_an_entry_it_does_not_know() {
    let program = env!("CARGO_BIN_EXE_shikha");
    let output = std::process::Command::new(program).args(["defects", "--only", "nothing"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains("`nothing`") && text.contains("candle-rms-norm"), "{text}");
}
