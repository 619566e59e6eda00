//! The program as it is called: faults planted in notebooks, and a gradient taken across cells.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

const PROGRAM: &str = env!("CARGO_BIN_EXE_shikha-kernel");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn notebook(cells: &[(&str, &[&str])]) -> String {
    let cells: Vec<Value> = cells
        .iter()
        .enumerate()
        .map(|(index, (source, tags))| {
            json!({"cell_type": "code", "id": format!("c{index}"), "metadata": {"tags": tags}, "source": source,
                "outputs": [], "execution_count": null})
        })
        .collect();
    json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).to_string()
}

/// One at a time: a kernel waits while another builds, and waiting counts as a cell's time.
static ALONE: Mutex<()> = Mutex::new(());

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg("--folder").arg(folder).args(arguments).current_dir(repository());
    command.output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn outputs(path: &Path) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    json["cells"].as_array().unwrap().iter().map(|cell| cell["outputs"].clone()).collect()
}

#[test]
fn every_planted_fault_is_named_with_its_cell_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let faults: [(&str, &[(&str, &[&str])]); 6] = [
        ("00-compile", &[("let x = 1;", &[]), ("let a = 2;\nlet b = 3;\nlet c: u32 = \"three\";", &[])]),
        ("01-panic", &[("let v = vec![1, 2, 3];", &[]), ("let i = v.len();\n// One too far.\nv[i]", &[])]),
        (
            "02-question",
            &[
                ("let text = \"12x\";", &[]),
                ("let good: i32 = \"12\".parse::<i32>()?;\nlet bad: i32 = text.parse::<i32>()?;\ngood + bad", &[]),
            ],
        ),
        ("03-endless", &[("let mut n = 0u64;", &[]), ("n += 1;\nwhile n > 0 {\n    std::hint::spin_loop();\n}", &[])]),
        ("04-stderr", &[("eprintln!(\"warning: the deep end\");", &[])]),
        ("05-exit", &[("std::process::exit(7);", &[])]),
    ];
    for (name, cells) in faults {
        std::fs::write(folder.path().join(format!("{name}.ipynb")), notebook(cells)).unwrap();
    }
    std::fs::write(folder.path().join("06-json.ipynb"), "{\n \"cells\": [,\n").unwrap();
    let untouched = std::fs::read(folder.path().join("01-panic.ipynb")).unwrap();

    let output = run(folder.path(), &["--no-warm", "--timeout", "30"]);
    let told = told(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    for expected in [
        "00-compile.ipynb, cell [2], line 3: does not compile\n    error[E0308]: mismatched types",
        "01-panic.ipynb, cell [2], line 3: panicked\n",
        "index out of bounds: the len is 3 but the index is 3",
        "02-question.ipynb, cell [2], line 2: an error was returned by `?`\n    invalid digit found in string",
        "03-endless.ipynb, cell [2], line ",
        ": had not ended after 30 s",
        "04-stderr.ipynb, cell [1]: wrote to standard error: warning: the deep end",
        "05-exit.ipynb, cell [1]: ended the kernel's process",
        "06-json.ipynb, line 2: is not valid JSON",
        "error: 7 of 7 notebooks failed",
    ] {
        assert!(told.contains(expected), "no {expected:?} in\n{told}");
    }
    assert_eq!(std::fs::read(folder.path().join("01-panic.ipynb")).unwrap(), untouched, "a failed run writes nothing");
}

#[test]
fn what_a_cell_may_do_is_said_by_its_tags() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("00-tags.ipynb");
    let cells: [(&str, &[&str]); 5] = [
        ("let owner = String::from(\"x\");\nlet other = owner;\nprintln!(\"{owner}\");", &["raises-exception"]),
        ("let n: usize = 3;\nassert!(n > 3, \"n is {n}\");", &["raises-exception"]),
        ("eprintln!(\"aside\");\nprintln!(\"said\");", &["allow-stderr"]),
        ("println!(\"{:?}\", std::time::SystemTime::now());", &["varies"]),
        ("(1..=3).map(|i| i * i).collect::<Vec<i32>>()", &[]),
    ];
    std::fs::write(&path, notebook(&cells)).unwrap();
    let output = run(folder.path(), &["--no-warm"]);
    assert!(output.status.success(), "{}", told(&output));
    let first = std::fs::read(&path).unwrap();
    let outputs = outputs(&path);
    assert!(outputs[0][0]["evalue"].as_str().unwrap().contains("E0382"), "{}", outputs[0]);
    let panic =
        json!([{"output_type": "stream", "name": "stderr", "text": ["panicked at cell [2], line 2:\n", "n is 3\n"]}]);
    assert_eq!(outputs[1], panic);
    let both = json!([
        {"output_type": "stream", "name": "stdout", "text": ["said\n"]},
        {"output_type": "stream", "name": "stderr", "text": ["aside\n"]},
    ]);
    assert_eq!(outputs[2], both);
    assert_eq!(outputs[4][0]["data"], json!({"text/plain": ["[1, 4, 9]"]}));

    let output = run(folder.path(), &["--no-warm"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("unchanged"), "{}", told(&output));
    assert_eq!(std::fs::read(&path).unwrap(), first, "a second run changes no byte");

    // An output that is not what comes out: named, and left as it is.
    let drifted = String::from_utf8(first).unwrap().replace("[1, 4, 9]", "[1, 4, 8]");
    std::fs::write(&path, &drifted).unwrap();
    let output = run(folder.path(), &["--no-warm", "--check"]);
    let told = told(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    let expected = "00-tags.ipynb, cell [5]: output 1 (text/plain) drifted at its line 1\n    stored: [1, 4, 8]\n    \
        now:    [1, 4, 9]";
    assert!(told.contains(expected), "{told}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), drifted);
}

/// Cells that differentiate what other cells made. Linked into each cell on its own, Candle would give the second
/// cell's tensor the number of the first cell's variable, and `backward` would lose the gradient without an error.
const ACROSS_CELLS: [&str; 4] = [
    "use shikha_notebook::candle_core::{DType, Device, Tensor, Var};\nlet w: Var = Var::new(&[1f32, 2., 3.], &Device::Cpu)?;",
    "let x: Tensor = Tensor::new(&[4f32, 5., 6.], &Device::Cpu)?;\nlet loss: Tensor = x.mul(w.as_tensor())?.sum_all()?;",
    "let gradients = loss.backward()?;\nlet gradient = gradients.get(&w).expect(\"the gradient of w\").to_vec1::<f32>()?;\n\
        println!(\"{gradient:?}\");",
    "assert_eq!(gradient, [4f32, 5., 6.]);\nassert_ne!(w.id(), x.id());",
];

fn across_cells(arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("00-gradient.ipynb");
    let dependency = format!(":dep shikha-notebook = {{ path = {:?} }}", repository().join("notebooks/prelude"));
    let cells: Vec<(&str, &[&str])> =
        [dependency.as_str()].into_iter().chain(ACROSS_CELLS).map(|source| (source, &[][..])).collect();
    std::fs::write(&path, notebook(&cells)).unwrap();
    let output = run(folder.path(), arguments);
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stdout), told(&output));
    let expected = json!([{"output_type": "stream", "name": "stdout", "text": ["[4.0, 5.0, 6.0]\n"]}]);
    assert_eq!(outputs(&path)[3], expected);
}

#[test]
fn a_gradient_crosses_cells() {
    across_cells(&[]);
}

#[test]
#[ignore = "builds every dependency afresh, as the stock kernel does for each notebook: ten minutes and more"]
fn a_gradient_crosses_cells_with_the_stock_kernel() {
    across_cells(&["--stock", "--timeout", "3600"]);
}
