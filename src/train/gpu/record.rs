//! One visit to a GPU as plain data: the machine, what was checked, what was timed.

use crate::artifact::{Hash, hash_bytes};
use crate::train::plan::DEVICES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of the record's layout.
pub const FORMAT: u32 = 1;

/// A price, and who states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// US$ for an hour of the machine.
    pub dollars_an_hour: f64,
    /// Whose price, and of what date.
    pub stated_by: String,
}

/// The machine of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The GPU as its driver names it.
    pub gpu: String,
    /// Compute capability.
    pub capability: String,
    /// Bytes of its memory.
    pub memory: u64,
    /// CUDA version of the driver.
    pub cuda: String,
    /// Version of the driver, where the system tells.
    pub driver: Option<String>,
    /// The processor, where the system tells.
    pub processor: Option<String>,
    /// Threads of the host.
    pub threads: usize,
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
    /// The GPU's bf16 peak from its data sheet; absent for one that is not known here.
    pub peak: Option<f64>,
    /// Share of the peak in the median step.
    pub peak_share: Option<f64>,
    /// Bytes of GPU memory in use.
    pub memory: u64,
    /// Bytes that were planned.
    pub planned_memory: u64,
}

/// One visit to a GPU.
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
    /// How right the kernels are.
    pub checked: Checked,
    /// How fast training is; absent when something was wrong.
    pub timed: Option<Timed>,
    /// What the command printed, line by line.
    pub log: Vec<String>,
}

impl Record {
    /// The name of its file: date, GPU and what it says.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let gpu: String = self.hardware.gpu.chars().map(plain).collect();
        let text = serde_json::to_vec(self).unwrap_or_else(|e| unreachable!("plain data: {e}"));
        format!("{}-{gpu}-{}.json", self.date, &hash_bytes(&text).short()[..6])
    }
}

/// Hash of the source that this program was made from.
pub fn source() -> Hash {
    env!("SHIKHA_SOURCE").parse().unwrap_or_default()
}

/// The data sheet's peak of a GPU by its name; none for one that is not known, or has another socket.
pub fn peak_of(gpu: &str) -> Option<f64> {
    let gpu = gpu.to_ascii_lowercase();
    let words: Vec<&str> = gpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    // Cards of the same name for other sockets have other peaks.
    if words.iter().any(|word| ["pcie", "nvl"].contains(word)) {
        return None;
    }
    let is_named = |name: &str| words.contains(&name) || words.windows(2).any(|pair| pair.concat() == name);
    DEVICES.iter().find(|device| is_named(device.name)).map(|device| device.peak)
}

/// Today in UTC, as 2026-12-31.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    day(seconds / 86_400)
}

/// The day with this number from 1 January 1970 on, by the Gregorian calendar.
fn day(number: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut rest) = (1970, number);
    while rest >= 365 + u64::from(is_leap(year)) {
        rest -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", rest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(
            [0, 58, 59, 11_016, 20_788].map(day),
            ["1970-01-01", "1970-02-28", "1970-03-01", "2000-02-29", "2026-12-01"]
        );
    }

    #[test]
    fn peaks_are_found_by_the_name_a_driver_gives() {
        assert_eq!(peak_of("NVIDIA H100 80GB HBM3"), Some(989e12));
        assert_eq!(peak_of("NVIDIA GeForce RTX 4090"), Some(165e12));
        for other in ["Tesla T4", "NVIDIA RTX A1000", "NVIDIA H100 PCIe", "NVIDIA H200 NVL"] {
            assert_eq!(peak_of(other), None, "{other}");
        }
    }
}
