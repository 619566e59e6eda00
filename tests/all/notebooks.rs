//! The notebooks as files: valid, of one form, complete, and clean. Whether they run is the runner's to say.

use serde_json::Value;
use shikha::report::registry::{Kind, REGISTRY};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const FIRST: &str = ":dep shikha-notebook = { path = \"prelude\" }";
const LARGEST: u64 = 1_000_000;

fn notebooks() -> Vec<(String, PathBuf)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks");
    let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| (path.file_stem().unwrap().to_string_lossy().into_owned(), path);
    let mut found: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "ipynb")).map(of).collect();
    found.sort();
    found
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A text that nbformat keeps as one string or as lines.
fn text(value: &Value) -> String {
    match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn sources(json: &Value, kind: &str) -> Vec<String> {
    let cells = json["cells"].as_array().unwrap().iter();
    cells.filter(|cell| cell["cell_type"] == kind).map(|cell| text(&cell["source"])).collect()
}

#[test]
fn there_are_nine_and_the_registry_names_no_other() {
    let names: Vec<String> = notebooks().into_iter().map(|(name, _)| name).collect();
    let numbers: Vec<&str> = names.iter().map(|name| &name[..2]).collect();
    assert_eq!(numbers, ["00", "01", "02", "03", "04", "05", "06", "07", "08"]);
    for entry in REGISTRY {
        assert!(names.iter().any(|name| name == entry.notebook), "{}: {}", entry.id, entry.notebook);
    }
}

#[test]
fn each_walks_through_the_figures_that_the_registry_sends_its_readers_for() {
    for (name, path) in notebooks() {
        let code = sources(&read(&path), "code").concat();
        for entry in REGISTRY.iter().filter(|entry| entry.kind == Kind::Figure && entry.notebook == name) {
            assert!(code.contains(&format!("figure(\"{}\")", entry.id)), "{name} does not show {}", entry.id);
        }
    }
}

#[test]
fn each_has_the_form_that_jupyter_and_its_readers_expect() {
    for (name, path) in notebooks() {
        let json = read(&path);
        assert_eq!((&json["nbformat"], json["nbformat_minor"].as_u64()), (&4.into(), Some(5)), "{name}");
        assert_eq!(json["metadata"]["kernelspec"]["name"], "rust", "{name}");
        let cells = json["cells"].as_array().unwrap();
        let ids: BTreeSet<&str> = cells.iter().filter_map(|cell| cell["id"].as_str()).collect();
        assert_eq!(ids.len(), cells.len(), "{name}: every cell has an id of its own");
        let (code, prose) = (sources(&json, "code"), sources(&json, "markdown"));
        assert_eq!(code[0], FIRST, "{name}");
        assert!(code[1].starts_with("use shikha_notebook::*;\n"), "{name}");
        assert!((8..=24).contains(&code.len()), "{name}: {} code cells", code.len());
        assert!(prose[0].starts_with("# ") && prose[0].contains("**What it examines.**"), "{name}");
        assert!(prose[0].contains("**Time.**"), "{name}");
        for heading in ["## Check", "## Exercises\n"] {
            assert_eq!(prose.iter().filter(|text| text.contains(heading)).count(), 1, "{name}: {heading}");
        }
        assert!(code[code.len() - 1].contains("check"), "{name}: the last code cell compares with what is stored");
        let long = code.iter().find(|cell| cell.lines().count() > 26);
        assert_eq!(long, None, "{name}: cells are short");
    }
}

#[test]
fn none_is_large_or_names_a_machine() {
    for (name, path) in notebooks() {
        assert!(path.metadata().unwrap().len() <= LARGEST, "{name} is larger than GitHub shows");
        let json = read(&path).to_string();
        for mark in ["/home/", "/root", "/tmp/", "/work/", "/Users/", "C:\\\\", "registry+"] {
            assert!(!json.contains(mark), "{name} holds {mark}");
        }
    }
}

#[test]
fn what_was_executed_was_executed_to_the_end_and_without_an_error() {
    for (name, path) in notebooks() {
        let json = read(&path);
        let cells: Vec<&Value> =
            json["cells"].as_array().unwrap().iter().filter(|c| c["cell_type"] == "code").collect();
        if cells.iter().all(|cell| cell["execution_count"].is_null()) {
            continue;
        }
        for (i, cell) in cells.iter().enumerate() {
            assert_eq!(cell["execution_count"].as_u64(), Some(i as u64 + 1), "{name}");
            for output in cell["outputs"].as_array().unwrap() {
                let bad = output["output_type"] == "error" || output["name"] == "stderr";
                assert!(!bad, "{name}, code cell {}: {output}", i + 1);
                // A figure whose cell moves a variable is shown by Debug; a loop without a semicolon shows a unit.
                let plain = text(&output["data"]["text/plain"]);
                let debug = plain == "()" || plain.starts_with("Figure {") || plain.starts_with("Table {");
                assert!(!debug, "{name}, code cell {}: {}", i + 1, &plain[..plain.len().min(60)]);
            }
        }
        let last = text(&cells[cells.len() - 1]["outputs"][0]["text"]);
        assert!(last.starts_with("ok  ") && last.lines().count() >= 4, "{name}: {last}");
    }
}
