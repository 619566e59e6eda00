//! One running Rust kernel without Jupyter: executes a cell and says all that it put out, and why it failed.

use crate::error::KernelError;
use crate::locate::{in_cells, named_line};
use crate::notebook::CodeCell;
use crate::outputs::Captured;
use crate::watch::{TimedOut, Watch};
use crate::workshop::{Workshop, start_commands};
use crate::wrapper::{self, END, QUESTION_MARK};
use crossbeam_channel::{Receiver, Select};
use evcxr::{CommandContext, CompilationError, Error};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait for the end mark of a cell's standard error: it is on its way when the cell has ended.
const STDERR_ARRIVES: Duration = Duration::from_secs(10);

/// A kernel.
pub struct Session {
    context: CommandContext,
    crate_directory: String,
    stdout: Pump,
    stderr: Pump,
    limit: Duration,
    ran: Vec<CodeCell>,
}

/// Why a cell failed: where, what, and the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellFailure {
    /// The cell whose line is meant, if an earlier one, and the line.
    pub place: Option<(usize, usize)>,
    /// What happened.
    pub what: String,
    /// The evidence.
    pub detail: String,
}

impl Session {
    /// Starts a kernel in a folder that this process has entered, or as a stock kernel starts; each cell may take as
    /// long as `limit`.
    ///
    /// # Errors
    /// evcxr does not start.
    pub fn start(workshop: Option<&Workshop>, limit: Duration) -> Result<Self, KernelError> {
        let kernel = |error: Error| KernelError::Kernel(error.to_string());
        let (mut context, outputs) = CommandContext::new().map_err(kernel)?;
        if let Some(workshop) = workshop {
            context.execute(&start_commands(&workshop.build)).map_err(kernel)?;
        }
        if let Some((program, _)) = std::env::current_exe().ok().zip(workshop) {
            let marks = format!(
                ":build_env RUSTC_WORKSPACE_WRAPPER={}\n:build_env {}=1\n",
                program.display(),
                wrapper::ENVIRONMENT
            );
            context.execute(&marks).map_err(kernel)?;
        }
        Ok(Self {
            context,
            crate_directory: workshop
                .map_or_else(String::new, |workshop| workshop.folder.to_string_lossy().into_owned()),
            stdout: Pump::start(outputs.stdout),
            stderr: Pump::start(outputs.stderr),
            limit,
            ran: Vec::new(),
        })
    }

    /// Executes a cell: what it put out, and why it failed if it did. `stuck` is told, on another thread, when a cell that
    /// has been stopped does not end even so.
    pub fn execute(
        &mut self,
        cell: &CodeCell,
        stuck: impl FnOnce(CellFailure) + Send + 'static,
    ) -> (Captured, Option<CellFailure>) {
        self.ran.push(cell.clone());
        let limit = self.limit;
        let watch = Watch::start(self.context.process_handle(), limit, move || stuck(timed_out(limit, None, "")));
        let result = self.context.execute(&cell.source);
        let timed_out = watch.stop();
        if result.is_ok() {
            self.await_stderr();
        }
        let mut captured = Captured { stdout: self.stdout.take(), ..Captured::default() };
        let raw = self.stderr.take();
        captured.stderr = self.readable(&raw);
        let failure = match result {
            Ok(outputs) => {
                captured.result = outputs.content_by_mime_type.into_iter().collect();
                self.told_on_stderr(&raw, &captured.stderr)
            }
            Err(error) => {
                let failure = self.refused(error, timed_out, &raw);
                let message = if failure.detail.is_empty() { &failure.what } else { &failure.detail };
                captured.error = Some(message.clone());
                Some(failure)
            }
        };
        (captured, failure)
    }

