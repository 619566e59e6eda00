//! The defect catalogue as a table, figures and a few lines.

use super::figure::{CurvePair, Figure, Tally, dead_parameters, taxonomy, versions};
use super::{Measured, ReportError, Table};
use crate::defects::{Curves, Found, Kind, Matrix, Outcome, Outcomes, Record, Verdict, catalogue};
use std::collections::BTreeMap;

/// One row an entry.
pub fn table(outcomes: &Outcomes) -> Table {
    let header = ["entry", "what happens", "kind", "verdict", "evidence", "loss curve shows it", "arbiter", "control"];
    let mut table = Table::new(&format!("{}-defects", outcomes.framework.to_lowercase()), &header);
    for record in &outcomes.records {
        table.push(vec![
            record.id.clone(),
            record.title.clone(),
            record.kind.to_string(),
            record.verdict().to_owned(),
            record.check.evidence().to_owned(),
            record.curves.short(),
            record.arbiter.short(),
            control(record),
        ]);
    }
    table
}

fn control(record: &Record) -> String {
    match (record.control.shows(), record.arbiter_control.caught()) {
        (true, _) => format!("NOT CLEAN: {}", record.control.evidence()),
        (_, true) => format!("NOT CLEAN: the arbiter: {}", record.arbiter_control.short()),
        _ if record.verdict() == "not run here" => "not run here".to_owned(),
        _ => format!("clean: {}", record.control.evidence()),
    }
}

/// How many of what.
pub fn summary(outcomes: &Outcomes) -> String {
    let of = |verdict: &str| outcomes.records.iter().filter(|r| r.verdict() == verdict).count();
    let (present, silent, caught) = (of("present"), outcomes.silent(), outcomes.caught());
    format!(
        "\n{} {}: {} entries, {present} present, {} absent, {} not run here.\n\
         {silent} of those present could be trained with ({} steps, {} seeds) and gave nothing away in the loss curve on \
         its own; the arbiter catches {caught} of these.\n",
        outcomes.framework,
        outcomes.version,
        outcomes.records.len(),
        of("absent"),
        of("not run here"),
        outcomes.steps,
        outcomes.seeds,
    )
}

/// What is drawn: the taxonomy, and loss curves that fall although parameters are dead.
///
/// # Errors
/// [`ReportError`] when there is nothing to draw.
pub fn figures(outcomes: &Outcomes) -> Result<Vec<Figure>, ReportError> {
    let scale = format!("{} {} on the CPU", outcomes.framework, outcomes.version);
    let tallies: Vec<Tally> = Kind::ALL.into_iter().filter_map(|kind| tally(outcomes, kind)).collect();
    let caption = format!(
        "{scale}; curves alone, and beside healthy runs: {} steps, {} seeds, at most a few thousand parameters.",
        outcomes.steps, outcomes.seeds
    );
    Ok(vec![taxonomy(&tallies, &caption)?, dead_parameters(&curve_pairs(outcomes), &caption)?])
}

/// The entries of one kind that are present, by what gives them away.
fn tally(outcomes: &Outcomes, kind: Kind) -> Option<Tally> {
    let of: Vec<&Record> = outcomes.records.iter().filter(|r| r.kind == kind && r.verdict() == "present").collect();
    let count = |test: &dyn Fn(&Record) -> bool| of.iter().filter(|r| test(r)).count();
    let asked = |question: &str| count(&|r| r.arbiter.short().split(", ").any(|q| q == question));
    (!of.is_empty()).then(|| Tally {
        kind: kind.to_string(),
        entries: of.len(),
        curve: count(&|r| matches!(&r.curves, Curves::Run { .. }) && !r.curves.silent()),
        beside: count(&|r| r.curves.short() == "only beside healthy runs"),
        presence: asked("present"),
        questions: ["finite", "non-zero", "right", "repeatable", "applied"].map(|q| (q, asked(q))).to_vec(),
        arbiter: count(&|r| r.arbiter.caught()),
    })
}

/// The entries whose parameters get no gradient, with their curves.
fn curve_pairs(outcomes: &Outcomes) -> Vec<CurvePair> {
    let of = |record: &Record| match &record.curves {
        Curves::Run { healthy, defective, .. } if record.kind == Kind::MissingGradient => Some(CurvePair {
            name: record.id.trim_start_matches("candle-").to_owned(),
            healthy: healthy.clone(),
            defective: defective.iter().map(|c| c.iter().map(|x| x.unwrap_or(f64::NAN)).collect()).collect(),
        }),
        _ => None,
    };
    outcomes.records.iter().filter_map(of).collect()
}

/// One row an entry, a column a version.
pub fn matrix_table(matrix: &Matrix) -> Table {
    let names = matrix.names();
    let header: Vec<&str> = ["entry"].into_iter().chain(names.iter().copied()).collect();
    let mut table = Table::new("defect-versions", &header);
    for entry in in_order(matrix) {
        let found = names.iter().map(|version| word(entry, matrix.found(entry, version)));
        table.push([entry.to_owned()].into_iter().chain(found).collect());
    }
    table
}

/// One row an entry and build, for checks and controls that are builds of their own: the one that the build is for.
pub fn attempts_table(matrix: &Matrix) -> Table {
    let mut table = Table::new("burn-fusion", &["entry", "build", "verdict", "what was seen"]);
    for entry in matrix.entries() {
        for build in matrix.names() {
            let Some(pair) = matrix.versions[build].entries.get(entry) else { continue };
            let other = |outcome: &Outcome| matches!(outcome, Outcome::Verdict(Verdict::NeedsHardware(_)));
            let seen = if other(&pair.check) { &pair.control } else { &pair.check };
            let word = match seen {
                seen if other(seen) => Found::NotHere.name(),
                seen if seen.shows() => Found::Present.name(),
                _ => Found::Absent.name(),
            };
            table.push([entry, build, word, seen.evidence()].map(str::to_owned).into());
        }
    }
    table
}

/// What was found, in a word; older versions of Burn are not asked everything, and not all of it can be written there.
fn word(entry: &str, found: Found) -> String {
    let unasked = found == Found::NoSuchOp && entry.starts_with("burn-");
    if unasked { "not asked" } else { found.name() }.to_owned()
}

/// The matrix, drawn.
///
/// # Errors
/// [`ReportError`] when there is nothing to draw.
pub fn matrix_figure(matrix: &Matrix) -> Result<Figure, ReportError> {
    let mut runs: Vec<String> = matrix.versions.values().map(|v| format!("{}, {}", v.date, v.toolchain)).collect();
    runs.dedup();
    versions(matrix, &in_order(matrix), &format!("Run on the CPU, the same checks for all: {}.", runs.join("; ")))
}

/// The entries of the matrix in the order of the catalogue.
fn in_order(matrix: &Matrix) -> Vec<&str> {
    let mut entries: Vec<&str> = matrix.entries().into_iter().collect();
    let catalogue = catalogue();
    entries.sort_by_key(|id| catalogue.iter().position(|entry| entry.id == *id));
    entries
}

/// What a run of the catalogue says to the claims.
pub fn measured(outcomes: &Outcomes, source: &str) -> BTreeMap<String, Measured> {
    let mut counts = vec![("candle-defects", outcomes.silent()), ("arbiter-failures", outcomes.caught())];
    if outcomes.framework == "Burn" {
        counts = vec![("burn-defects", outcomes.silent())];
    }
    let measured = |value: usize| Measured { value: value as f64, interval: None, source: source.to_owned() };
    counts.into_iter().map(|(id, count)| (id.to_owned(), measured(count))).collect()
}
