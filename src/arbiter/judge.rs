//! The questions in their order, cheapest first.

use super::{
    Expectation, Finding, ModelFault, Parameter, Question, Subject, Verdict, applied, presence, repeatable, right,
};

/// Which questions to ask, and how closely. The default asks everything the subject allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Questions {
    /// How to ask *right*; `None` leaves it out.
    pub right: Option<RightSettings>,
    /// Training steps to watch for *applied*; 0 leaves it out. Some defects look right at the first.
    pub steps: usize,
    /// Whether to ask *repeatable*.
    pub repeatable: bool,
    /// What the caller knows from outside the framework about the parameters there must be.
    pub expected: Vec<Expected>,
    /// Seed of the random directions.
    pub seed: u64,
    /// Whether to look for the place where a graph was cut.
    pub explain: bool,
}

/// How closely to ask *right*.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RightSettings {
    /// Random directions a parameter, beside the gradient's own.
    pub directions: usize,
    /// Relative error allowed; `None`: 10⁻⁵ where the loss is computed in f64, 2·10⁻² in f32, else 10⁻¹.
    pub tolerance: Option<f64>,
}

impl Default for Questions {
    fn default() -> Self {
        let right = RightSettings { directions: 2, tolerance: None };
        Questions { right: Some(right), steps: 3, repeatable: true, expected: Vec::new(), seed: 0, explain: true }
    }
}

impl Questions {
    /// The questions that one backward pass answers: *present*, *finite*, *non-zero*.
    pub fn presence_only() -> Self {
        Questions { right: None, steps: 0, repeatable: false, ..Questions::default() }
    }

    /// The same with one more thing known from outside.
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected.push(expected);
        self
    }
}

/// What is known of the parameters from outside the framework, which can hide some from its own visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// These names are among them.
    Names(Vec<String>),
    /// So many parameters (tensors).
    Count(usize),
    /// So many numbers in all.
    Numbers(u64),
}

/// What all questions work on.
pub(super) struct Inquiry<'a> {
    pub subject: &'a mut dyn Subject,
    pub parameters: Vec<Parameter>,
    pub verdict: Verdict,
    pub seed: u64,
}

impl Inquiry<'_> {
    pub fn find(&mut self, index: usize, question: Question, evidence: String) {
        let parameter = self.parameters[index].name.clone();
        self.verdict.findings.push(Finding { parameter, question, evidence });
    }

    pub fn note(&mut self, index: usize, question: Question, evidence: String) {
        let parameter = self.parameters[index].name.clone();
        self.verdict.notes.push(Finding { parameter, question, evidence });
    }

    pub fn backward(&mut self) -> Result<f64, ModelFault> {
        self.verdict.cost.backward += 1;
        self.subject.backward()
    }

    pub fn loss_at(&mut self, index: usize, values: &[f64]) -> Option<Result<f64, ModelFault>> {
        self.verdict.cost.forward += 1;
        self.subject.loss_at(index, values)
    }

    /// The gradient of `index` as numbers, when it has the parameter's length.
    pub fn gradient(&self, index: usize) -> Option<Vec<f64>> {
        let gradient = self.subject.gradient(index)?;
        (gradient.len() == self.parameters[index].len()).then(|| gradient.to_vec())
    }

    pub fn asked(&mut self, question: Question) {
        if !self.verdict.asked.contains(&question) {
            self.verdict.asked.push(question);
        }
    }

    /// Whether a question found something of parameter `index` already.
    pub fn failed(&self, index: usize) -> bool {
        self.verdict.findings.iter().any(|f| f.parameter == self.parameters[index].name)
    }
}

/// Asks every parameter every question that `questions` and the subject allow.
///
/// *Applied* runs training steps, so the model has moved afterwards: give it a copy, or build a new one.
///
/// # Errors
/// When the first pass of the model fails; a later one that fails is a finding.
pub fn judge(subject: &mut dyn Subject, questions: &Questions) -> Result<Verdict, ModelFault> {
    let parameters = subject.parameters();
    let verdict = Verdict { parameters: parameters.len(), ..Verdict::default() };
    let mut inquiry = Inquiry { subject, parameters, verdict, seed: questions.seed };
    compare_with_outside(&mut inquiry, &questions.expected);
    declarations_fit(&mut inquiry);
    let before = values(&inquiry);
    inquiry.backward()?;
    unmoved_by_a_pass(&mut inquiry, before);
    presence::ask(&mut inquiry, questions.explain)?;
    if let Err(error) = later(&mut inquiry, questions) {
        let evidence = format!("the first pass went well and a later one failed: {error}");
        let parameter = "the model".to_owned();
        inquiry.verdict.findings.push(Finding { parameter, question: Question::Repeatable, evidence });
    }
    Ok(inquiry.verdict)
}

