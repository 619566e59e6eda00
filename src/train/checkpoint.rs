//! Checkpoints: a directory each, complete or absent, that says what it was made from.
//!
//! `checkpoints/step-000040/` holds `model.safetensors`, `optimizer.safetensors`, copies of the metrics and of
//! the arbiter's verdict so far, and `state.json`, which names the hashes of the others and of everything the
//! run is made from. It is written beside its
//! place and renamed into it, so a kill leaves the old checkpoints and at most some rubbish.

use super::{TrainError, metrics};
use crate::artifact::boundary::guard;
use crate::artifact::{Hash, hash_bytes, hash_file, read, sync_directory, write_atomic};
use crate::error::FileError;
use crate::model::{Config, Parameters, load_weights, save_weights};
use safetensors::tensor::{SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Version of the layout.
pub(super) const FORMAT: u32 = 1;
const WEIGHTS: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const STATE: &str = "state.json";
const PARTIAL: &str = ".partial-";
/// What lies beside the checkpoints and is copied into each, so that damage to it costs no step.
pub(super) const COMPANIONS: [&str; 2] = [METRICS, ARBITER];
pub(super) const METRICS: &str = "metrics.jsonl";
pub(super) const ARBITER: &str = "arbiter.json";

/// Hashes of what a run is made from, by name: its recipe, tokenizer and shards.
pub type Identity = BTreeMap<String, Hash>;

/// What `state.json` holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Version of this layout.
    pub format: u32,
    /// Steps done.
    pub step: u64,
    /// Training tokens seen.
    pub tokens: u64,
    /// Steps that moved the parameters: all but the skipped ones. AdamW counts these.
    pub updates: u64,
    /// Steps skipped in a row up to here.
    pub skipped_in_a_row: u32,
    /// Mean validation loss over languages after the step, nats per token.
    pub validation: Option<f64>,
    /// Hash of the metrics up to the step, machine aside.
    pub metrics: Hash,
    /// What the run is made from.
    pub made_from: Identity,
    /// Hashes of the files beside it.
    pub files: BTreeMap<String, Hash>,
}

/// The content of `state.json`: the state with a hash over it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    state: State,
    sha256: Hash,
}

impl State {
    fn seal(&self) -> Hash {
        hash_bytes(&serde_json::to_vec(self).unwrap_or_else(|e| unreachable!("a state is plain data: {e}")))
    }
}

/// A state of a run that training can go on from.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Step, tokens, identity.
    pub state: State,
    /// The weights.
    pub parameters: Parameters<f32>,
    /// AdamW's first moment.
    pub first: Parameters<f32>,
    /// AdamW's second moment.
    pub second: Parameters<f32>,
}

/// A checkpoint that was found and could not be used.
pub type Rejected = String;

/// Where the checkpoint of `step` lies in a run directory.
pub fn checkpoint_dir(run: &Path, step: u64) -> PathBuf {
    run.join("checkpoints").join(format!("step-{step:06}"))
}

impl Checkpoint {
    /// Writes the checkpoint into the run directory.
    ///
    /// # Errors
    /// When a file cannot be written; earlier checkpoints stay as they are.
    pub fn save(&self, run: &Path) -> Result<(), TrainError> {
        let target = checkpoint_dir(run, self.state.step);
        let parent = run.join("checkpoints");
        let partial = parent.join(format!("{PARTIAL}{:06}", self.state.step));
        remove(&partial)?;
        guard(|| fs::create_dir_all(&partial)).map_err(FileError::at("create the directory", &partial))?;
        save_weights(&partial.join(WEIGHTS), &self.parameters, &[])?;
        save_moments(&partial.join(OPTIMIZER), &self.first, &self.second)?;
        let mut state = self.state.clone();
        for name in COMPANIONS.into_iter().filter(|name| run.join(name).exists()) {
            let source = run.join(name);
            let bytes = read(&source)?;
            write_atomic(&partial.join(name), &bytes)?;
            state.files.insert(name.to_owned(), hash_bytes(&bytes));
        }
        for name in [WEIGHTS, OPTIMIZER] {
            state.files.insert(name.to_owned(), hash_file(&partial.join(name))?);
        }
        let sealed = Sealed { sha256: state.seal(), state };
        let text = serde_json::to_vec_pretty(&sealed).unwrap_or_else(|e| unreachable!("a state is plain data: {e}"));
        write_atomic(&partial.join(STATE), &text)?;
        remove(&target)?;
        guard(|| fs::rename(&partial, &target)).map_err(FileError::at("move into place", &target))?;
        sync_directory(&parent)?;
        Ok(sync_directory(run)?)
    }

