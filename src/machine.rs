//! What the operating system tells of this process and of the machine; other machines would tell otherwise.

use crate::artifact::Hash;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a GPU says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuInfo {
    /// Its name, as its driver gives it.
    pub name: String,
    /// Compute capability, as 9.0.
    pub capability: String,
    /// Bytes of its memory.
    pub memory: u64,
    /// CUDA version of the driver, as 13.0.
    pub cuda: String,
    /// Version of the driver, where the system tells.
    pub driver: Option<String>,
}

/// What computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The GPU; none where the processor does it.
    pub gpu: Option<GpuInfo>,
    /// The processor, where the system tells.
    pub processor: Option<String>,
    /// Threads of the processor.
    pub threads: usize,
}

impl Hardware {
    /// This machine, with the GPU that is used.
    pub fn here(gpu: Option<GpuInfo>) -> Self {
        Hardware { gpu, processor: processor(), threads: rayon::current_num_threads() }
    }

    /// What computes, for a reader: the GPU, or the processor and its threads.
    pub fn name(&self) -> String {
        match (&self.gpu, &self.processor) {
            (Some(gpu), _) => gpu.name.clone(),
            (None, Some(processor)) => format!("{processor}, {} threads", self.threads),
            (None, None) => format!("a processor, {} threads", self.threads),
        }
    }
}

/// Hash of the source that this program was made from.
pub fn source() -> Hash {
    env!("SHIKHA_SOURCE").parse().unwrap_or_default()
}

/// Seconds since the year 1970 by this machine's clock, which may be set back.
pub fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// The day of [`clock`] in UTC, as 2026-12-31.
pub fn day_of(clock: u64) -> String {
    let moment = i64::try_from(clock).ok().and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    moment.map_or_else(|| "a day unknown".to_owned(), |moment| moment.date_naive().to_string())
}

/// The largest resident set of this process so far, in bytes; `None` where the system does not tell.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Sets the high-water mark of [`peak_memory`] back to what is resident now; `false` where that cannot be done.
pub fn reset_peak_memory() -> bool {
    // 5 is the code for it (man 5 proc_pid_clear_refs).
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// The processor's name, where the system tells.
pub fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [0, 58, 59, 11_016, 20_788].map(|day| day_of(day * 86_400 + 86_399));
        assert_eq!(days, ["1970-01-01", "1970-02-28", "1970-03-01", "2000-02-29", "2026-12-01"]);
        assert_eq!(day_of(u64::MAX), "a day unknown");
    }

    #[test]
    fn what_computes_has_a_name() {
        let mut here = Hardware::here(None);
        assert!(here.name().ends_with(&format!("{} threads", rayon::current_num_threads())));
        here.gpu = Some(GpuInfo {
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            capability: "9.0".to_owned(),
            memory: 80 << 30,
            cuda: "13.0".to_owned(),
            driver: None,
        });
        assert_eq!(here.name(), "NVIDIA H100 80GB HBM3");
    }
}
