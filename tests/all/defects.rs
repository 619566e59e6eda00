//! Tests of `defects`: the verdicts, checks that can change their mind, and children that misbehave.

use candle_core::{DType, Device, Result, Tensor};
use serde_json::Value;
use shikha::arbiter::Question;
use shikha::defects::{
    Answer, CANDLE, Curves, FIVE, Kind, Limits, Listed, Matrix, Outcomes, Record, Runner, Verdict, catalogue,
    judge_gradient, readings, reproducer, run_all, run_child,
};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_shikha");

#[test]
fn every_entry_gives_a_verdict_an_answer_and_a_curve_and_every_control_is_clean() {
    let entries = catalogue();
    let ids: BTreeSet<&str> = entries.iter().map(|e| e.id).collect();
    assert!(ids.len() == entries.len() && entries.len() >= 30, "{} entries", entries.len());
    let mut seen = 0;
    let listed: Vec<Listed> = entries.iter().map(Listed::from).collect();
    let records = run_all(Runner::candle(Path::new(PROGRAM), Limits::default()), &listed, |_| seen += 1);
    assert_eq!((seen, records.len()), (entries.len(), entries.len()));
    for (entry, record) in entries.iter().zip(&records) {
        assert_eq!(entry.id, record.id);
        assert!(record.clean(), "{}: {} {:?}", record.id, record.control.evidence(), record.arbiter_control);
        assert!(!record.check.evidence().is_empty(), "{}", record.id);
        // True of the pinned version: a new Candle that cures one makes this fail, and should.
        assert_ne!(record.verdict(), "absent", "{}: {}", record.id, record.check.evidence());
        match &record.curves {
            Curves::None { why } => assert!(!why.contains("ended"), "{}: {why}", record.id),
            Curves::Run { healthy, .. } => {
                // Whatever the defect, the models themselves learn.
                assert!(healthy.iter().all(|curve| curve[curve.len() - 1] < 0.9 * curve[0]), "{}", record.id);
            }
        }
        gradients_are_caught(record);
    }
    the_stored_outcomes_are_these(&records);
    the_matrix_agrees(&records);
}

/// A silent defect of a gradient never gets past the arbiter, and a missing one is named with the op that cut it.
fn gradients_are_caught(record: &Record) {
    let gradient = matches!(record.kind, Kind::MissingGradient | Kind::PartialGradient | Kind::WrongGradient);
    let Answer::Asked(caught) = &record.arbiter else { return };
    if !gradient {
        return;
    }
    let question = caught.questions.first();
    if record.kind == Kind::MissingGradient {
        assert_eq!(question, Some(&Question::Present), "{}", record.id);
        let cut = caught.cut.clone().unwrap_or_default();
        assert!(cut.contains("candle_") && cut.contains("has no backward pass") && cut.contains("; use "), "{cut}");
    } else {
        assert!(matches!(question, Some(Question::Right | Question::Repeatable)), "{}: {question:?}", record.id);
    }
}

/// What `make figures` draws and the claims count is what a fresh run finds.
fn the_stored_outcomes_are_these(records: &[Record]) {
    let stored: Outcomes = serde_json::from_str(include_str!("../../defects/outcomes.json")).unwrap();
    let verdicts = |records: &[Record]| {
        // Whether a curve lies outside the band of healthy ones may hang on the last bits of another CPU.
        let of = |r: &Record| (r.id.clone(), r.verdict(), r.curves.silent(), r.arbiter.caught(), r.reading);
        records.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&stored.records), verdicts(records), "run `make defects-store`");
    assert!(stored.silent() >= 20 && stored.caught() >= 15, "{} {}", stored.silent(), stored.caught());
}

/// The committed matrix says of the pinned version what a fresh run says.
fn the_matrix_agrees(records: &[Record]) {
    let matrix: Matrix = serde_json::from_str(include_str!("../../defects/matrix/candle.json")).unwrap();
    assert_eq!(matrix.names(), ["0.8.4", "0.9.2", "0.10.2", CANDLE]);
    for record in records {
        let stored = matrix.found(&record.id, CANDLE).name();
        assert_eq!(stored, record.verdict(), "{}: run `make defects-matrix`", record.id);
    }
}

