//! Multiple choice for a reader: the table, what the figure shows, and the claim's number.

use super::figure::ChoiceRow;
use super::table::Table;
use crate::eval::choice::{Accuracy, ChoiceReport, Scoring, TaskReport};
use crate::statistics::Interval;

/// One row a task.
pub fn table(report: &ChoiceReport) -> Table {
    let header = [
        "task",
        "questions",
        "chance",
        "majority",
        "accuracy",
        "per character",
        "p, chance",
        "p, shuffled",
        "at chance",
        "control",
        "shared windows",
    ];
    let mut table = Table::new("choice", &header);
    for task in &report.tasks {
        let (sum, character, drawn) = (&task.by_sum, &task.by_character, &task.by_character.drawn);
        table.push(vec![
            task.task.clone(),
            format!("{} of {}", task.items, task.available),
            percent(task.chance),
            percent(task.majority),
            with_interval(&sum.gold),
            with_interval(&character.gold),
            both(sum, character, |gold| p_value(gold.p_value)),
            both(sum, character, |gold| p_value(gold.p_shuffled)),
            both(sum, character, |gold| yes(gold.at_chance).to_owned()),
            format!("{}, at chance: {}", spread(drawn.mean, drawn.range), yes(drawn.at_chance)),
            task.contaminated_documents.to_string(),
        ]);
    }
    table
}

/// What the columns of the table mean.
pub fn notes(report: &ChoiceReport) -> String {
    let dropped =
        report.dropped_documents.map_or("not measured: the corpus protects no evaluation text".to_owned(), |count| {
            format!("{count} training documents were dropped for a window shared with text that is measured on")
        });
    format!(
        "Accuracy in % by the sum of log-probabilities, and per character of the choice, with 95 % Wilson intervals; p of \
         the exact two-sided test against chance for both, and of so many hits when the right answers are shuffled \
         between the questions (a model that always gives one position differs from chance and not from that); majority: always the position that is right most often; \
         control: the same choices against answers drawn at random by seed {}, {} times, with the range of 95 % of the draws; shared windows: training documents that hold {} \
         words of the task in a row. Contamination: {dropped}.\n",
        report.seed,
        report.tasks.first().map_or(0, |task| task.by_sum.drawn.draws),
        report.window
    )
}

/// What the figure draws, in the order of the table.
pub fn rows(report: &ChoiceReport) -> Vec<ChoiceRow> {
    let mark = |accuracy: &Accuracy| (accuracy.accuracy, accuracy.interval);
    let row = |task: &TaskReport| ChoiceRow {
        task: task.task.clone(),
        items: task.items,
        chance: task.chance,
        majority: task.majority,
        by_sum: mark(&task.by_sum.gold),
        by_character: mark(&task.by_character.gold),
        control: (task.by_character.drawn.mean, task.by_character.drawn.range),
    };
    report.tasks.iter().map(row).collect()
}

/// Mean over the tasks of accuracy per character minus chance (by the sum a model that knows nothing prefers
/// short choices, which are wrong more often in some tasks), in percentage points, with the normal 95 % interval
/// of a mean of independent shares.
pub fn points_above_chance(report: &ChoiceReport) -> Option<Interval> {
    let tasks = report.tasks.iter().filter(|task| task.items > 0);
    let count = tasks.clone().count() as f64;
    let (difference, variance) = tasks.fold((0.0, 0.0), |(difference, variance), task| {
        let share = task.by_character.gold.accuracy;
        (difference + share - task.chance, variance + share * (1.0 - share) / task.items as f64)
    });
    let (value, half) = (100.0 * difference / count, 100.0 * 1.96 * f64::sqrt(variance) / count);
    (count > 0.0).then_some(Interval { value, low: value - half, high: value + half })
}

fn both(sum: &Scoring, character: &Scoring, cell: impl Fn(&Accuracy) -> String) -> String {
    format!("{} / {}", cell(&sum.gold), cell(&character.gold))
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn with_interval(accuracy: &Accuracy) -> String {
    spread(accuracy.accuracy, accuracy.interval)
}

fn spread(share: f64, [low, high]: [f64; 2]) -> String {
    format!("{} [{}, {}]", percent(share), percent(low), percent(high))
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

fn yes(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}
