//! Which of the arbiter's questions catches a defect, by asking.

use super::entry::{Check, Entry};
use super::probe;
use crate::arbiter::candle::Model;
use crate::arbiter::{Question, Verdict};
use candle_core::Var;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// What the arbiter said of one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "of", rename_all = "kebab-case")]
pub enum Answer {
    /// It asked, and these questions found something; none where none did.
    Asked(Caught),
    /// It would not go on with the model, in its own words.
    Refused(String),
    /// There is nothing to ask here: what it takes.
    NotHere(String),
    /// The process ended before it could answer, with its last words.
    Ended(String),
}

/// Findings in short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caught {
    /// The questions that found something, in the order they are asked.
    pub questions: Vec<Question>,
    /// The parameters they name, with the question.
    pub findings: Vec<String>,
    /// Where the graph was cut and what to use instead.
    pub cut: Option<String>,
}

impl Answer {
    /// What the arbiter said when it was asked: its findings, or why it would not go on.
    pub fn of(judged: Result<Verdict, impl Display>) -> Self {
        let verdict = match judged {
            Err(error) => return Answer::Refused(error.to_string().lines().next().unwrap_or_default().to_owned()),
            Ok(verdict) => verdict,
        };
        let questions = Question::ALL.into_iter().filter(|question| verdict.failed(*question)).collect();
        let mut findings: Vec<String> =
            verdict.findings.iter().map(|f| format!("{} ({})", f.parameter, f.question)).collect();
        findings.dedup();
        Answer::Asked(Caught { questions, findings, cut: verdict.cut })
    }

    /// Whether the arbiter would have stopped the run.
    pub fn caught(&self) -> bool {
        match self {
            Answer::Asked(caught) => !caught.questions.is_empty(),
            Answer::Refused(_) => true,
            Answer::NotHere(_) | Answer::Ended(_) => false,
        }
    }

    /// In a few words: the questions, `none`, or why there is no answer.
    pub fn short(&self) -> String {
        match self {
            Answer::Asked(caught) if caught.questions.is_empty() => "none".to_owned(),
            Answer::Asked(caught) => caught.questions.iter().map(Question::to_string).collect::<Vec<_>>().join(", "),
            Answer::Refused(why) => format!("refused: {why}"),
            Answer::NotHere(_) => "not run here".to_owned(),
            Answer::Ended(how) => format!("none: {how}"),
        }
    }
}

impl Entry {
    /// Puts a model with the defect (`true`) or with the workaround before the arbiter.
    ///
    /// # Errors
    /// When the model cannot be made.
    pub fn ask(&self, defective: bool) -> candle_core::Result<Answer> {
        match self.check {
            Check::Gradient { defect, control, input } => {
                let (op, x) = (if defective { defect } else { control }, Var::from_tensor(&input()?)?);
                let inner = x.as_tensor().clone();
                let loss = move |_: &[_]| probe::loss(&op, &inner);
                Ok(Answer::of(Model::from_vars(vec![("x".to_owned(), x)], Vec::new(), loss).judge()))
            }
            Check::Shown { model, .. } => Ok(Answer::of(model(defective)?.judge())),
            Check::Elsewhere(what) => Ok(Answer::NotHere(what.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_short() {
        let none = Answer::Asked(Caught::default());
        assert!(none.short() == "none" && !none.caught());
        let questions = vec![Question::Present, Question::Right];
        let caught = Answer::Asked(Caught { questions, ..Caught::default() });
        assert!(caught.short() == "present, right" && caught.caught());
        assert!(Answer::Refused("rank 1".to_owned()).caught());
        assert!(!Answer::NotHere("a GPU".to_owned()).caught());
    }
}
