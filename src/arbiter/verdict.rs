//! What the arbiter found.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What was asked of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// Is there a gradient for every trainable parameter, of its shape, and none for frozen ones?
    Present,
    /// Is every number of it finite?
    Finite,
    /// Is it non-zero, as a whole and in every row?
    NonZero,
}

/// One failed question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The parameter.
    pub parameter: String,
    /// The question it failed.
    pub question: Question,
    /// The numbers that show it.
    pub evidence: String,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Parameters that were shown.
    pub parameters: usize,
    /// Numbers in their gradients.
    pub numbers: u64,
    /// Every failed question, in the order of the parameters.
    pub findings: Vec<Finding>,
    /// Norm of each gradient, in the order of the parameters.
    pub norms: Vec<(String, f64)>,
}

impl Verdict {
    /// Whether every parameter passed and there was one at all.
    pub fn passed(&self) -> bool {
        self.findings.is_empty() && self.parameters > 0
    }

    /// The answer for a reader: one line when all is well, else one line a finding.
    pub fn report(&self) -> String {
        if self.parameters == 0 {
            return "arbiter: no parameter was shown, so nothing was checked\n".to_owned();
        }
        let (count, numbers) = (self.parameters, self.numbers);
        if self.findings.is_empty() {
            return format!(
                "arbiter: {count} parameters, {numbers} numbers: every gradient present, finite, non-zero\n"
            );
        }
        let mut text = format!("arbiter: {} findings in {count} parameters\n", self.findings.len());
        for finding in &self.findings {
            let _ = writeln!(text, "  {}: {}", finding.parameter, finding.evidence);
        }
        text
    }
}
