//! Every entry in a process of its own: the defect shows, and the control does not.

use serde_json::Value;
use std::process::{Command, Output};

/// The entries whose evidence is the end of the process, with the words that must be among its last.
const CRASHES: [(&str, &str); 2] =
    [("burn-cross-entropy-dtype", "dtype mismatch"), ("burn-deep-graph-overflow", "overflowed its stack")];

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
    serde_json::from_slice(&output.stdout).expect("a JSON array")
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
