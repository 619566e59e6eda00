//! Every entry in a process of its own: the defect shows, and the control does not.

use serde_json::Value;
use std::process::{Command, Output};

/// The entries whose evidence is the end of the process, with the words that must be among its last.
const CRASHES: [(&str, &str); 2] =
    [("burn-cross-entropy-dtype", "dtype mismatch"), ("burn-deep-graph-overflow", "overflowed its stack")];

/// What older versions have and this one has not: see defects/matrix.
const CURED: [&str; 2] = ["burn-alias-field", "burn-col-layout-leaf"];

/// Runs the built program; whatever happens in it stays there.
fn run(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_shikha-burn-defects");
    Command::new(program).args(arguments).env("RUST_BACKTRACE", "0").output().expect("the program starts")
}

/// What a check came to, in one word, and its evidence.
fn outcome(output: &Output) -> (String, String) {
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = words.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        let last = last[last.len().saturating_sub(2)..].join(" / ");
        return ("ended".to_owned(), format!("the process ended with {}: {last}", output.status));
    }
    let verdict: Value = serde_json::from_slice(&output.stdout).expect("a verdict as JSON");
    let text = |key: &str| verdict[key].as_str().expect("a text").to_owned();
    (text("verdict"), text("evidence"))
}

fn list() -> Vec<Value> {
    let output = run(&["--list"]);
    assert!(output.status.success());
    let mut list: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    assert_eq!(list["version"], "0.22.1");
    serde_json::from_value(list["entries"].take()).expect("an array")
}

/// What the arbiter says, and the questions that found something.
fn answer(id: &str, control: bool) -> (String, Vec<String>) {
    let arguments = ["--child", id, "--arbiter", "--control"];
    let output = run(if control { &arguments } else { &arguments[..3] });
    if !output.status.success() {
        return ("ended".to_owned(), Vec::new());
    }
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer as JSON");
    let questions = answer["of"]["questions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (text(&answer["answer"]), questions.iter().map(text).collect())
}

#[test]
fn the_arbiter_catches_what_a_gradient_shows_and_passes_every_workaround() {
    for entry in list() {
        let id = entry["id"].as_str().expect("an id");
        let (said, questions) = answer(id, false);
        let (control, beside) = answer(id, true);
        println!("{id}: {said} {questions:?}; control: {control} {beside:?}");
        assert!(matches!(control.as_str(), "asked" | "not-here") && beside.is_empty(), "{id}: {control} {beside:?}");
        match entry["kind"].as_str() {
            _ if CURED.contains(&id) => assert!(questions.is_empty(), "{id}: {questions:?}"),
            Some("missing-gradient") => assert_eq!(questions.first().map(String::as_str), Some("present"), "{id}"),
            Some("wrong-gradient") if said == "asked" => assert!(!questions.is_empty(), "{id}"),
            _ => {}
        }
    }
}

#[test]
fn the_curves_are_run_where_a_model_trains_and_say_why_where_none_does() {
    for entry in list() {
        let id = entry["id"].as_str().expect("an id");
        let output = run(&["--child", id, "--aspect", "curves"]);
        assert!(output.status.success(), "{id}: {}", String::from_utf8_lossy(&output.stderr));
        let curves: Value = serde_json::from_slice(&output.stdout).expect("curves as JSON");
        println!("{id}: {} {} {}", curves["curve"], curves["shows"], curves["why"]);
        if curves["curve"] == "none" {
            assert!(curves["why"].as_str().is_some_and(|why| !why.is_empty()), "{id}");
            continue;
        }
        for healthy in curves["healthy"].as_array().expect("a seed a row") {
            let losses: Vec<f64> = healthy.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
            assert!(losses[losses.len() - 1] < 0.9 * losses[0], "{id}: {losses:?}");
        }
    }
}

#[test]
fn every_defect_shows_and_every_control_is_clean() {
    for entry in list() {
        let id = entry["id"].as_str().expect("an id");
        let (check, evidence) = outcome(&run(&["--child", id]));
        let (control, beside) = outcome(&run(&["--child", id, "--control"]));
        println!("{id}: {check}: {evidence}\n    control: {control}: {beside}");
        if check == "needs-hardware" {
            assert_eq!(control, "needs-hardware", "{id}: {beside}");
            continue;
        }
        let crash = CRASHES.iter().find(|(crashing, _)| *crashing == id).map(|(_, words)| *words);
        match crash {
            Some(words) => assert!(check == "ended" && evidence.contains(words), "{id} ends otherwise: {evidence}"),
            None if CURED.contains(&id) => assert_eq!(check, "absent", "{id}: {evidence}"),
            None => assert_eq!(check, "present", "{id} does not show: {evidence}"),
        }
        assert_eq!(control, "absent", "{id}: the control is not clean: {beside}");
        assert!(evidence.chars().any(|c| c.is_ascii_digit()), "{id}: evidence without a number: {evidence}");
    }
}

#[test]
fn the_list_has_what_the_main_command_needs() {
    let entries = list();
    assert!(entries.len() >= 12);
    let mut ids: Vec<&str> = entries.iter().filter_map(|e| e["id"].as_str()).collect();
    for entry in &entries {
        let keys: Vec<&String> = entry.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["id", "kind", "reading", "report", "title", "workaround"]);
        assert!(entry["id"].as_str().is_some_and(|id| id.starts_with("burn-")));
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), entries.len(), "an id is there twice");
}

