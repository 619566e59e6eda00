//! `metrics.jsonl`: one row a step. What the seed decides lies at the top level, what the machine
//! decides under `machine`, so that two runs can be compared by the first alone.

use super::TrainError;
use crate::artifact::boundary::{Guarded, guard};
use crate::artifact::{Hash, hash_bytes, write_atomic};
use crate::error::FileError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What one step did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Step, from 1.
    pub step: u64,
    /// Training tokens seen, this step included.
    pub tokens: u64,
    /// Mean loss of the step's batch before the step, nats per token; null when not finite.
    pub loss: Option<f64>,
    /// Global norm of the gradient before clipping; null when not finite.
    pub gradient_norm: Option<f64>,
    /// Learning rate of the step.
    pub learning_rate: f64,
    /// Whether the step was left out: its loss or gradient was not finite (null here), or its loss a spike.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Validation loss after the step, nats per token, by language; null when not finite, empty when
    /// not validated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub validation: BTreeMap<String, Option<f64>>,
    /// What depends on the machine.
    pub machine: Machine,
}

/// What depends on the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Seconds the step took, validation and saving aside.
    pub seconds: f64,
    /// Training tokens a second.
    pub tokens_per_second: f64,
    /// Share of this machine's measured matrix-product peak.
    pub gemm_peak_share: f64,
    /// Seconds of it that the arbiter's monitor took.
    #[serde(default)]
    pub monitor_seconds: f64,
    /// Peak resident memory so far in bytes, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// When the step ended, in seconds since 1970 by the machine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u64>,
}

/// Appends rows; every row is a whole line.
pub(super) struct MetricsFile {
    path: PathBuf,
    file: File,
}

impl MetricsFile {
    /// Keeps the rows up to `step` and opens the file to append after them.
    pub(super) fn cut(path: &Path, step: u64) -> Result<Self, TrainError> {
        let mut text = String::new();
        for row in rows_until(path, step)? {
            text += &line(&row);
        }
        write_atomic(path, text.as_bytes())?;
        let file = OpenOptions::new().append(true).open(path).map_err(FileError::at("open", path))?;
        Ok(MetricsFile { path: path.to_path_buf(), file })
    }

    pub(super) fn append(&mut self, row: &Row) -> Result<(), TrainError> {
        Ok(Guarded(&mut self.file).write_all(line(row).as_bytes()).map_err(FileError::at("write", &self.path))?)
    }

    pub(super) fn sync(&mut self) -> Result<(), TrainError> {
        Ok(guard(|| self.file.sync_all()).map_err(FileError::at("sync", &self.path))?)
    }
}

/// Hash of the rows 1 to `step` of the file, machine aside; another one when any is missing.
pub(super) fn hash_until(path: &Path, step: u64) -> Result<Hash, FileError> {
    Ok(deterministic_hash(&rows_until(path, step)?))
}

/// The unbroken run of rows 1, 2, … up to `step` at the head of the file; a torn last line, which a
/// kill can leave, ends it. No file is no rows; one that cannot be read is an error, or its rows would be lost.
pub(super) fn rows_until(path: &Path, step: u64) -> Result<Vec<Row>, FileError> {
    let text = match guard(|| std::fs::read(path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        text => text.map_err(FileError::at("read", path))?,
    };
    let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let rows = lines.map_while(|line| serde_json::from_slice::<Row>(line).ok());
    Ok(rows.zip(1..=step).map_while(|(row, expected)| (row.step == expected).then_some(row)).collect())
}

fn line(row: &Row) -> String {
    let text = serde_json::to_string(row).unwrap_or_else(|e| unreachable!("a row is plain data: {e}"));
    text + "\n"
}

/// Reads all rows.
///
/// # Errors
/// [`TrainError::Metrics`] naming the line that does not parse.
pub fn read_metrics(path: &Path) -> Result<Vec<Row>, TrainError> {
    let text = guard(|| std::fs::read_to_string(path)).map_err(FileError::at("read", path))?;
    let parse = |(i, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| TrainError::Metrics {
            path: path.to_path_buf(),
            line: i + 1,
            message: e.to_string(),
        })
    };
    text.lines().enumerate().map(parse).collect()
}

/// Hash of the rows without what depends on the machine: equal for equal runs anywhere.
pub fn deterministic_hash(rows: &[Row]) -> Hash {
    let bare = rows.iter().map(|row| line(&Row { machine: Machine::default(), ..row.clone() }));
    hash_bytes(bare.collect::<String>().as_bytes())
}
