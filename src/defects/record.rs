//! One entry with everything that its runs found, and the file that keeps them.

use super::caught::Answer;
use super::curve::Curves;
use super::entry::{Entry, Kind, Verdict};
use super::isolate::{Limits, Outcome, run_child};
use candle_core::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The version of Candle that the catalogue is of.
pub const CANDLE: &str = "0.11.1";

/// What one child does with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// The check.
    Check,
    /// The control.
    Control,
    /// The arbiter on a model with the defect.
    Arbiter,
    /// The arbiter on the same model with the workaround.
    ArbiterControl,
    /// The training runs.
    Curves,
}

impl Aspect {
    /// All of them.
    pub const ALL: [Aspect; 5] =
        [Aspect::Check, Aspect::Control, Aspect::Arbiter, Aspect::ArbiterControl, Aspect::Curves];

    /// The aspect of this name on the command line.
    pub fn named(name: &str) -> Option<Self> {
        Aspect::ALL.into_iter().find(|aspect| aspect.name() == name)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Aspect::Check => "check",
            Aspect::Control => "control",
            Aspect::Arbiter => "arbiter",
            Aspect::ArbiterControl => "arbiter-control",
            Aspect::Curves => "curves",
        }
    }

    /// Runs it in this process and gives what it found as JSON.
    ///
    /// # Errors
    /// When the framework refuses an op.
    pub fn run(self, entry: &Entry) -> Result<String> {
        let json = match self {
            Aspect::Check => serde_json::to_string(&entry.reproduce()?),
            Aspect::Control => serde_json::to_string(&entry.control()?),
            Aspect::Arbiter => serde_json::to_string(&entry.ask(true)?),
            Aspect::ArbiterControl => serde_json::to_string(&entry.ask(false)?),
            Aspect::Curves => serde_json::to_string(&entry.would_the_loss_curve_show_it()?),
        };
        json.map_err(candle_core::Error::wrap)
    }
}

/// What a run needs to know of an entry, of whichever framework.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Name on the command line.
    pub id: String,
    /// What happens, in one line.
    pub title: String,
    /// The harm.
    pub kind: Kind,
    /// The place of its class in our reading of the abstract.
    #[serde(skip)]
    pub place: Option<usize>,
}

impl From<&Entry> for Listed {
    fn from(entry: &Entry) -> Self {
        let place = entry.reading.map(|reading| reading.place);
        Listed { id: entry.id.to_owned(), title: entry.title.to_owned(), kind: entry.kind, place }
    }
}

/// The program that runs one aspect of one entry, called as `program ARGUMENTS --child ID --aspect NAME`.
#[derive(Debug, Clone, Copy)]
pub struct Runner<'a> {
    /// The program.
    pub program: &'a Path,
    /// What comes before the entry.
    pub arguments: &'a [&'a str],
    /// What each child may use.
    pub limits: Limits,
}

impl<'a> Runner<'a> {
    /// Candle's entries: `program` is this command.
    pub fn candle(program: &'a Path, limits: Limits) -> Self {
        Runner { program, arguments: &["defects", "--watched"], limits }
    }

    /// How the check and the control of an entry end.
    pub fn pair(self, id: &str) -> [Outcome; 2] {
        [Aspect::Check, Aspect::Control].map(|aspect| Outcome::from(self.child::<Verdict>(id, aspect)))
    }

    fn child<T: DeserializeOwned>(self, id: &str, aspect: Aspect) -> std::result::Result<T, String> {
        let own = ["--child", id, "--aspect", aspect.name()];
        run_child(self.program, &[self.arguments, &own].concat(), self.limits)
    }
}

/// What the runs of one entry found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// [`Entry::id`].
    pub id: String,
    /// [`Entry::title`].
    pub title: String,
    /// [`Entry::kind`].
    pub kind: Kind,
    /// The place of its class among the abstract's five, in our reading.
    pub reading: Option<usize>,
    /// The check.
    pub check: Outcome,
    /// The control; must be clean.
    pub control: Outcome,
    /// What the arbiter says of a model with the defect.
    pub arbiter: Answer,
    /// What it says of the same model with the workaround; must be nothing.
    pub arbiter_control: Answer,
    /// What a loss curve gives away.
    pub curves: Curves,
}

impl Record {
    /// Runs every aspect of `entry`, each in a process of its own.
    pub fn of(runner: Runner, entry: &Listed) -> Self {
        let answer = |aspect| runner.child(&entry.id, aspect).unwrap_or_else(Answer::Ended);
        let [check, control] = runner.pair(&entry.id);
        Record {
            id: entry.id.clone(),
            title: entry.title.clone(),
            kind: entry.kind,
            reading: entry.place,
            check,
            control,
            arbiter: answer(Aspect::Arbiter),
            arbiter_control: answer(Aspect::ArbiterControl),
            curves: runner.child(&entry.id, Aspect::Curves).unwrap_or_else(|why| Curves::None { why }),
        }
    }

    /// `present`, `absent` or `needs hardware`.
    pub fn verdict(&self) -> &'static str {
        match &self.check {
            Outcome::Verdict(Verdict::Absent(_)) => "absent",
            Outcome::Verdict(Verdict::NeedsHardware(_)) => "not run here",
            _ => "present",
        }
    }

    /// Whether control and workaround come out clean, or cannot run here.
    pub fn clean(&self) -> bool {
        !self.control.shows() && !self.arbiter_control.caught()
    }
}

/// Runs every aspect of every entry and hands over each record as soon as it is whole; gives all of them in
/// the order of `entries`. As many entries run at once as the machine has cores.
pub fn run_all(runner: Runner, entries: &[Listed], done: impl FnMut(&Record) + Send) -> Vec<Record> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(done));
    let records: Vec<Mutex<Option<Record>>> = entries.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((i, entry)) = take(&next, entries) {
                    let record = Record::of(runner, entry);
                    done.lock().unwrap_or_else(|p| p.into_inner())(&record);
                    *records[i].lock().unwrap_or_else(|p| p.into_inner()) = Some(record);
                }
            });
        }
    });
    records.into_iter().filter_map(|record| record.into_inner().unwrap_or_else(|p| p.into_inner())).collect()
}

fn take<'a>(next: &AtomicUsize, entries: &'a [Listed]) -> Option<(usize, &'a Listed)> {
    let i = next.fetch_add(1, Ordering::Relaxed);
    entries.get(i).map(|entry| (i, entry))
}

/// The records of one run of the whole catalogue, as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcomes {
    /// The framework.
    pub framework: String,
    /// Its version.
    pub version: String,
    /// Training steps of a curve.
    pub steps: usize,
    /// Seeds of a curve.
    pub seeds: u64,
    /// A record an entry.
    pub records: Vec<Record>,
}

impl Outcomes {
    /// Defects that are present and whose training run gives nothing away on its own.
    pub fn silent(&self) -> usize {
        self.records.iter().filter(|r| r.verdict() == "present" && r.curves.silent()).count()
    }

    /// Those of them that the arbiter catches.
    pub fn caught(&self) -> usize {
        let caught = |r: &&Record| r.verdict() == "present" && r.curves.silent() && r.arbiter.caught();
        self.records.iter().filter(caught).count()
    }
}
