//! The arbiter's score as a table, a figure and a few lines.

use super::figure::{DetectorBar, Figure, arbiter as draw};
use super::{ReportError, Table};
use crate::arbiter::faults::{CURVE, Counts, Kind, Score};
use crate::statistics::wilson;
use std::fmt::Write;

/// The kinds in the order of the corpus, healthy models and wrong data last.
fn kinds() -> impl Iterator<Item = Kind> {
    Kind::IN_SCOPE.into_iter().chain([Kind::Data, Kind::Healthy])
}

fn share(count: usize, of: usize) -> String {
    if of == 0 { "not measured".to_owned() } else { format!("{count} of {of}") }
}

/// One row a kind: cases, trials, and how many each check flagged.
pub fn table(score: &Score) -> Table {
    let header = ["kind", "cases", "trials", "arbiter", "presence only", "loss curve", "questions that failed"];
    let mut table = Table::new("arbiter", &header);
    let mut push = |name: &str, (cases, trials, arbiter, presence, curve): Counts, questions: String| {
        table.push(vec![
            name.to_owned(),
            cases.to_string(),
            trials.to_string(),
            share(arbiter, trials),
            share(presence, trials),
            share(curve, trials),
            questions,
        ]);
    };
    for kind in kinds() {
        let cases = score.cases.iter().filter(|case| case.kind == kind);
        let mut questions: Vec<_> = cases.flat_map(|case| case.questions.iter()).collect();
        questions.sort();
        questions.dedup();
        let questions: Vec<String> = questions.iter().map(ToString::to_string).collect();
        push(kind.name(), score.of(kind), questions.join(", "));
    }
    push("all in scope", score.in_scope(), String::new());
    table
}

/// What each check flagged of each kind, drawn.
///
/// # Errors
/// [`ReportError`] when there is nothing to draw.
pub fn figure(score: &Score) -> Result<Figure, ReportError> {
    let bar = |kind: Kind| {
        let (cases, trials, arbiter, presence, curve) = score.of(kind);
        DetectorBar { kind: kind.name().to_owned(), cases, trials, arbiter, presence, curve }
    };
    let bars: Vec<DetectorBar> = kinds().map(bar).collect();
    let caption = format!(
        "{} faults, {} healthy models ({} to {} parameters), {} seeds. Loss curve: {} steps, not finite or not falling. Lines: 95 %.",
        score.in_scope().0 + score.of(Kind::Data).0,
        score.of(Kind::Healthy).0,
        score.sizes[0],
        score.sizes[1],
        score.seeds,
        CURVE
    );
    draw(&bars, &caption)
}

/// A share with its interval, in per cent.
fn percent(hits: usize, trials: usize) -> String {
    let [low, high] = wilson(hits, trials).map(|share| 100.0 * share);
    format!("{:.1} % [{low:.1}, {high:.1}]", 100.0 * hits as f64 / trials.max(1) as f64)
}

/// Catch rate and false alarms in words.
pub fn headline(score: &Score) -> String {
    let (cases, trials, caught, ..) = score.in_scope();
    let (models, healthy, alarms, ..) = score.of(Kind::Healthy);
    format!(
        "caught {caught} of {trials} trials of {cases} faults in scope ({}); {alarms} false alarms in {healthy} trials of {models} healthy models ({}); {} seeds\n",
        percent(caught, trials),
        percent(alarms, healthy),
        score.seeds
    )
}

/// Catch rate, false alarms and cost in words.
pub fn summary(score: &Score) -> String {
    let mut text = headline(score);
    let _ = writeln!(
        text,
        "an inquiry takes {:.0} ms here, as long as {:.0} training steps of the same model (medians)",
        1e3 * score.seconds,
        score.steps
    );
    for (what, cases) in [("missed", score.missed()), ("false alarm", score.false_alarms())] {
        for case in cases {
            let count = if what == "missed" { case.seeds - case.arbiter } else { case.arbiter };
            let _ = writeln!(text, "{what} at {count} of {} seeds: {}, {}", case.seeds, case.family, case.title);
            let _ = write!(text, "{}", case.surprise.as_deref().unwrap_or(""));
        }
    }
    text
}