    /// Waits for the end mark, if the source that ran holds one: standard error arrives on its own.
    fn await_stderr(&self) {
        if !self.context.last_source().is_ok_and(|source| source.contains(END.trim_start_matches('\u{1}'))) {
            std::thread::sleep(Duration::from_millis(20));
            return;
        }
        let start = Instant::now();
        while !self.stderr.lines().iter().any(|line| line == END) && start.elapsed() < STDERR_ARRIVES {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A panic and an error from `?` only write to standard error; so does a warning.
    fn told_on_stderr(&self, raw: &[String], readable: &[String]) -> Option<CellFailure> {
        let first = readable.iter().find(|line| !line.trim().is_empty())?;
        let all = raw.join("\n");
        let detail = readable.join("\n");
        let place = self.place(&all);
        let what = if raw.iter().any(|line| line.starts_with(QUESTION_MARK)) {
            "an error was returned by `?`"
        } else if all.contains("panicked at") {
            "panicked"
        } else {
            return Some(CellFailure { place: None, what: format!("wrote to standard error: {first}"), detail });
        };
        Some(CellFailure { place, what: what.to_owned(), detail })
    }

    /// What evcxr itself calls an error: a cell that does not compile, or whose process ended.
    fn refused(&self, error: Error, timed_out_at: Option<TimedOut>, raw: &[String]) -> CellFailure {
        let all = raw.join("\n");
        if timed_out_at.is_some() {
            return timed_out(self.limit, self.place(&all), "");
        }
        match error {
            Error::CompilationErrors(errors) => compile_failure(&errors, self.ran.last()),
            Error::SubprocessTerminated(message) => CellFailure {
                place: self.place(&all),
                what: "ended the kernel's process".to_owned(),
                detail: format!("{}\n{message}", self.readable(raw).join("\n")).trim().to_owned(),
            },
            other => CellFailure { place: None, what: "was refused".to_owned(), detail: other.to_string() },
        }
    }

    /// The cell and line that a message names through a line of the generated source.
    fn place(&self, message: &str) -> Option<(usize, usize)> {
        let source = self.context.last_source().ok()?;
        in_cells(&source, named_line(message, &self.crate_directory)?, &self.ran)
    }

    /// Standard error as a reader may see it: without marks and backtraces, with lines of cells for lines of the
    /// generated source.
    fn readable(&self, raw: &[String]) -> Vec<String> {
        let mut readable = Vec::new();
        let mut in_backtrace = false;
        for line in raw {
            if line == END || line.starts_with(QUESTION_MARK) {
                in_backtrace = false;
                continue;
            }
            in_backtrace |= line.starts_with("stack backtrace:");
            if in_backtrace || line.starts_with("note: run with `RUST_BACKTRACE") {
                in_backtrace &= !line.starts_with("note: ");
                continue;
            }
            let place = Some(line).filter(|line| line.contains("panicked at")).and_then(|line| self.place(line));
            match place {
                Some((number, at)) => readable.push(format!("panicked at cell [{number}], line {at}:")),
                None => readable.push(line.clone()),
            }
        }
        // A panic's message comes between empty lines.
        let said = |line: &String| !line.trim().is_empty();
        let end = readable.iter().rposition(said).map_or(0, |last| last + 1);
        let start = readable.iter().position(said).unwrap_or(0);
        readable[start..end].to_vec()
    }
}

fn timed_out(limit: Duration, place: Option<(usize, usize)>, detail: &str) -> CellFailure {
    let what = format!("had not ended after {} s", limit.as_secs());
    CellFailure { place, what, detail: detail.to_owned() }
}

/// The first error of the compiler with its line in the cell; the others after it.
fn compile_failure(errors: &[CompilationError], cell: Option<&CodeCell>) -> CellFailure {
    let mut place = None;
    let mut detail = String::new();
    for error in errors {
        let code = error.code().map(|code| format!("[{code}]")).unwrap_or_default();
        detail += &format!("error{code}: {}\n", error.message());
        let Some(message) = error.primary_spanned_message() else { continue };
        let Some((span, cell)) = message.span.as_ref().zip(cell) else { continue };
        place = place.or(Some((cell.number, span.start_line)));
        if let Some(line) = cell.source.lines().nth(span.start_line - 1) {
            let width = if span.end_line == span.start_line { span.end_column - span.start_column } else { 1 };
            let (indent, carets) = (" ".repeat(span.start_column.saturating_sub(1)), "^".repeat(width.max(1)));
            detail += &format!("{:>4} | {line}\n     | {indent}{carets} {}\n", span.start_line, message.label);
        }
    }
    CellFailure { place, what: "does not compile".to_owned(), detail: detail.trim_end().to_owned() }
}

/// Takes lines off a channel as they come; evcxr waits until the channel is empty.
struct Pump(Arc<Mutex<Vec<String>>>);

impl Pump {
    fn start(receiver: Receiver<String>) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&lines);
        std::thread::spawn(move || {
            loop {
                let mut select = Select::new();
                select.recv(&receiver);
                select.ready();
                // Taken off under the lock: a line is either still in the channel or already among the lines.
                let mut lines = shared.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    match receiver.try_recv() {
                        Ok(line) => lines.push(line),
                        Err(crossbeam_channel::TryRecvError::Empty) => break,
                        Err(crossbeam_channel::TryRecvError::Disconnected) => return,
                    }
                }
            }
        });
        Self(lines)
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines())
    }
}
