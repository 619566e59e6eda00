//! A whole run becomes one file for the report.

use crate::robust_faults::{copy, small};
use shikha::pipeline::{Options, Pipeline, record};
use shikha::recipe::Recipe;
use shikha::report::{Ledger, runs};
use shikha::train::record::Record;
use shikha::train::{SITTINGS, deterministic_hash, read_metrics, sittings};
use std::path::Path;
use std::process::{Command, Output};

fn shikha(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shikha")).args(arguments).env_remove("SHIKHA_MIRROR").output().unwrap()
}

/// Trains a run of six steps; the recipe's file and the run's directory.
fn trained(dir: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (file, root) = (dir.join("small.toml"), dir.join("run"));
    std::fs::write(&file, small(dir).to_toml()).unwrap();
    let output = shikha(&[Path::new("train"), &file, Path::new("--run-dir"), &root]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (file, root)
}

#[test]
fn a_finished_run_is_one_file_that_stands_beside_the_abstract() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run");
    crate::pipeline::run(crate::pipeline::recipe(17), &root);
    let store = dir.path().join("store");
    let price = ["--price", "2.5", "--stated-by", "a cloud, 2026-12-01", "--store"].map(Path::new);
    let output = shikha(&[&[Path::new("record"), &root][..], &price, &[&store]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("up to step 30"), "{text}");
    let path = std::fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    let record = Record::load(&path).unwrap();
    let run = record.run.as_ref().unwrap();
    let rows = read_metrics(&root.join("metrics.jsonl")).unwrap();
    assert_eq!((&run.rows, run.metrics), (&rows, deterministic_hash(&rows)));
    assert_eq!((run.summary.steps, run.sittings.len(), run.sittings[0].step), (30, 1, Some(30)));
    assert_eq!(Recipe::parse(&run.recipe, "the record").unwrap(), crate::pipeline::recipe(17));
    let seconds = run.seconds().unwrap();
    assert!(seconds >= run.summary.seconds, "{seconds} s in all, {} in steps", run.summary.seconds);
    let twin = run.held_out.iter().find(|loss| loss.language == "bn" && loss.model == "twin").unwrap();
    assert!((twin.nats_per_token[0] - (1500f64).ln()).abs() < 0.1, "{twin:?}");
    let csv = runs::table(&Ledger::built_in().unwrap(), std::slice::from_ref(&record)).unwrap().to_csv().unwrap();
    let row = csv.lines().last().unwrap();
    assert!(row.starts_with("\"this program, `pocket`\"") || row.starts_with("this program, `pocket`"), "{row}");
    let dollars = format!("{:.2} (a cloud, 2026-12-01)", 2.5 * seconds / 3600.0);
    for part in ["passed", "not known", &dollars, &format!("bn {:.2}", twin.nats_per_token[0])] {
        assert!(row.contains(part), "no {part} in {row}");
    }
    assert!(!csv.contains("not measured"));
}

#[test]
fn only_a_finished_run_whose_machine_was_noted_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (file, root) = trained(dir.path());
    assert_eq!(record(&root, None).unwrap().run.unwrap().held_out, [], "it was not evaluated");
    // Two steps are taken away, as a kill would have it, and done again in a second sitting.
    std::fs::remove_dir_all(root.join("checkpoints/step-000006")).unwrap();
    let metrics = root.join("metrics.jsonl");
    let text = std::fs::read_to_string(&metrics).unwrap();
    let kept: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
    std::fs::write(&metrics, kept).unwrap();
    let refused = shikha(&[Path::new("record"), &root]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("5 of 6 steps are done") && message.contains("shikha resume"), "{message}");
    assert!(shikha(&[Path::new("train"), &file, Path::new("--run-dir"), &root]).status.success());
    let run = record(&root, None).unwrap().run.unwrap();
    assert_eq!(run.sittings.iter().map(|sitting| sitting.step).collect::<Vec<_>>(), [Some(6), Some(6)]);
    // A fault in the list is named, and training goes on in spite of it.
    let whole = dir.path().join("whole");
    copy(&root, &whole);
    let list = std::fs::read(root.join(SITTINGS)).unwrap();
    for at in 0..list.len() {
        let mut bad = list.clone();
        bad[at] ^= 1;
        std::fs::write(root.join(SITTINGS), &bad).unwrap();
        match sittings(&root) {
            Ok(same) => assert_eq!(same, run.sittings, "bit 0 of byte {at}"),
            Err(error) => assert!(error.to_string().contains(SITTINGS), "{error}"),
        }
    }
    std::fs::write(root.join(SITTINGS), &list[..list.len() / 2]).unwrap();
    std::fs::remove_dir_all(root.join("checkpoints/step-000006")).unwrap();
    assert!(record(&root, None).unwrap_err().to_string().contains(SITTINGS));
    let output = shikha(&[Path::new("train"), &file, Path::new("--run-dir"), &root]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains(SITTINGS));
    assert_eq!(record(&root, None).unwrap().run.unwrap().sittings.len(), 1);
    std::fs::remove_file(whole.join(SITTINGS)).unwrap();
    let message = record(&whole, None).unwrap_err().to_string();
    assert!(message.contains("there is no sittings.json"), "{message}");
}

#[test]
fn a_price_without_its_source_and_a_run_that_is_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = shikha(&["record", "x", "--price", "3"].map(Path::new));
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("--stated-by"));
    let output = shikha(&[Path::new("record"), dir.path()]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("recipe.toml") && message.lines().count() == 1, "{message}");
    // A run that starts over forgets where it sat before.
    let (_, root) = trained(dir.path());
    let options = Options { run_dir: Some(root.clone()), force: true, ..Options::default() };
    Pipeline::open(small(dir.path()), &options).unwrap().train().unwrap();
    assert_eq!(sittings(&root).unwrap().len(), 1);
}
