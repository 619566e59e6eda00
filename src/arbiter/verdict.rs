//! What the arbiter found.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// What was asked of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Is there a gradient for every trainable parameter, of its shape, and none for frozen ones?
    Present,
    /// Is every number of it finite?
    Finite,
    /// Is it non-zero, as a whole and in every row?
    NonZero,
    /// Does it agree with a finite difference of the loss?
    Right,
    /// Did the optimizer move what it should, by a plausible amount, and nothing else?
    Applied,
    /// Does the same probe give the same bits?
    Repeatable,
}

impl Question {
    /// All of them, in the order they are asked.
    pub const ALL: [Question; 6] = [
        Question::Present,
        Question::Finite,
        Question::NonZero,
        Question::Right,
        Question::Repeatable,
        Question::Applied,
    ];
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Question::Present => "present",
            Question::Finite => "finite",
            Question::NonZero => "non-zero",
            Question::Right => "right",
            Question::Applied => "applied",
            Question::Repeatable => "repeatable",
        })
    }
}

/// One failed question, or a remark on one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The parameter.
    pub parameter: String,
    /// The question.
    pub question: Question,
    /// The numbers that show it.
    pub evidence: String,
}

/// Passes the arbiter made, for its cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Forward passes alone.
    pub forward: u64,
    /// Forward and backward passes.
    pub backward: u64,
    /// Training steps.
    pub steps: u64,
}

/// The whole answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Parameters that were shown.
    pub parameters: usize,
    /// Numbers in their gradients.
    pub numbers: u64,
    /// Every failed question, in the order of the questions and parameters.
    pub findings: Vec<Finding>,
    /// Norm of each gradient on the first pass, in the order of the parameters; null when not finite or missing.
    pub norms: Vec<(String, Option<f64>)>,
    /// Questions that were asked.
    #[serde(default)]
    pub asked: Vec<Question>,
    /// Remarks that fail nothing: rows the probe leaves inactive, directions at a kink.
    #[serde(default)]
    pub notes: Vec<Finding>,
    /// Where the graph was cut and what to use instead, when the adapter can tell.
    #[serde(default)]
    pub cut: Option<String>,
    /// Passes made.
    #[serde(default)]
    pub cost: Cost,
}

impl Verdict {
    /// Whether every parameter passed and there was one at all.
    pub fn passed(&self) -> bool {
        self.findings.is_empty() && self.parameters > 0
    }

    /// Whether `question` found something.
    pub fn failed(&self, question: Question) -> bool {
        self.findings.iter().any(|f| f.question == question)
    }

    /// The answer for a reader: one line when all is well, else one line a finding, then the cut,
    /// the remarks and what was not asked.
    pub fn report(&self) -> String {
        if self.parameters == 0 && self.findings.is_empty() {
            return "arbiter: no parameter was shown, so nothing was checked\n".to_owned();
        }
        let (count, numbers) = (self.parameters, self.numbers);
        let mut text = if self.findings.is_empty() {
            let asked: Vec<String> = self.asked.iter().map(Question::to_string).collect();
            format!("arbiter: {count} parameters, {numbers} numbers: every gradient {}\n", asked.join(", "))
        } else {
            format!("arbiter: {} findings in {count} parameters\n", self.findings.len())
        };
        for finding in &self.findings {
            let _ = writeln!(text, "  {} ({}): {}", finding.parameter, finding.question, finding.evidence);
        }
        if let Some(cut) = &self.cut {
            let _ = writeln!(text, "  the graph was cut: {cut}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "  note: {} ({}): {}", note.parameter, note.question, note.evidence);
        }
        let missing = Question::ALL.iter().filter(|q| !self.asked.contains(q));
        let missing: Vec<String> = missing.map(Question::to_string).collect();
        if !missing.is_empty() {
            let _ = writeln!(text, "  not asked: {} (the adapter gives no way to)", missing.join(", "));
        }
        text
    }
}