    /// Loads and checks the checkpoint of `step`.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`] when a file is missing, cut, altered or of another version.
    pub fn load(run: &Path, step: u64, config: &Config) -> Result<Self, TrainError> {
        let path = checkpoint_dir(run, step);
        let state = read_state(&path, step)?;
        for (name, expected) in &state.files {
            let found = hash_file(&path.join(name))?;
            if found != *expected {
                let problem = format!(
                    "{name} was altered or cut: its sha256 is {}, expected {}",
                    found.short(),
                    expected.short()
                );
                return Err(TrainError::Checkpoint { path, problem });
            }
        }
        let parameters = load_weights(&path.join(WEIGHTS), config)?;
        let [first, second] = load_moments(&path, &parameters)?;
        Ok(Checkpoint { state, parameters, first, second })
    }
}

fn remove(directory: &Path) -> Result<(), FileError> {
    match guard(|| fs::remove_dir_all(directory)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(FileError::at("remove", directory)(e)),
        _ => Ok(()),
    }
}

fn read_state(path: &Path, step: u64) -> Result<State, TrainError> {
    let refuse = |problem: String| TrainError::Checkpoint { path: path.to_path_buf(), problem };
    let file = path.join(STATE);
    let text = read(&file)?;
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|e| refuse(format!("{STATE}: {e}")))?;
    match value["state"]["format"].as_u64() {
        Some(format) if format != u64::from(FORMAT) => {
            return Err(TrainError::OtherFormat { path: path.to_path_buf(), found: format, expected: FORMAT });
        }
        _ => {}
    }
    let sealed: Sealed = serde_json::from_value(value).map_err(|e| refuse(format!("{STATE}: {e}")))?;
    if sealed.state.seal() != sealed.sha256 || sealed.state.step != step {
        return Err(refuse(format!("{STATE} was altered: its content does not fit its sha256 and place")));
    }
    for name in [WEIGHTS, OPTIMIZER] {
        if !sealed.state.files.contains_key(name) {
            return Err(refuse(format!("{STATE} does not name {name}")));
        }
    }
    Ok(sealed.state)
}

fn save_moments(path: &Path, first: &Parameters<f32>, second: &Parameters<f32>) -> Result<(), TrainError> {
    let refuse =
        |e: safetensors::SafeTensorError| TrainError::Checkpoint { path: path.to_path_buf(), problem: e.to_string() };
    let view = |moment: &'_ Parameters<f32>| {
        TensorView::new(safetensors::Dtype::F32, vec![moment.flat.len()], bytemuck::cast_slice(&moment.flat))
            .map(|v| v.data().to_vec())
    };
    let (first, second) = (view(first).map_err(refuse)?, view(second).map_err(refuse)?);
    let shape = vec![first.len() / 4];
    let tensor = |data| TensorView::new(safetensors::Dtype::F32, shape.clone(), data).map_err(refuse);
    let views = vec![("first_moment", tensor(&first)?), ("second_moment", tensor(&second)?)];
    let bytes = safetensors::serialize(views, None).map_err(refuse)?;
    Ok(write_atomic(path, &bytes)?)
}

