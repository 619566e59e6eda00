//! Which machine a run sat on, and how long: a list in the run directory, one entry for each process that trained.
//! A run of days may be killed and go on elsewhere; what it took is the sum.

use super::{TrainError, checkpoint, metrics};
use crate::artifact::boundary::guard;
use crate::artifact::{Hash, hash_bytes, write_atomic};
use crate::error::FileError;
use crate::machine::{Hardware, clock, day_of, source};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name of the list in a run directory.
pub const SITTINGS: &str = "sittings.json";

/// One process that trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sitting {
    /// Day on which it began, as 2026-12-31 (UTC).
    pub date: String,
    /// When it began, in seconds since 1970 by the machine's clock.
    pub began: u64,
    /// Hash of the program's source.
    pub source: Hash,
    /// What it computed on.
    pub hardware: Hardware,
    /// Seconds it took, checks, validation and saving included; of one that was killed, up to its last step. Null
    /// while it sits, and where the clock was set back.
    pub seconds: Option<f64>,
    /// The last step there was when it ended.
    pub step: Option<u64>,
}

/// The list, with the hash of what is in it: a flipped bit must not become an hour or a machine.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    sha256: Hash,
    sittings: Vec<Sitting>,
}

/// Notes that a process begins to train in `directory`; with `over`, as the first one. A sitting before it that was
/// killed gets its end from the metrics.
///
/// # Errors
/// [`TrainError::File`] when the list cannot be read or written. A damaged one is passed over with a warning: it decides
/// nothing.
pub fn sit_down(directory: &Path, hardware: Hardware, over: bool) -> Result<(), TrainError> {
    let mut sittings = if over { Vec::new() } else { known(directory)? };
    if let Some(last) = sittings.last_mut().filter(|last| last.seconds.is_none()) {
        let rows = metrics::rows_until(&directory.join(checkpoint::METRICS), u64::MAX)?;
        let row = rows.last().and_then(|row| Some((row.step, row.machine.clock?)));
        // Rows of an earlier sitting mean that this one was killed before its first step.
        let ended = row.filter(|(_, clock)| *clock >= last.began);
        last.seconds = ended.map(|(_, clock)| (clock - last.began) as f64);
        last.step = ended.map(|(step, _)| step);
    }
    let began = clock();
    sittings.push(Sitting { date: day_of(began), began, source: source(), hardware, seconds: None, step: None });
    write(directory, sittings)
}

/// Notes that the process that sat down last ends at `step` after so many seconds.
///
/// # Errors
/// [`TrainError::File`] when the list cannot be written.
pub fn stand_up(directory: &Path, seconds: f64) -> Result<(), TrainError> {
    let mut sittings = known(directory)?;
    if let Some(last) = sittings.last_mut() {
        let rows = metrics::rows_until(&directory.join(checkpoint::METRICS), u64::MAX)?;
        (last.seconds, last.step) = (Some(seconds), Some(rows.last().map_or(0, |row| row.step)));
    }
    write(directory, sittings)
}

/// The sittings of a run; none where nothing was noted.
///
/// # Errors
/// [`TrainError::Sittings`] when the list does not parse or was altered, [`TrainError::File`] when it cannot be read.
pub fn sittings(directory: &Path) -> Result<Vec<Sitting>, TrainError> {
    let path = directory.join(SITTINGS);
    let text = match guard(|| std::fs::read(&path)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(FileError::at("read", &path))?,
    };
    let wrong = |message: String| TrainError::Sittings { path: path.clone(), message };
    let list: List = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
    if list.sha256 == seal(&list.sittings) {
        Ok(list.sittings)
    } else {
        Err(wrong("it was altered: its content does not fit its sha256".to_owned()))
    }
}

fn seal(sittings: &[Sitting]) -> Hash {
    hash_bytes(&serde_json::to_vec(sittings).unwrap_or_else(|e| unreachable!("plain data: {e}")))
}

/// The list to go on with: a damaged one is begun anew, one that cannot be read at this moment is not.
fn known(directory: &Path) -> Result<Vec<Sitting>, TrainError> {
    match sittings(directory) {
        Err(error @ TrainError::Sittings { .. }) => {
            eprintln!("warning: {error}");
            Ok(Vec::new())
        }
        found => found,
    }
}

fn write(directory: &Path, sittings: Vec<Sitting>) -> Result<(), TrainError> {
    let list = List { sha256: seal(&sittings), sittings };
    let mut text = serde_json::to_vec_pretty(&list).unwrap_or_else(|e| unreachable!("plain data: {e}"));
    text.push(b'\n');
    Ok(write_atomic(&directory.join(SITTINGS), &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{Machine, Row};

    fn metric(directory: &Path, step: u64, clock: u64) {
        let row = Row {
            step,
            tokens: step,
            loss: None,
            gradient_norm: None,
            learning_rate: 0.0,
            skipped: false,
            validation: [].into(),
            machine: Machine { clock: Some(clock), ..Machine::default() },
        };
        let path = directory.join(checkpoint::METRICS);
        let text = std::fs::read_to_string(&path).unwrap_or_default() + &serde_json::to_string(&row).unwrap() + "\n";
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_sitting_that_was_killed_ends_with_its_last_step() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(sittings(root).unwrap(), []);
        sit_down(root, Hardware::here(None), false).unwrap();
        let began = sittings(root).unwrap()[0].began;
        metric(root, 1, began + 7);
        metric(root, 2, began + 9);
        sit_down(root, Hardware::here(None), false).unwrap();
        stand_up(root, 2.5).unwrap();
        let ends: Vec<_> = sittings(root).unwrap().iter().map(|s| (s.seconds, s.step)).collect();
        assert_eq!(ends, [(Some(9.0), Some(2)), (Some(2.5), Some(2))]);
        assert_eq!(sittings(root).unwrap()[0].source, source());
        sit_down(root, Hardware::here(None), true).unwrap();
        assert_eq!(sittings(root).unwrap().len(), 1, "a run that starts over has no sittings before it");
    }

    #[test]
    fn one_killed_before_its_first_step_or_with_the_clock_set_back_is_not_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        metric(root, 1, 5);
        sit_down(root, Hardware::here(None), false).unwrap();
        sit_down(root, Hardware::here(None), false).unwrap();
        assert_eq!(sittings(root).unwrap()[0].seconds, None);
    }

    #[test]
    fn a_damaged_list_is_named_and_stops_no_training() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SITTINGS), b"[{").unwrap();
        assert!(sittings(folder.path()).unwrap_err().to_string().contains(SITTINGS));
        sit_down(folder.path(), Hardware::here(None), false).unwrap();
        assert_eq!(sittings(folder.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_begun_anew() {
        use crate::artifact::boundary::{Fault, at};
        let folder = tempfile::tempdir().unwrap();
        sit_down(folder.path(), Hardware::here(None), false).unwrap();
        at(Some((1, Fault::Broken)));
        let refused = sit_down(folder.path(), Hardware::here(None), false);
        at(None);
        assert!(refused.unwrap_err().to_string().contains("the disk does not answer"));
        assert_eq!(sittings(folder.path()).unwrap().len(), 1, "what was noted is still there");
    }
}
