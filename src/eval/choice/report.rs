//! Accuracy against chance, with its interval, its test and its control.

use super::{Item, Scores};
use crate::rng::Stream;
use crate::statistics::{exact_test, shuffle_test, wilson};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An accuracy differs from chance when a difference as large is less likely than this under chance.
pub const LEVEL: f64 = 0.05;

/// Times that the control draws its answers.
const DRAWS: usize = 1000;

/// How often the right choice was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// Questions answered right.
    pub correct: usize,
    /// Share of the questions.
    pub accuracy: f64,
    /// 95 % interval of the share (Wilson).
    pub interval: [f64; 2],
    /// Exact two-sided probability of a result as unlikely as this when each choice is equally likely.
    pub p_value: f64,
    /// Whether that probability is at least 5 %.
    pub at_chance: bool,
    /// Two-sided probability of so many hits when the answers are shuffled between the questions: large for
    /// a model that always gives the same position, whatever its accuracy.
    pub p_shuffled: f64,
}

/// The same choices against answers drawn at random, many times: at chance, whatever the model knows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Times that answers were drawn.
    pub draws: usize,
    /// Mean accuracy.
    pub mean: f64,
    /// 2.5 % of the draws lie below and above.
    pub range: [f64; 2],
    /// Whether the line of chance lies in that range, and the mean within four of its standard errors of it.
    pub at_chance: bool,
}

/// One way of scoring, and its control.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scoring {
    /// Against the right answers.
    pub gold: Accuracy,
    /// Against answers drawn at random.
    pub drawn: Control,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskReport {
    /// Its name.
    pub task: String,
    /// Questions it has.
    pub available: usize,
    /// Questions asked, drawn by the seed.
    pub items: usize,
    /// Mean of 1/choices over the questions asked.
    pub chance: f64,
    /// Accuracy of always giving the position that is right most often.
    pub majority: f64,
    /// By the sum of the log-probabilities.
    pub by_sum: Scoring,
    /// By the sum divided by the characters of the choice.
    pub by_character: Scoring,
    /// Training documents that share a window of words with the task's text, after the corpus was cleaned.
    pub contaminated_documents: u64,
}

/// The content of `choice.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceReport {
    /// Questions of each task, at most.
    pub limit: usize,
    /// Seed that drew the questions and the control's answers.
    pub seed: u64,
    /// Words of the windows that were looked for in the training text.
    pub window: usize,
    /// Training documents that were dropped for such a window, of this text or any other that is measured
    /// on; none when the corpus does not protect evaluation text.
    pub dropped_documents: Option<u64>,
    /// The tasks, in the order of the recipe.
    pub tasks: Vec<TaskReport>,
}

/// Indices of the questions asked: `limit` of `available` at most, drawn by the seed, in their order.
pub(crate) fn drawn(available: usize, limit: usize, seed: u64, task: &str) -> Vec<usize> {
    let stream = Stream::new(seed, &format!("questions of {task}"));
    let count = available as u64;
    let mut picks: Vec<usize> = (0..count.min(limit as u64)).map(|i| stream.permute(i, count) as usize).collect();
    picks.sort_unstable();
    picks
}

/// Judges the scores of the questions asked.
pub fn judge(
    task: &str,
    available: usize,
    items: &[Item],
    scores: &[Scores],
    contaminated_documents: u64,
    seed: u64,
) -> TaskReport {
    let chances: Vec<f64> = items.iter().map(|item| 1.0 / item.choices.len() as f64).collect();
    let gold: Vec<usize> = items.iter().map(|item| item.gold).collect();
    let stream = Stream::new(seed, &format!("answers of {task}"));
    let scoring = |column: fn(&Scores) -> &[f64]| {
        let chosen: Vec<usize> = scores.iter().map(|scores| best(column(scores))).collect();
        Scoring { gold: accuracy(&chosen, &gold, &chances), drawn: control(&chosen, items, &stream) }
    };
    let mut positions: BTreeMap<usize, usize> = BTreeMap::new();
    gold.iter().for_each(|position| *positions.entry(*position).or_default() += 1);
    let count = items.len().max(1) as f64;
    TaskReport {
        task: task.to_owned(),
        available,
        items: items.len(),
        chance: chances.iter().sum::<f64>() / count,
        majority: positions.values().copied().max().unwrap_or(0) as f64 / count,
        by_sum: scoring(|scores| &scores.sums),
        by_character: scoring(|scores| &scores.by_character),
        contaminated_documents,
    }
}