fn load_moments(directory: &Path, like: &Parameters<f32>) -> Result<[Parameters<f32>; 2], TrainError> {
    let path = directory.join(OPTIMIZER);
    let refuse = |problem: String| TrainError::Checkpoint {
        path: directory.to_path_buf(),
        problem: format!("{OPTIMIZER}: {problem}"),
    };
    let bytes = read(&path)?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| refuse(e.to_string()))?;
    let mut moments = [like.zeros_like(), like.zeros_like()];
    for (moment, name) in moments.iter_mut().zip(["first_moment", "second_moment"]) {
        let view = file.tensor(name).map_err(|e| refuse(e.to_string()))?;
        if view.shape() != [like.flat.len()] || view.dtype() != safetensors::Dtype::F32 {
            return Err(refuse(format!("{name} does not fit a model of {} parameters", like.flat.len())));
        }
        for (x, bytes) in moment.flat.iter_mut().zip(view.data().chunks_exact(4)) {
            *x = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    }
    Ok(moments)
}

/// The newest checkpoint of a run directory that is whole and whose metrics are too, with those that
/// were passed over and why; `None` when there is none. Rubbish of a killed save is cleared away.
///
/// # Errors
/// [`TrainError::OtherRun`] when the newest whole one was made from something else,
/// [`TrainError::OtherFormat`] when it is of another version.
pub fn latest(
    run: &Path,
    config: &Config,
    identity: &Identity,
) -> Result<(Option<Checkpoint>, Vec<Rejected>), TrainError> {
    let mut rejected = Vec::new();
    for step in steps(run)?.into_iter().rev() {
        match usable(run, step, config, identity) {
            Ok(checkpoint) => return Ok((Some(checkpoint), rejected)),
            Err(error @ (TrainError::OtherRun { .. } | TrainError::OtherFormat { .. })) => return Err(error),
            Err(error) => rejected.push(error.to_string()),
        }
    }
    Ok((None, rejected))
}

fn usable(run: &Path, step: u64, config: &Config, identity: &Identity) -> Result<Checkpoint, TrainError> {
    let path = checkpoint_dir(run, step);
    let state = read_state(&path, step)?;
    if state.made_from != *identity {
        let changed = changed(&state.made_from, identity);
        return Err(TrainError::OtherRun { directory: run.to_path_buf(), changed });
    }
    if intact_metrics(run, &state).is_none() {
        let problem = "the metrics up to its step are missing or altered".to_owned();
        return Err(TrainError::Checkpoint { path, problem });
    }
    Checkpoint::load(run, step, config)
}

/// A file with the metrics up to the step of `state`: the run's, or else the copy in the checkpoint.
fn intact_metrics(run: &Path, state: &State) -> Option<PathBuf> {
    let places = [run.join(METRICS), checkpoint_dir(run, state.step).join(METRICS)];
    places.into_iter().find(|path| metrics::hash_until(path, state.step).is_ok_and(|found| found == state.metrics))
}

/// Puts back, from the copies in a loaded checkpoint, what lies beside the checkpoints and was altered
/// or lost since, and names it. Rows after the step are not asked about: they are made again.
pub(super) fn restore_companions(run: &Path, state: &State) -> Result<Vec<&'static str>, TrainError> {
    let kept = checkpoint_dir(run, state.step);
    let mut restored = Vec::new();
    for name in COMPANIONS {
        let Some(hash) = state.files.get(name) else { continue };
        let is_intact = match name {
            METRICS => intact_metrics(run, state) == Some(run.join(METRICS)),
            _ => hash_file(&run.join(name)).is_ok_and(|found| found == *hash),
        };
        if !is_intact {
            let source = kept.join(name);
            write_atomic(&run.join(name), &read(&source)?)?;
            restored.push(name);
        }
    }
    Ok(restored)
}

