//! A finished run, kept small enough to commit: what it measured, and its weights as bf16 numbers without the
//! optimizer's moments. Every file has its hash; the random twin is rebuilt from the seed.

use super::choice::CHOICE;
use super::evaluate::EVAL;
use super::report::MEASUREMENTS;
use super::results::Results;
use super::text::{BALANCE, FERTILITY};
use super::train::{METRICS, last_checkpoint};
use super::{Exported, PipelineError, read_json, write_json};
use crate::artifact::{Hash, hash_file, write_atomic};
use crate::error::FileError;
use crate::model::WeightType;
use crate::recipe::Recipe;
use crate::report::Measurements;
use crate::train::{deterministic_hash, read_metrics};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the committed reference run lies.
pub(super) const REFERENCE: &str = "checkpoints/reference";

const KEPT: &str = "kept.json";
const MODEL: &str = "model";
const FILES: [&str; 7] = ["recipe.toml", METRICS, "arbiter.json", EVAL, FERTILITY, BALANCE, MEASUREMENTS];

/// What a kept run was, and the hash of each of its files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The f32 weights of the last step, which the kept ones are rounded from.
    weights: Hash,
    /// The metrics without what depends on the machine.
    metrics: Hash,
    /// By path in the directory.
    files: BTreeMap<String, Hash>,
}

/// Keeps the finished run `run` in `out`: copies what was measured and exports the model to `out/model`.
///
/// # Errors
/// When the run is not finished, `out` is another run's directory or a file cannot be written.
pub fn keep(run: &Path, out: &Path) -> Result<String, PipelineError> {
    if out.join("recipe.toml").exists() && !out.join(KEPT).exists() {
        return Err(PipelineError::IsRun { directory: out.to_path_buf() });
    }
    let recipe = Recipe::from_file(&run.join("recipe.toml"))?;
    Exported::load(run)?.save(&out.join(MODEL), WeightType::Bf16)?;
    let choice = (!recipe.eval.tasks.is_empty()).then_some(CHOICE);
    for name in FILES.into_iter().chain(choice) {
        let from = run.join(name);
        let bytes = std::fs::read(&from).map_err(FileError::at("read", &from))?;
        write_atomic(&out.join(name), &bytes)?;
    }
    let mut files = BTreeMap::new();
    for path in listed(out)?.into_iter().filter(|path| path != Path::new(KEPT)) {
        files.insert(path.to_string_lossy().replace('\\', "/"), hash_file(&out.join(&path))?);
    }
    let kept = Kept {
        weights: hash_file(&run.join(last_checkpoint(&recipe, "model.safetensors")))?,
        metrics: deterministic_hash(&read_metrics(&run.join(METRICS))?),
        files,
    };
    write_json(&out.join(KEPT), &kept)?;
    let bytes: u64 = kept.files.keys().filter_map(|name| out.join(name).metadata().ok()).map(|m| m.len()).sum();
    Ok(format!("{} files, {:.1} MB in {}\n", kept.files.len(), bytes as f64 / 1e6, out.display()))
}

/// Checks every file of a kept run against its hash; how many there are.
///
/// # Errors
/// [`PipelineError::Changed`] naming the first that is not what was kept.
pub fn check_kept(directory: &Path) -> Result<usize, PipelineError> {
    let kept: Kept = read_json(&directory.join(KEPT))?;
    for (name, expected) in &kept.files {
        let path = directory.join(name);
        if hash_file(&path)? != *expected {
            return Err(PipelineError::Changed { path });
        }
    }
    Ok(kept.files.len())
}

/// The results of a kept run, after every file was found to be what was kept.
pub(super) fn results(directory: &Path) -> Result<(Results, Measurements), PipelineError> {
    check_kept(directory)?;
    let measurements: Measurements = read_json(&directory.join(MEASUREMENTS))?;
    let parameters = measurements.values.get("parameters").map_or(0.0, |m| m.value);
    Ok((Results::read(directory, parameters as u64)?, measurements))
}

/// One line on whether a finished run of the reference run's recipe came out as it did; nothing for another recipe.
pub(super) fn compare(run: &Path, recipe: &Recipe, reference: &Path) -> Result<String, PipelineError> {
    if !reference.join(KEPT).exists() || Recipe::from_file(&reference.join("recipe.toml"))? != *recipe {
        return Ok(String::new());
    }
    let kept: Kept = read_json(&reference.join(KEPT))?;
    let weights = hash_file(&run.join(last_checkpoint(recipe, "model.safetensors")))?;
    let metrics = deterministic_hash(&read_metrics(&run.join(METRICS))?);
    let line = |what: &str, found: Hash, kept: Hash| {
        let same =
            if found == kept { "the same bits" } else { "other bits, as a machine with other vector units gives" };
        format!("{what}: {same} (sha256 {}, committed {})", found.short(), kept.short())
    };
    let [weights, metrics] = [line("weights", weights, kept.weights), line("metrics", metrics, kept.metrics)];
    Ok(format!("Beside the reference run: {weights}; {metrics}.\n"))
}

/// Every file below `directory`, in order, relative to it.
fn listed(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let path = directory.join(&relative);
        let entries = std::fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        for entry in entries.map_err(FileError::at("list", &path))? {
            let found = relative.join(entry.file_name());
            if entry.path().is_dir() { open.push(found) } else { files.push(found) }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_run_says_whether_its_bits_are_those_of_the_kept_one() {
        let dir = tempfile::tempdir().unwrap();
        let recipe = Recipe::load("pocket").unwrap();
        let weights = dir.path().join(last_checkpoint(&recipe, "model.safetensors"));
        write_atomic(&weights, b"weights").unwrap();
        write_atomic(&dir.path().join(METRICS), b"").unwrap();
        write_atomic(&dir.path().join("recipe.toml"), recipe.to_toml().as_bytes()).unwrap();
        assert_eq!(compare(dir.path(), &recipe, dir.path()).unwrap(), "", "nothing is kept");
        let kept =
            Kept { weights: hash_file(&weights).unwrap(), metrics: deterministic_hash(&[]), files: BTreeMap::new() };
        write_json(&dir.path().join(KEPT), &kept).unwrap();
        let same = compare(dir.path(), &recipe, dir.path()).unwrap();
        assert_eq!(same.matches("the same bits").count(), 2, "{same}");
        write_atomic(&weights, b"other").unwrap();
        let other = compare(dir.path(), &recipe, dir.path()).unwrap();
        assert!(other.contains("weights: other bits") && other.contains("metrics: the same bits"), "{other}");
        let mut changed = recipe.clone();
        changed.seed += 1;
        assert_eq!(compare(dir.path(), &changed, dir.path()).unwrap(), "", "another recipe is no repetition");
    }
}
