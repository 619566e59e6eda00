//! What a machine did, as one file that can be added to the report: a benchmark of its GPU, or a whole run.

use super::plan::peak_of;
use super::{Row, Sitting, Summary, TrainError};
use crate::arbiter::Verdict;
use crate::artifact::{Hash, hash_bytes, write_atomic};
use crate::error::FileError;
use crate::machine::Hardware;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Version of the record's layout.
pub const FORMAT: u32 = 2;

/// A price, and who states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// US$ for an hour of the machine.
    pub dollars_an_hour: f64,
    /// Whose price, and of what date.
    pub stated_by: String,
}

/// How right the kernels are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// Largest relative error of each case: op, number type and sizes.
    pub kernels: BTreeMap<String, f64>,
    /// Largest relative error of a gradient of a small model, by number type.
    pub gradients: BTreeMap<String, f64>,
    /// What was wrong; empty when everything is right.
    pub wrong: Vec<String>,
}

/// What was measured of whole training steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timed {
    /// Name of the recipe.
    pub recipe: String,
    /// Parameters of its model.
    pub parameters: u64,
    /// Tokens of a step.
    pub tokens_per_step: u64,
    /// Seconds of each step, the loss read at its end.
    pub seconds: Vec<f64>,
    /// Loss of each step, nats per token.
    pub losses: Vec<f64>,
    /// Training tokens a second in the median step.
    pub tokens_per_second: f64,
    /// Operations of a token, by the plan.
    pub flops_per_token: f64,
    /// Bytes of GPU memory in use.
    pub memory: u64,
    /// Bytes that were planned.
    pub planned_memory: u64,
}

/// Held-out loss of one model on one language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOut {
    /// Language of the documents.
    pub language: String,
    /// `trained`, `twin` or another that was evaluated beside them.
    pub model: String,
    /// Tokens scored.
    pub tokens: u64,
    /// Nats per token, with the ends of its 95 % interval.
    pub nats_per_token: [f64; 3],
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The recipe as the run resolved it, TOML.
    pub recipe: String,
    /// Its name.
    pub name: String,
    /// Steps, tokens, seconds in steps, speed, last losses.
    pub summary: Summary,
    /// Operations to train on one token.
    pub flops_per_token: f64,
    /// Each time a process sat down to it: where, when and how long.
    pub sittings: Vec<Sitting>,
    /// What the arbiter said before the first step.
    pub verdict: Verdict,
    /// Held-out losses; empty where the run was not evaluated.
    pub held_out: Vec<HeldOut>,
    /// Steps of the metrics: those validated or skipped, and some of the others, evenly.
    pub rows: Vec<Row>,
    /// Hash of all metrics without what depends on the machine.
    pub metrics: Hash,
    /// Hash of the weights of the last step.
    pub weights: Hash,
}

/// Steps that a record keeps beside those that were validated or skipped.
const ROWS: usize = 400;

impl Run {
    /// The rows that a record keeps: those validated or skipped, the last, and about 400 others.
    pub fn thinned(rows: &[Row]) -> Vec<Row> {
        let every = rows.len().div_ceil(ROWS).max(1) as u64;
        let keeps = |row: &&Row| row.step % every == 1 % every || row.skipped || !row.validation.is_empty();
        let is_last = |row: &&Row| rows.last() == Some(*row);
        rows.iter().filter(|row| keeps(row) || is_last(row)).cloned().collect()
    }

    /// Seconds from sitting down to standing up, over all sittings; `None` where one was not noted.
    pub fn seconds(&self) -> Option<f64> {
        self.sittings.iter().map(|sitting| sitting.seconds).sum()
    }
}

/// What one machine did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of this layout.
    pub format: u32,
    /// Day, as 2026-12-31 (UTC).
    pub date: String,
    /// Hash of the program's source.
    pub source: Hash,
    /// The machine.
    pub hardware: Hardware,
    /// What it costs.
    pub price: Option<Price>,
    /// How right the kernels are, where they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// How fast training is, where it was timed; not when something was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<Timed>,
    /// The whole run, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// What was said, line by line.
    pub log: Vec<String>,
}

