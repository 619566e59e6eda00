//! Progress of long work: a bar with the time left on a terminal, plain lines elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Seconds between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress of one piece of work, written to standard error.
///
/// On a terminal it is a bar with an estimate of the time left; elsewhere it prints a line at most
/// every ten seconds and one at the end, so that logs stay short.
pub struct Progress {
    label: String,
    total: u64,
    bar: Option<ProgressBar>,
    done: u64,
    started: Instant,
    last_line: Instant,
    quiet: bool,
    told: Option<Told>,
}

/// Who is told of every position, with the message beside it.
type Told = Box<dyn FnMut(u64, &str) + Send>;

impl Progress {
    /// Starts a bar over `total` steps of `unit` (for example `documents`).
    pub fn new(label: &str, total: u64, unit: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total);
            // The time left stands before the message: a narrow terminal cuts the end.
            let template = format!("{{prefix:10}} {{bar:20}} {{pos}}/{{len}} {unit}, {{eta}} left, {{msg}}");
            if let Ok(style) = ProgressStyle::with_template(&template) {
                bar.set_style(style);
            }
            bar.set_prefix(label.to_owned());
            bar
        });
        let now = Instant::now();
        Progress {
            label: label.to_owned(),
            total,
            bar,
            done: 0,
            started: now,
            last_line: now,
            quiet: false,
            told: None,
        }
    }

    /// A progress that prints nothing (tests, notebooks, nested work).
    pub fn hidden(total: u64) -> Self {
        let now = Instant::now();
        let label = String::new();
        Progress { label, total, bar: None, done: 0, started: now, last_line: now, quiet: true, told: None }
    }

    /// A progress that prints nothing itself: `each` is told of every position and the message beside it.
    pub fn told(total: u64, each: impl FnMut(u64, &str) + Send + 'static) -> Self {
        Progress { told: Some(Box::new(each)), ..Progress::hidden(total) }
    }

    /// Counts `steps` more, and shows `message` beside them.
    pub fn advance(&mut self, steps: u64, message: &str) {
        self.set(self.done + steps, message);
    }

    /// Sets the position, for work that resumes in the middle.
    pub fn set(&mut self, done: u64, message: &str) {
        self.done = done;
        if let Some(told) = &mut self.told {
            told(done, message);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(message.to_owned());
        } else if !self.quiet && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            eprintln!("{:12} {}/{} {message}", self.label, self.done, self.total);
        }
    }

    /// Ends the work with a closing message.
    pub fn finish(self, message: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if !self.quiet {
            eprintln!("{:12} {message} ({:.1} s)", self.label, self.started.elapsed().as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_resumes() {
        let mut progress = Progress::hidden(10);
        progress.advance(3, "");
        progress.set(7, "");
        progress.advance(1, "");
        assert_eq!(progress.done, 8);
        progress.finish("");
    }

    #[test]
    fn who_asks_is_told_of_every_position() {
        let (ear, heard) = std::sync::mpsc::channel();
        let mut progress = Progress::told(4, move |done, message| ear.send((done, message.to_owned())).unwrap());
        progress.advance(1, "a");
        progress.set(4, "b");
        drop(progress);
        assert_eq!(heard.iter().collect::<Vec<_>>(), [(1, "a".to_owned()), (4, "b".to_owned())]);
    }
}