/// Index of the largest score; the first of equal ones.
fn best(scores: &[f64]) -> usize {
    (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

fn accuracy(chosen: &[usize], answers: &[usize], chances: &[f64]) -> Accuracy {
    let correct = chosen.iter().zip(answers).filter(|(a, b)| a == b).count();
    let p_value = exact_test(chances, correct);
    Accuracy {
        correct,
        accuracy: correct as f64 / chosen.len().max(1) as f64,
        interval: wilson(correct, chosen.len()),
        p_value,
        at_chance: p_value >= LEVEL,
        p_shuffled: shuffle_test(chosen, answers),
    }
}

fn control(chosen: &[usize], items: &[Item], stream: &Stream) -> Control {
    let count = items.len().max(1) as f64;
    let draw = |r: usize| {
        let answer = |i: usize| stream.below((r * items.len() + i) as u64, items[i].choices.len() as u64) as usize;
        chosen.iter().enumerate().filter(|(i, choice)| answer(*i) == **choice).count() as f64 / count
    };
    let mut shares: Vec<f64> = (0..DRAWS).map(draw).collect();
    shares.sort_by(f64::total_cmp);
    let at = |q: f64| shares[(q * (DRAWS - 1) as f64).round() as usize];
    let (mean, range) = (shares.iter().sum::<f64>() / DRAWS as f64, [at(0.025), at(0.975)]);
    let chances = items.iter().map(|item| 1.0 / item.choices.len() as f64);
    let chance = chances.clone().sum::<f64>() / count;
    let error = (chances.map(|p| p * (1.0 - p)).sum::<f64>() / (count * count * DRAWS as f64)).sqrt();
    let at_chance = range[0] <= chance && chance <= range[1] && (mean - chance).abs() <= 4.0 * error;
    Control { draws: DRAWS, mean, range, at_chance }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` questions of four choices; the right one is the first, and has the best sum.
    fn known(count: usize) -> (Vec<Item>, Vec<Scores>) {
        let item = Item::shared("q".to_owned(), ["a", "b", "c", "d"].map(str::to_owned), 0);
        let scores = Scores { sums: vec![-1.0, -2.0, -3.0, -4.0], by_character: vec![-4.0, -3.0, -2.0, -2.0] };
        (vec![item; count], vec![scores; count])
    }

    #[test]
    fn what_is_known_differs_from_chance_and_its_control_does_not() {
        let (items, scores) = known(200);
        let report = judge("t", 300, &items, &scores, 0, 17);
        assert_eq!((report.items, report.available, report.chance, report.majority), (200, 300, 0.25, 1.0));
        let sum = report.by_sum;
        assert_eq!((sum.gold.correct, sum.gold.accuracy, sum.gold.at_chance), (200, 1.0, false));
        assert!(sum.drawn.at_chance && (sum.drawn.mean - 0.25).abs() < 0.005, "{sum:?}");
        assert!(sum.drawn.range[0] > 0.16 && sum.drawn.range[1] < 0.34, "{sum:?}");
        assert_eq!(report.by_character.gold.correct, 0, "the third of two equal ones was taken");
        assert_eq!(sum.gold.p_shuffled, 1.0, "always the first: right, and without a choice");
        assert!(!report.by_character.gold.at_chance, "never right is not chance either");
    }

    #[test]
    fn the_control_is_at_chance_under_every_seed() {
        let (items, scores) = known(20);
        assert!((0..200).all(|seed| judge("t", 20, &items, &scores, 0, seed).by_sum.drawn.at_chance));
    }

    #[test]
    fn questions_are_drawn_by_the_seed_without_repetition() {
        let picks = drawn(1000, 50, 17, "piqa");
        assert_eq!(picks.len(), 50);
        assert!(picks.windows(2).all(|pair| pair[0] < pair[1]) && picks[49] > 500, "{picks:?}");
        assert_ne!(picks, drawn(1000, 50, 18, "piqa"));
        assert_ne!(picks, drawn(1000, 50, 17, "copa"));
        assert_eq!(drawn(3, 50, 17, "piqa"), [0, 1, 2]);
    }
}
