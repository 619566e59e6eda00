//! Tests of `pipeline::keep`: what is kept of a run, and that nothing of it can change unnoticed.

use crate::pipeline::{recipe, run};
use half::bf16;
use shikha::artifact::hash_file;
use shikha::pipeline::{Exported, check_kept, keep};
use std::path::{Path, PathBuf};

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_kept_run_is_its_results_and_bf16_weights_and_notices_a_flipped_bit_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (run_dir, out) = (dir.path().join("run"), dir.path().join("kept"));
    run(recipe(17), &run_dir);
    let said = keep(&run_dir, &out).unwrap();
    let count = check_kept(&out).unwrap();
    assert!(said.starts_with(&format!("{count} files")), "{said}");
    assert_eq!(files(&out).len(), count + 1, "all but the list itself is listed");

    let trained = Exported::load(&run_dir).unwrap().parameters.flat;
    let kept = Exported::load(&out.join("model")).unwrap();
    let rounded: Vec<f32> = trained.iter().map(|x| bf16::from_f32(*x).to_f32()).collect();
    assert_eq!(kept.parameters.flat, rounded);
    assert!(kept.card.training.is_some(), "the card travels along");

    let list = out.join("kept.json");
    let before = hash_file(&list).unwrap();
    keep(&run_dir, &out).unwrap();
    assert_eq!(hash_file(&list).unwrap(), before, "the same run is kept to the same bytes");

    for path in files(&out).into_iter().filter(|path| *path != list) {
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        std::fs::write(&path, flipped).unwrap();
        let error = check_kept(&out).unwrap_err().to_string();
        assert!(error.contains(&path.file_name().unwrap().to_string_lossy().into_owned()), "{error}");
        std::fs::write(&path, whole).unwrap();
    }
    assert_eq!(check_kept(&out).unwrap(), count);
    let refused = keep(&run_dir, &run_dir).unwrap_err().to_string();
    assert!(refused.contains("is the directory of a run"), "{refused}");
}

#[test]
fn an_unfinished_run_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let error = keep(dir.path(), &dir.path().join("kept")).unwrap_err().to_string();
    assert!(error.contains("recipe.toml"), "{error}");
    assert!(!dir.path().join("kept").exists());
}
