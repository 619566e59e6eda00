//! The run directory: everything of one run, and the ledger of what made what.

use super::boundary::guard;
use super::{Hash, PARTIAL, hash_bytes, hash_file, write_atomic};
use crate::error::FileError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

const LEDGER: &str = "run.lock";
const HOLD: &str = ".hold";

/// Why a run directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process works in the directory.
    #[error("run directory {} is in use by another process; wait for it or choose another with --run-dir", .0.display())]
    InUse(PathBuf),
    /// `run.lock` does not parse.
    #[error("{}: {message}; delete it to redo every stage", path.display())]
    Ledger {
        /// The ledger's path.
        path: PathBuf,
        /// The parser's words.
        message: String,
    },
}

/// What one stage read and wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    inputs: BTreeMap<String, Hash>,
    outputs: BTreeMap<String, Hash>,
}

/// The content of `run.lock`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    /// Hash over the stages: a flipped bit must not make an old artifact pass for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<Hash>,
    stages: BTreeMap<String, Record>,
}

/// Whether a stage ran or its outputs were already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// The stage ran.
    Now,
    /// The same inputs had made the same outputs before.
    Before,
}

/// One stage of a run: its name, what it is made from, and the files it makes.
#[derive(Debug, Clone)]
pub struct Stage<'a> {
    /// Name in the ledger.
    pub name: &'a str,
    /// Hash of everything that can change the outputs, by name.
    pub inputs: BTreeMap<String, Hash>,
    /// Paths of the outputs, relative to the run directory.
    pub outputs: Vec<String>,
}

/// A run directory, held by this process until dropped.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    ledger: Ledger,
    force: bool,
    _hold: File,
}

impl RunDir {
    /// Opens or makes the run directory at `root` and holds it. With `force`, every stage is redone.
    ///
    /// # Errors
    /// [`ArtifactError::InUse`] when another process holds it; others when it cannot be read or written.
    pub fn open(root: &Path, force: bool) -> Result<Self, ArtifactError> {
        std::fs::create_dir_all(root).map_err(FileError::at("create the directory", root))?;
        let hold_path = root.join(HOLD);
        let hold = File::create(&hold_path).map_err(FileError::at("write", &hold_path))?;
        match hold.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ArtifactError::InUse(root.to_path_buf())),
            Err(TryLockError::Error(e)) => return Err(FileError::at("lock", &hold_path)(e).into()),
        }
        remove_partial(root, 2)?;
        Ok(RunDir { root: root.to_path_buf(), ledger: read_ledger(root)?, force, _hold: hold })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of an artifact inside the directory.
    pub fn path(&self, artifact: &str) -> PathBuf {
        self.root.join(artifact)
    }

    /// Whether `stage` would run: its inputs changed, or an output is missing or altered.
    pub fn is_due(&self, stage: &Stage) -> bool {
        let Some(record) = self.ledger.stages.get(stage.name) else { return true };
        let intact = |name: &String, hash: &Hash| hash_file(&self.path(name)).is_ok_and(|now| now == *hash);
        self.force
            || record.inputs != stage.inputs
            || !record.outputs.keys().eq(sorted(&stage.outputs).iter())
            || !record.outputs.iter().all(|(name, hash)| intact(name, hash))
    }

    /// Runs `make` when `stage` is due, then records its inputs and outputs.
    ///
    /// Outputs are compared by content: when a deleted artifact is made again bit for bit, what was
    /// made from it stays.
    ///
    /// # Errors
    /// Those of `make`, or [`ArtifactError`] when an output is missing afterwards or the ledger
    /// cannot be written.
    pub fn stage<E: From<ArtifactError>>(
        &mut self,
        stage: &Stage,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Made, E> {
        if !self.is_due(stage) {
            return Ok(Made::Before);
        }
        make(&self.root)?;
        self.record(stage)?;
        Ok(Made::Now)
    }

    /// The hash of an artifact as the ledger has it.
    pub fn recorded(&self, artifact: &str) -> Option<Hash> {
        self.ledger.stages.values().find_map(|record| record.outputs.get(artifact).copied())
    }

    fn record(&mut self, stage: &Stage) -> Result<(), ArtifactError> {
        let mut outputs = BTreeMap::new();
        for name in &stage.outputs {
            outputs.insert(name.clone(), hash_file(&self.path(name))?);
        }
        let record = Record { inputs: stage.inputs.clone(), outputs };
        self.ledger.stages.insert(stage.name.to_owned(), record);
        self.ledger.sha256 = Some(seal(&self.ledger.stages));
        let text = toml::to_string_pretty(&self.ledger).unwrap_or_else(|e| unreachable!("a ledger is plain data: {e}"));
        write_atomic(&self.root.join(LEDGER), text.as_bytes())?;
        Ok(())
    }
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn seal(stages: &BTreeMap<String, Record>) -> Hash {
    hash_bytes(&serde_json::to_vec(stages).unwrap_or_else(|e| unreachable!("a ledger is plain data: {e}")))
}

fn read_ledger(root: &Path) -> Result<Ledger, ArtifactError> {
    let path = root.join(LEDGER);
    match guard(|| std::fs::read(&path)) {
        Ok(text) => parse_ledger(&text).map_err(|message| ArtifactError::Ledger { path, message }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Ledger::default()),
        Err(e) => Err(FileError::at("read", &path)(e).into()),
    }
}

fn parse_ledger(text: &[u8]) -> Result<Ledger, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is no UTF-8 text".to_owned())?;
    let ledger: Ledger = toml::from_str(text).map_err(|e| crate::recipe::one_line(&e.to_string()))?;
    match ledger.sha256 {
        Some(stated) if stated != seal(&ledger.stages) => {
            Err("it was altered: its content does not fit its sha256".to_owned())
        }
        _ => Ok(ledger),
    }
}

