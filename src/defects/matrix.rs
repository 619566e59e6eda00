//! In which published versions of Candle a defect is present: what `defects/matrix` ran.

use super::entry::Verdict;
use super::isolate::Outcome;
use super::record::{Listed, Runner};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The check and the control of one entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The check.
    pub check: Outcome,
    /// The control.
    pub control: Outcome,
}

/// One version's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Day of the run.
    pub date: String,
    /// Compiler it was built with.
    pub toolchain: String,
    /// By entry; one that is missing has no such function in this version.
    pub entries: BTreeMap<String, Pair>,
}

impl Version {
    /// Runs check and control of every entry, each in a process of its own, one after another.
    pub fn of(runner: Runner, entries: &[Listed], date: String, toolchain: String) -> Self {
        let pair = |entry: &Listed| {
            let [check, control] = runner.pair(&entry.id);
            (entry.id.clone(), Pair { check, control })
        };
        Version { date, toolchain, entries: entries.iter().map(pair).collect() }
    }
}

/// What was found in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The defect is present and the control clean.
    Present,
    /// It is absent.
    Absent,
    /// It cannot run here.
    NotHere,
    /// The version has no such function.
    NoSuchOp,
    /// The control is not clean either, so the check tells nothing.
    Unclear,
}

impl Found {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Found::Present => "present",
            Found::Absent => "absent",
            Found::NotHere => "not run here",
            Found::NoSuchOp => "no such op",
            Found::Unclear => "control not clean",
        }
    }
}

/// Runs by version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Matrix {
    /// By version number.
    pub versions: BTreeMap<String, Version>,
}

impl Matrix {
    /// The versions, oldest first.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.versions.keys().map(String::as_str).collect();
        names.sort_by_key(|name| name.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>());
        names
    }

    /// Every entry of any version.
    pub fn entries(&self) -> BTreeSet<&str> {
        self.versions.values().flat_map(|version| version.entries.keys().map(String::as_str)).collect()
    }

    /// What was found of an entry in a version.
    pub fn found(&self, entry: &str, version: &str) -> Found {
        let Some(pair) = self.versions.get(version).and_then(|v| v.entries.get(entry)) else { return Found::NoSuchOp };
        match (&pair.check, pair.control.shows()) {
            (Outcome::Verdict(Verdict::NeedsHardware(_)), _) => Found::NotHere,
            (_, true) => Found::Unclear,
            (check, false) if check.shows() => Found::Present,
            _ => Found::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_number_and_findings_by_check_and_control() {
        let pair = |check: bool, control: bool| {
            let verdict = |shows| Outcome::Verdict((shows, String::new()).into());
            Pair { check: verdict(check), control: verdict(control) }
        };
        let entries = BTreeMap::from([
            ("a".to_owned(), pair(true, false)),
            ("b".to_owned(), pair(false, false)),
            ("c".to_owned(), pair(true, true)),
        ]);
        let version = Version { date: "2026-01-01".to_owned(), toolchain: "rustc".to_owned(), entries };
        let versions = ["0.10.2", "0.9.2", "0.11.1"].map(|name| (name.to_owned(), version.clone()));
        let matrix = Matrix { versions: versions.into() };
        assert_eq!(matrix.names(), ["0.9.2", "0.10.2", "0.11.1"]);
        let found = ["a", "b", "c", "d"].map(|entry| matrix.found(entry, "0.9.2").name());
        assert_eq!(found, ["present", "absent", "control not clean", "no such op"]);
    }
}
