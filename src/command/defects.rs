//! `shikha defects`: the catalogue, run.

use clap::Args;
use shikha::defects::{Entry, Limits, Outcome, Verdict, catalogue, run_all};
use shikha::progress::Progress;
use shikha::report::Table;
use std::error::Error;
use std::time::Duration;

/// Which entries, and how.
#[derive(Args)]
pub struct DefectsArgs {
    /// One entry only
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// Seconds that one check may take
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// MiB of address space that one check may take
    #[arg(long, default_value_t = 4096)]
    memory: u64,
    /// Print the results as JSON lines
    #[arg(long)]
    json: bool,
    /// Run one check in this process and print its verdict
    #[arg(long, hide = true, value_name = "ID")]
    child: Option<String>,
    /// With --child: the control
    #[arg(long, hide = true)]
    control: bool,
}

impl DefectsArgs {
    /// Runs the catalogue, each check in a process of its own, and prints the table.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        if let Some(id) = &self.child {
            let entry = find(id)?;
            let verdict = if self.control { (entry.control)()? } else { (entry.reproduce)()? };
            println!("{}", serde_json::to_string(&verdict)?);
            return Ok(());
        }
        let entries = match &self.only {
            Some(id) => vec![find(id)?],
            None => catalogue(),
        };
        let limits = Limits { time: Duration::from_secs(self.seconds), memory: self.memory };
        let mut progress = Progress::new("defects", entries.len() as u64, "entries");
        let mut table = Table::new("defects", &["entry", "what happens", "kind", "verdict", "evidence", "control"]);
        let mut lines = String::new();
        let mut dirty = Vec::new();
        run_all(&std::env::current_exe()?, &entries, limits, |entry, check, control| {
            progress.advance(1, entry.id);
            if control.shows() {
                dirty.push(entry.id);
            }
            table.push(row(entry, check, control));
            lines += &format!(
                "{}\n",
                serde_json::json!({ "id": entry.id, "kind": entry.kind, "check": check, "control": control })
            );
        });
        progress.finish(&format!("{} entries", entries.len()));
        print!("{}", if self.json { lines } else { table.to_text(150) });
        if dirty.is_empty() { Ok(()) } else { Err(format!("a control is not clean: {}", dirty.join(", ")).into()) }
    }
}

fn find(id: &str) -> Result<Entry, String> {
    let entries = catalogue();
    let known = || entries.iter().map(|e| e.id).collect::<Vec<_>>().join(", ");
    entries
        .iter()
        .find(|e| e.id == id)
        .copied()
        .ok_or_else(|| format!("there is no entry called `{id}`: use {}", known()))
}

fn row(entry: &Entry, check: &Outcome, control: &Outcome) -> Vec<String> {
    let verdict = match check {
        Outcome::Verdict(Verdict::Absent(_)) => "absent",
        Outcome::Verdict(Verdict::NeedsHardware(_)) => "needs hardware",
        _ => "present",
    };
    let clean = match control {
        Outcome::Verdict(Verdict::NeedsHardware(_)) => "needs hardware".to_owned(),
        control if control.shows() => format!("NOT CLEAN: {}", control.evidence()),
        _ => format!("clean: {}", entry.workaround),
    };
    let kind = serde_json::to_value(entry.kind).ok().and_then(|k| k.as_str().map(str::to_owned)).unwrap_or_default();
    vec![entry.id.to_owned(), entry.title.to_owned(), kind, verdict.to_owned(), check.evidence().to_owned(), clean]
}