/// Removes the halves of files that a killed process left in the directory and the folders in it.
fn remove_partial(directory: &Path, depth: usize) -> Result<(), FileError> {
    for entry in std::fs::read_dir(directory).map_err(FileError::at("read", directory))? {
        let entry = entry.map_err(FileError::at("read", directory))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(FileError::at("read", directory))?);
        if kind.is_dir() && depth > 0 {
            remove_partial(&path, depth - 1)?;
        } else if kind.is_file() && entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            std::fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage<'a>(input: &[u8]) -> Stage<'a> {
        Stage {
            name: "copy",
            inputs: BTreeMap::from([("text".to_owned(), hash_bytes(input))]),
            outputs: vec!["out".to_owned()],
        }
    }

    fn run(root: &Path, input: &[u8], force: bool) -> Made {
        let mut dir = RunDir::open(root, force).unwrap();
        dir.stage::<ArtifactError>(&stage(input), |root| Ok(write_atomic(&root.join("out"), input)?)).unwrap()
    }

    #[test]
    fn runs_once_and_again_only_when_something_changed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(run(root, b"a", false), Made::Now);
        assert_eq!(run(root, b"a", false), Made::Before);
        assert_eq!(run(root, b"a", true), Made::Now, "--force");
        assert_eq!(run(root, b"b", false), Made::Now, "input changed");
        std::fs::remove_file(root.join("out")).unwrap();
        assert_eq!(run(root, b"b", false), Made::Now, "output deleted");
        std::fs::write(root.join("out"), b"x").unwrap();
        assert_eq!(run(root, b"b", false), Made::Now, "output altered");
        assert_eq!(run(root, b"b", false), Made::Before);
    }

    #[test]
    fn two_processes_cannot_hold_one_directory() {
        let dir = tempfile::tempdir().unwrap();
        let held = RunDir::open(dir.path(), false).unwrap();
        let message = RunDir::open(dir.path(), false).unwrap_err().to_string();
        assert!(message.contains("in use by another process"), "{message}");
        drop(held);
        assert!(RunDir::open(dir.path(), false).is_ok());
    }

    #[test]
    fn a_damaged_ledger_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LEDGER);
        let refused = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            let message = RunDir::open(dir.path(), false).unwrap_err().to_string();
            assert!(message.contains("run.lock") && message.contains("delete it"), "{message}");
        };
        refused(b"stages = 3");
        refused(&[0xff, 0xfe]);
        std::fs::remove_file(&path).unwrap();
        run(dir.path(), b"a", false);
        let good = std::fs::read(&path).unwrap();
        let mut silent = 0;
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            if let Ok(found) = RunDir::open(dir.path(), false) {
                silent += usize::from(found.is_due(&stage(b"a")));
            }
        }
        assert_eq!(silent, 0, "a bit that is read is covered by the hash");
    }

    #[test]
    fn rubbish_of_a_killed_write_is_cleared_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let shards = dir.path().join("shards");
        std::fs::create_dir_all(shards.join("bn")).unwrap();
        for path in [".partial-x", "shards/.partial-y", "shards/bn/.partial-z", "shards/whole"] {
            let path = dir.path().join(path);
            std::fs::write(path, b"x").unwrap();
        }
        let held = RunDir::open(dir.path(), false).unwrap();
        assert!(!held.path(".partial-x").exists() && !held.path("shards/.partial-y").exists());
        assert!(!held.path("shards/bn/.partial-z").exists());
        assert!(held.path("shards/whole").exists());
    }
}