/// What takes more than one pass.
fn later(inquiry: &mut Inquiry, questions: &Questions) -> Result<(), ModelFault> {
    variants(inquiry)?;
    if let Some(settings) = questions.right {
        right::ask(inquiry, settings)?;
    }
    if questions.repeatable && inquiry.subject.repeats() {
        repeatable::ask(inquiry)?;
    }
    if questions.steps > 0 {
        applied::ask(inquiry, questions.steps)?;
    }
    Ok(())
}

fn values(inquiry: &Inquiry) -> Vec<Option<Vec<f64>>> {
    (0..inquiry.parameters.len()).map(|i| inquiry.subject.value(i)).collect()
}

/// A pass that moves a parameter between forward and backward takes the gradient at another place.
fn unmoved_by_a_pass(inquiry: &mut Inquiry, before: Vec<Option<Vec<f64>>>) {
    for (i, before) in before.into_iter().enumerate() {
        let (Some(before), Some(after)) = (before, inquiry.subject.value(i)) else { continue };
        let moved = before.iter().zip(&after).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        if moved > 0 {
            let evidence =
                format!("{moved} of its {} numbers were changed by a pass itself, before any step", after.len());
            inquiry.find(i, Question::Repeatable, evidence);
        }
    }
}

fn compare_with_outside(inquiry: &mut Inquiry, expected: &[Expected]) {
    let mut find = |parameter: String, evidence: String| {
        inquiry.verdict.findings.push(Finding { parameter, question: Question::Present, evidence });
    };
    let names: Vec<&str> = inquiry.parameters.iter().map(|p| p.name.as_str()).collect();
    let numbers: u64 = inquiry.parameters.iter().map(|p| p.len() as u64).sum();
    for known in expected {
        match known {
            Expected::Names(wanted) => {
                for name in wanted.iter().filter(|name| !names.contains(&name.as_str())) {
                    find(name.clone(), "is expected, but the model does not show it".to_owned());
                }
            }
            Expected::Count(count) if *count != names.len() => {
                find("the model".to_owned(), format!("shows {} parameters, expected {count}", names.len()));
            }
            Expected::Numbers(count) if *count != numbers => {
                find("the model".to_owned(), format!("shows {numbers} numbers in its parameters, expected {count}"));
            }
            _ => {}
        }
    }
}

/// A declaration that fits nothing would switch a question off unseen, so it is a finding itself.
fn declarations_fit(inquiry: &mut Inquiry) {
    for i in 0..inquiry.parameters.len() {
        let parameter = &inquiry.parameters[i];
        let (rows, length) = (parameter.rows(), parameter.len());
        let wrong = match (&parameter.expectation, parameter.units) {
            (Expectation::Tied(other), _) if !inquiry.parameters.iter().any(|p| p.name == *other) => {
                format!("is declared tied with `{other}`, which is not among the parameters")
            }
            (Expectation::ZeroRows(may), _) if may.len() != rows => {
                format!("is declared to have {} rows that may be zero or not, but has {rows}", may.len())
            }
            (_, Some(units)) if units == 0 || !length.is_multiple_of(units) => {
                format!("is declared to have {units} units, into which its {length} numbers cannot be divided")
            }
            _ => continue,
        };
        inquiry.find(i, Question::Present, wrong);
    }
}

/// The presence questions once more for every other layout of the inputs: contiguity decides which
/// kernel runs, and so whether there is a gradient.
fn variants(inquiry: &mut Inquiry) -> Result<(), ModelFault> {
    for number in 0..inquiry.subject.variants() {
        let layout = inquiry.subject.set_variant(Some(number));
        inquiry.backward()?;
        presence::ask_again(inquiry, presence::Moment::OtherLayout, &format!("with {layout}: "))?;
    }
    if inquiry.subject.variants() > 0 {
        inquiry.subject.set_variant(None);
        inquiry.backward()?;
    }
    Ok(())
}
