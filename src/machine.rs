//! What the operating system tells of this process; other machines would tell otherwise.

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
