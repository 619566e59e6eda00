//! Every check in a process of its own, with limits, so that a crash is a result and not the end.

use super::entry::Verdict;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a child may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time.
    pub time: Duration,
    /// Address space in MiB.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time: Duration::from_secs(60), memory: 4096 }
    }
}

/// How a check or a control ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It gave a verdict.
    Verdict(Verdict),
    /// It ended otherwise: a signal, a panic, an error or a limit, with its last words.
    Ended(String),
}

impl Outcome {
    /// Whether the defect shows: a verdict says so, or the process did not survive.
    pub fn shows(&self) -> bool {
        matches!(self, Outcome::Verdict(Verdict::Present(_)) | Outcome::Ended(_))
    }

    /// The evidence.
    pub fn evidence(&self) -> &str {
        match self {
            Outcome::Verdict(Verdict::Present(e) | Verdict::Absent(e) | Verdict::NeedsHardware(e)) => e,
            Outcome::Ended(how) => how,
        }
    }
}

impl From<Result<Verdict, String>> for Outcome {
    fn from(ended: Result<Verdict, String>) -> Self {
        ended.map_or_else(Outcome::Ended, Outcome::Verdict)
    }
}

/// Runs `program` with `arguments` under `limits` and reads what it prints as JSON. Its input stays open as long as
/// this process lives, so that a child can end itself when nobody waits for it.
///
/// # Errors
/// How it ended when it gave nothing: a signal, a panic, an error or a limit, with its last words.
pub fn run_child<T: DeserializeOwned>(program: &Path, arguments: &[&str], limits: Limits) -> Result<T, String> {
    // The shell sets the limit of its own process and becomes the program.
    let script = format!("ulimit -v {}; exec \"$0\" \"$@\"", limits.memory * 1024);
    let command = Command::new("sh")
        .args(["-c", &script])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("RUST_BACKTRACE", "0")
        .env("RAYON_NUM_THREADS", "1") // a child a core is enough
        .process_group(0)
        .spawn();
    let mut child = match command {
        Ok(child) => child,
        Err(error) => return Err(format!("cannot start {}: {error}", program.display())),
    };
    let readers = [child.stdout.take().map(collect), child.stderr.take().map(collect)];
    let status = wait(&mut child, limits.time);
    let [out, err] = readers.map(|reader| reader.and_then(|r| r.join().ok()).unwrap_or_default());
    match status {
        None => Err(format!("stopped after the limit of {:.1} s{}", limits.time.as_secs_f64(), last_words(&err))),
        Some(status) if status.success() => {
            serde_json::from_str(out.trim()).map_err(|error| format!("printed no verdict: {error}"))
        }
        Some(status) => Err(describe(status, &err)),
    }
}

/// Reads to the end in a thread of its own, so that a full pipe never blocks the child.
fn collect(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.by_ref().take(1 << 20).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() < limit => std::thread::sleep(Duration::from_millis(5)),
            _ => {
                kill_group(child);
                return None;
            }
        }
    }
}

/// Ends the child with everything it started, which may still hold its pipes.
fn kill_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = child.kill();
    let _ = child.wait();
}

fn describe(status: ExitStatus, stderr: &str) -> String {
    format!("the process ended with {status}{}", last_words(stderr))
}

/// A panic names its thread with the system's number, another in every run.
fn without_thread_number(words: &str) -> String {
    let Some((before, (number, after))) =
        words.split_once("' (").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    else {
        return words.to_owned();
    };
    let is_one = words.starts_with("thread '") && number.chars().all(|c| c.is_ascii_digit());
    if is_one { format!("{before}'{after}") } else { words.to_owned() }
}

/// The last two lines that say something.
fn last_words(stderr: &str) -> String {
    let words: Vec<&str> = stderr.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let last = without_thread_number(&words[words.len().saturating_sub(2)..].join(" / "));
    if last.is_empty() { last } else { format!(": {last}") }
}

/// Ends this process when whoever started it is gone: its input closes then.
pub fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_thread_is_left_out_of_its_last_words() {
        let stderr = "\nthread '<unknown>' (31062) has overflowed its stack\nfatal runtime error: stack overflow\n";
        assert_eq!(
            last_words(stderr),
            ": thread '<unknown>' has overflowed its stack / fatal runtime error: stack overflow"
        );
        assert_eq!(last_words("it's 'x' (7) here"), ": it's 'x' (7) here");
    }
}