#[test]
fn an_unknown_entry_is_refused_with_the_known_ones() {
    let output = run(&["--child", "burn-nothing"]);
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("burn-nothing") && words.contains("burn-param-map"), "{words}");
}

#[test]
fn no_task_or_two_are_refused() {
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(run(&["--list", "--child", "burn-param-map"]).status.code(), Some(2));
    assert_eq!(run(&["--control"]).status.code(), Some(2));
}

/// Compiles every program with the crates that this test was built with, so it takes minutes: on request.
#[test]
#[ignore = "compiles a program for every entry"]
fn every_reproducer_compiles_alone_and_shows_its_defect() {
    let directory = std::env::temp_dir().join(format!("shikha-burn-reproducers-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a folder for programs");
    let libraries = std::env::current_exe().expect("this program").parent().expect("its folder").to_owned();
    let files = std::fs::read_dir(&libraries).expect("the folder of crates").filter_map(|f| Some(f.ok()?.path()));
    let of = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libburn-") && name.ends_with(".rlib")
    };
    let modified = |path: &std::path::PathBuf| path.metadata().and_then(|m| m.modified()).ok();
    let burn = files.filter(of).max_by_key(modified).expect("the crate burn");
    for entry in list() {
        let id = entry["id"].as_str().expect("an id");
        let printed = run(&["--reproducer", id]);
        if !printed.status.success() {
            assert!(String::from_utf8_lossy(&printed.stderr).contains("on this machine"), "{id}");
            continue;
        }
        let (source, binary) = (directory.join("main.rs"), directory.join("main"));
        std::fs::write(&source, &printed.stdout).expect("the program is written");
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let mut compiler = Command::new(rustc);
        compiler.args(["--edition", "2024", "-O", "-o"]).arg(&binary).arg(&source);
        compiler.arg("-L").arg(format!("dependency={}", libraries.display()));
        let compiled = compiler.args(["--extern", &format!("burn={}", burn.display())]).output().expect("rustc starts");
        assert!(compiled.status.success(), "{id}: {}", String::from_utf8_lossy(&compiled.stderr));
        let ran = Command::new(&binary).output().expect("the program starts");
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        println!("{id}: {}", said.trim());
        let crashed = CRASHES.iter().any(|(crashing, _)| *crashing == id) && !ran.status.success();
        let expected = if CURED.contains(&id) { "absent: " } else { "present: " };
        assert!(crashed || said.starts_with(expected), "{id}: {said}");
    }
    let _ = std::fs::remove_dir_all(&directory);
}
