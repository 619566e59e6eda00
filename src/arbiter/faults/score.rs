//! The corpus over many seeds: catch rate by kind, false alarms, cost.

use super::case::{Case, Kind, faults, healthy_models};
use super::trial::{self, Trial};
use crate::arbiter::{ModelFault, Question};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What came of one case over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseScore {
    /// What is wrong.
    pub title: String,
    /// What sort of fault.
    pub kind: Kind,
    /// The model.
    pub family: String,
    /// Seeds tried.
    pub seeds: usize,
    /// Seeds at which the arbiter raised a finding of a parameter that the fault touches; for a healthy model, any.
    pub arbiter: usize,
    /// Seeds at which the presence check alone did.
    pub presence: usize,
    /// Seeds at which the loss curve looked ill by the stated rule.
    pub curve: usize,
    /// Questions that failed at some seed.
    pub questions: BTreeSet<Question>,
    /// What the arbiter said where it missed or raised a false alarm, at the first such seed.
    pub surprise: Option<String>,
}

/// The whole score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Seeds a case.
    pub seeds: usize,
    /// Parameters of the smallest and the largest model.
    pub sizes: [usize; 2],
    /// Every case, in the corpus's order.
    pub cases: Vec<CaseScore>,
    /// Median seconds of a whole inquiry.
    pub seconds: f64,
    /// Median cost of an inquiry in training steps of the same model.
    pub steps: f64,
}

/// Counts over all cases of a kind: `(cases, trials, arbiter, presence, curve)`.
pub type Counts = (usize, usize, usize, usize, usize);

impl Score {
    /// Totals of a kind.
    pub fn of(&self, kind: Kind) -> Counts {
        let cases = self.cases.iter().filter(|case| case.kind == kind);
        cases.fold((0, 0, 0, 0, 0), |(n, trials, a, p, c), case| {
            (n + 1, trials + case.seeds, a + case.arbiter, p + case.presence, c + case.curve)
        })
    }

    /// Totals of every kind that is in scope.
    pub fn in_scope(&self) -> Counts {
        Kind::IN_SCOPE
            .iter()
            .map(|kind| self.of(*kind))
            .fold((0, 0, 0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3 + b.3, a.4 + b.4))
    }

    /// Faults in scope that were missed at one seed or more.
    pub fn missed(&self) -> Vec<&CaseScore> {
        let in_scope = |case: &&CaseScore| Kind::IN_SCOPE.contains(&case.kind);
        self.cases.iter().filter(in_scope).filter(|case| case.arbiter < case.seeds).collect()
    }

    /// Healthy models that raised an alarm at one seed or more.
    pub fn false_alarms(&self) -> Vec<&CaseScore> {
        self.cases.iter().filter(|case| case.kind == Kind::Healthy && case.arbiter > 0).collect()
    }
}

/// Puts every case at seeds `0..seeds` before the arbiter; `done` is called after each case.
///
/// # Errors
/// When a model of the corpus fails.
pub fn score(seeds: usize, done: impl Fn(&CaseScore) + Sync) -> Result<Score, ModelFault> {
    let cases: Vec<Case> = healthy_models().into_iter().chain(faults()).collect();
    let run = |case: &Case| -> Result<(CaseScore, Vec<Trial>), ModelFault> {
        let trials = (0..seeds as u64).map(|seed| trial::run(case, seed)).collect::<Result<Vec<_>, _>>()?;
        let score = summarise(case, &trials);
        done(&score);
        Ok((score, trials))
    };
    let results = cases.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
    let trials: Vec<&Trial> = results.iter().flat_map(|(_, trials)| trials).collect();
    let seconds = median(trials.iter().map(|t| t.seconds).collect());
    let steps = median(trials.iter().map(|t| t.seconds / t.step_seconds).collect());
    let sizes = cases.iter().map(|case| case.family.parameters());
    let sizes = [sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0)];
    Ok(Score { seeds, sizes, cases: results.into_iter().map(|(score, _)| score).collect(), seconds, steps })
}

fn summarise(case: &Case, trials: &[Trial]) -> CaseScore {
    let count = |said: fn(&Trial) -> bool| trials.iter().filter(|trial| said(trial)).count();
    let wanted = case.kind != Kind::Healthy;
    let surprise = trials.iter().find(|trial| trial.arbiter != wanted && case.kind != Kind::Data);
    CaseScore {
        title: case.title.to_owned(),
        kind: case.kind,
        family: case.family.name.to_owned(),
        seeds: trials.len(),
        arbiter: count(|t| t.arbiter),
        presence: count(|t| t.presence),
        curve: count(|t| t.curve),
        questions: trials.iter().flat_map(|t| t.questions.clone()).collect(),
        surprise: surprise.map(|trial| trial.verdict.report()),
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How many cases of each kind the corpus has.
pub fn census() -> BTreeMap<Kind, usize> {
    let mut census = BTreeMap::new();
    for case in healthy_models().iter().chain(&faults()) {
        *census.entry(case.kind).or_insert(0) += 1;
    }
    census
}