#[test]
fn the_reading_names_all_five_and_their_entries() {
    let entries = catalogue();
    for reading in FIVE {
        assert!(entries.iter().any(|e| e.reading == Some(reading)), "{reading:?}");
    }
    let text = readings(&entries);
    assert!(text.contains("1. fused kernels") && text.contains("candle-rms-norm") && text.contains("3. parameters"));
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

fn child(script: &str, limits: Limits) -> std::result::Result<Verdict, String> {
    run_child(Path::new("sh"), &["-c", script], limits)
}

#[test]
fn children_that_crash_hang_or_swell_are_reported() {
    let limits = Limits { time: Duration::from_secs(20), memory: 2048 };
    let verdict = child(r#"echo '{"verdict":"absent","evidence":"fine"}'"#, limits);
    assert_eq!(verdict, Ok(Verdict::Absent("fine".to_owned())));
    let crashed = child("kill -SEGV $$", limits).unwrap_err();
    assert!(crashed.contains("signal: 11"), "{crashed}");
    let failed = child("echo first >&2; echo last words >&2; exit 3", limits).unwrap_err();
    assert!(failed.contains("exit status: 3") && failed.contains("last words"), "{failed}");
    let silent = child("true", limits).unwrap_err();
    assert!(silent.contains("no verdict"), "{silent}");
    let started = Instant::now();
    let hung = child("echo so far >&2; sleep 100", Limits { time: Duration::from_millis(300), ..limits }).unwrap_err();
    assert!(hung.contains("limit") && hung.contains("so far"), "{hung}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(child("x=0123456789abcdef; while :; do x=$x$x; done", Limits { memory: 64, ..limits }).is_err());
    assert!(run_child::<Verdict>(Path::new("/nowhere/program"), &[], limits).is_err());
}

#[test]
fn checks_that_hang_swell_and_die_are_evidence_and_the_others_finish() {
    let arguments = ["defects", "--misbehave", "--json", "--seconds", "10", "--memory", "1024"];
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let records: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let evidence = |id: &str| records.iter().find(|r| r.id == id).unwrap().check.evidence().to_owned();
    assert_eq!(records.len(), 5);
    assert!(evidence("misbehave-hang").contains("limit of 10.0 s"), "{}", evidence("misbehave-hang"));
    assert!(evidence("misbehave-allocate").contains("memory allocation of"), "{}", evidence("misbehave-allocate"));
    assert!(evidence("misbehave-segfault").contains("signal: 11"), "{}", evidence("misbehave-segfault"));
    assert!(evidence("misbehave-panic").contains("on purpose"), "{}", evidence("misbehave-panic"));
    assert!(evidence("candle-rms-norm").contains("no gradient"), "{}", evidence("candle-rms-norm"));
    assert!(records.iter().all(Record::clean) && records.iter().all(|r| r.verdict() == "present"));
}

/// Processes that carry `mark` in their environment.
#[cfg(target_os = "linux")]
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path().join("environ")));
    processes.filter_map(|path| std::fs::read(path).ok()).filter(|e| contains(e, mark.as_bytes())).count()
}

#[cfg(target_os = "linux")]
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_runner_has_reported_what_was_done_and_leaves_no_child_behind() {
    let mark = format!("SHIKHA_TEST_MARK={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let mut runner = Command::new(PROGRAM)
        .args(["defects", "--misbehave", "--json", "--seconds", "600"])
        .env(name, value)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The first entry finishes while another hangs.
    let mut first = String::new();
    BufReader::new(runner.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert!(first["id"].as_str().is_some_and(|id| id != "misbehave-hang"), "{first}");
    let started = Instant::now();
    while marked(&mark) < 2 && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    runner.kill().unwrap();
    runner.wait().unwrap();
    let started = Instant::now();
    while marked(&mark) > 0 && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(marked(&mark), 0, "a child outlives the runner");
}

#[test]
fn the_command_names_an_entry_it_does_not_know_and_prints_a_reproducer() {
    let run = |arguments: &[&str]| {
        let output = Command::new(PROGRAM).arg("defects").args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (fine, _, error) = run(&["--only", "nothing"]);
    assert!(!fine && error.contains("`nothing`") && error.contains("candle-rms-norm"), "{error}");
    let (fine, program, _) = run(&["--reproducer", "candle-scatter"]);
    assert!(fine && program.contains("x.scatter(") && program.contains("candle-core@=0.11.1"), "{program}");
    let (fine, _, error) = run(&["--reproducer", "candle-flash-attention-cuda"]);
    assert!(!fine && error.contains("candle-flash-attention-cuda"), "{error}");
}

/// Compiles every reproducer beside the library's own build of Candle and runs it: `make defects-reproducers`.
#[test]
#[ignore = "compiles some thirty programs"]
fn every_reproducer_compiles_alone_and_shows_its_defect() {
    let directory = tempfile::tempdir().unwrap();
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let library = |name: &str| {
        let files = std::fs::read_dir(&libraries).unwrap().filter_map(|f| Some(f.ok()?.path()));
        let of = |path: &std::path::PathBuf| path.file_name().is_some_and(|f| f.to_string_lossy().starts_with(name));
        let newest = files.filter(of).filter(|path| path.extension().is_some_and(|e| e == "rlib"));
        newest.max_by_key(|path| path.metadata().and_then(|m| m.modified()).unwrap()).unwrap()
    };
    let (core, nn) = (library("libcandle_core-"), library("libcandle_nn-"));
    for entry in catalogue() {
        let Some(program) = reproducer(&entry) else { continue };
        let (source, binary) = (directory.path().join("main.rs"), directory.path().join("main"));
        std::fs::write(&source, &program).unwrap();
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let compiled = Command::new(rustc)
            .args(["--edition", "2024", "-O", "-o"])
            .arg(&binary)
            .arg(&source)
            .arg("-L")
            .arg(format!("dependency={}", libraries.display()))
            .args(["--extern", &format!("candle_core={}", core.display())])
            .args(["--extern", &format!("candle_nn={}", nn.display())])
            .output()
            .unwrap();
        assert!(compiled.status.success(), "{}: {}", entry.id, String::from_utf8_lossy(&compiled.stderr));
        let ran = Command::new(&binary).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let crashed = entry.kind == Kind::Crash && !ran.status.success();
        assert!(crashed || said.starts_with("present: "), "{}: {said}", entry.id);
    }
}