impl Record {
    /// The name of its file: date, what computed and what it says.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let words: String = self.hardware.name().chars().map(plain).collect();
        let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
        let hash = hash_bytes(&self.text());
        format!("{}-{}-{}.json", self.date, words.join("-"), &hash.short()[..6])
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`TrainError::Record`] when it does not parse, is of another format, or does not fit its name, which ends with a
    /// hash of what is in it.
    pub fn load(path: &Path) -> Result<Self, TrainError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let text = std::fs::read(path).map_err(FileError::at("read", path))?;
        let wrong = |message: String| TrainError::Record { path: path.to_path_buf(), message };
        let parsed = |e: serde_json::Error| wrong(e.to_string());
        let Version { format } = serde_json::from_slice(&text).map_err(parsed)?;
        if format != FORMAT {
            return Err(wrong(format!("is of format {format}, this program reads format {FORMAT}")));
        }
        let record: Record = serde_json::from_slice(&text).map_err(parsed)?;
        let name = record.file_name();
        if path.file_name().is_none_or(|found| *found != *name) {
            return Err(wrong(format!("was altered or renamed: what is in it is called {name}")));
        }
        Ok(record)
    }

    /// Writes it into a folder; the path.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be written.
    pub fn save(&self, folder: &Path) -> Result<PathBuf, FileError> {
        let path = folder.join(self.file_name());
        write_atomic(&path, &self.text())?;
        Ok(path)
    }

    /// Share of the data sheet's bf16 peak at a speed; none for a processor, or a GPU that is not known here.
    pub fn peak_share(&self, flops_per_token: f64, tokens_per_second: f64) -> Option<f64> {
        let peak = peak_of(&self.hardware.gpu.as_ref()?.name)?;
        Some(flops_per_token * tokens_per_second / peak)
    }

    fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_else(|e| unreachable!("plain data: {e}"));
        text.push(b'\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Hardware, source};
    use crate::train::Machine;

    #[test]
    fn a_record_is_read_as_it_was_written_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record {
            format: FORMAT,
            date: "2026-12-31".to_owned(),
            source: source(),
            hardware: Hardware { gpu: None, processor: Some("AMD EPYC (TM) 9654".to_owned()), threads: 2 },
            price: Some(Price { dollars_an_hour: 0.1, stated_by: "a cloud".to_owned() }),
            checked: None,
            timed: None,
            run: None,
            log: vec!["a line".to_owned()],
        };
        let path = record.save(folder.path()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("2026-12-31-amd-epyc-tm-9654-2-threads-"), "{name}");
        assert_eq!(Record::load(&path).unwrap(), record);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            // A space for a line's end and the like: the same content.
            let read = Record::load(&path);
            assert!(read.as_ref().map_or(true, |read| *read == record), "bit 0 of byte {at}");
        }
        let text = String::from_utf8(good).unwrap().replace("\"format\": 2", "\"format\": 3, \"more\": 1");
        std::fs::write(&path, text).unwrap();
        let message = Record::load(&path).unwrap_err().to_string();
        assert!(message.contains("is of format 3") && message.contains(&*name), "{message}");
    }

    fn row(step: u64) -> Row {
        Row {
            step,
            tokens: 10 * step,
            loss: Some(2.0),
            gradient_norm: Some(1.0),
            learning_rate: 1e-3,
            skipped: step == 778,
            validation: if step.is_multiple_of(1000) { [("bn".to_owned(), Some(3.0))].into() } else { [].into() },
            machine: Machine::default(),
        }
    }

    #[test]
    fn a_record_keeps_some_steps_evenly_and_those_that_tell_something() {
        let rows: Vec<Row> = (1..=3815).map(row).collect();
        let kept: Vec<u64> = Run::thinned(&rows).iter().map(|row| row.step).collect();
        assert!((ROWS - 20..ROWS + 10).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept[..3], [1, 11, 21]);
        for step in [778, 1000, 2000, 3000, 3815] {
            assert!(kept.contains(&step), "{step}");
        }
        let few: Vec<Row> = (1..=ROWS as u64).map(row).collect();
        assert_eq!(Run::thinned(&few), few);
        assert_eq!(Run::thinned(&[]), []);
    }
}