/// Removes the checkpoints after `step`: training starts from there, and makes them again.
pub(super) fn remove_after(run: &Path, step: u64) -> Result<(), TrainError> {
    for later in steps(run)?.into_iter().filter(|later| *later > step) {
        remove(&checkpoint_dir(run, later))?;
    }
    Ok(())
}

fn changed(old: &Identity, new: &Identity) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

/// Steps that have a checkpoint, in order.
pub(super) fn steps(run: &Path) -> Result<Vec<u64>, TrainError> {
    let parent = run.join("checkpoints");
    let entries = match fs::read_dir(&parent) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(FileError::at("read", &parent)(e).into()),
    };
    let mut steps = Vec::new();
    for entry in entries {
        let entry = entry.map_err(FileError::at("read", &parent))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(PARTIAL) {
            remove(&entry.path())?;
        }
        steps.extend(name.strip_prefix("step-").and_then(|digits| digits.parse::<u64>().ok()));
    }
    steps.sort_unstable();
    Ok(steps)
}

/// Removes all but the last `keep` checkpoints and the one with the lowest validation loss.
pub(super) fn thin_out(run: &Path, keep: usize) -> Result<(), TrainError> {
    let steps = steps(run)?;
    let mut best: Option<(f64, u64)> = None;
    for step in &steps {
        let loss = match read_state(&checkpoint_dir(run, *step), *step) {
            // The best one may be the one that cannot be read at this moment.
            Err(TrainError::File(error)) if !error.is_missing() => return Err(error.into()),
            state => state.ok().and_then(|state| state.validation),
        };
        if let Some(loss) = loss.filter(|loss| best.is_none_or(|(least, _)| *loss < least)) {
            best = Some((loss, *step));
        }
    }
    let old = &steps[..steps.len().saturating_sub(keep)];
    for step in old.iter().filter(|step| best.is_none_or(|(_, best)| best != **step)) {
        remove(&checkpoint_dir(run, *step))?;
    }
    Ok(())
}

/// Removes every checkpoint, to start over.
pub(super) fn clear(run: &Path) -> Result<(), TrainError> {
    Ok(remove(&run.join("checkpoints"))?)
}

impl Checkpoint {
    /// Hash of weights and moments: two runs with the same one are the same to the bit.
    pub fn content_hash(&self) -> Hash {
        let parts = [&self.parameters, &self.first, &self.second];
        let hashes: Vec<u8> = parts.iter().flat_map(|p| hash_bytes(bytemuck::cast_slice(&p.flat)).0).collect();
        hash_bytes(&hashes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::initialise;
    use crate::recipe::Recipe;
    use safetensors::Dtype;

    #[test]
    fn moments_of_another_shape_or_of_another_type_are_refused() {
        let mut model = Recipe::load("pocket").unwrap().model;
        (model.layers, model.hidden, model.intermediate, model.heads, model.kv_heads) = (1, 8, 8, 1, 1);
        let like = initialise(&Config::from_recipe(&model, 300, 0).unwrap(), 1);
        let count = like.flat.len();
        let dir = tempfile::tempdir().unwrap();
        let load = |count: usize, dtype: Dtype, width: usize| {
            let data = vec![0u8; count * width];
            let view = || TensorView::new(dtype, vec![count], &data).unwrap();
            let bytes = safetensors::serialize([("first_moment", view()), ("second_moment", view())], None).unwrap();
            fs::write(dir.path().join(OPTIMIZER), bytes).unwrap();
            load_moments(dir.path(), &like)
        };
        assert_eq!(load(count, Dtype::F32, 4).unwrap(), [like.zeros_like(), like.zeros_like()]);
        for (count, dtype, width) in [(count - 1, Dtype::F32, 4), (count + 1, Dtype::F32, 4), (count, Dtype::F16, 2)] {
            let message = load(count, dtype, width).unwrap_err().to_string();
            assert!(message.contains("optimizer.safetensors: first_moment does not fit"), "{dtype:?}: {message}");
        }
    }
}
