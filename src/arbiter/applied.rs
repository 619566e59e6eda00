//! *Applied*: what the optimizer did with the gradients.

use super::judge::Inquiry;
use super::presence;
use super::rule::Reference;
use super::{Expectation, ModelFault, Parameter, Question};

/// Relative error allowed against the declared rule, beside rounding in the parameter's type.
const RULE_TOLERANCE: f64 = 1e-3;
/// How far a parameter's change may stand from the others' before it is no longer plausible.
const FAR: f64 = 100.0;
/// Cosine between change and gradient above which a parameter moves uphill.
const UPHILL: f64 = 0.2;

/// One parameter over one step.
struct Move<'a> {
    parameter: &'a Parameter,
    before: &'a [f64],
    after: &'a [f64],
    gradient: Option<&'a [f64]>,
    /// Size of a number before the first step: a bias that began at zero has none to be held to.
    start: f64,
}

/// Watches `steps` training steps; then asks the presence questions of the last gradients, since some
/// defects look right at the first step.
pub fn ask(inquiry: &mut Inquiry, steps: usize) -> Result<(), ModelFault> {
    let count = inquiry.parameters.len();
    let Some(mut before) = values(inquiry) else { return Ok(()) };
    let start: Vec<f64> = before.iter().map(|x| root_mean_square(x)).collect();
    let mut references: Vec<Reference> = inquiry.parameters.iter().map(|p| Reference::new(p.len())).collect();
    for number in 0..steps {
        let Some(result) = inquiry.subject.step(number) else { return Ok(()) };
        result?;
        inquiry.verdict.cost.steps += 1;
        inquiry.asked(Question::Applied);
        let Some(after) = values(inquiry) else { return Ok(()) };
        let gradients: Vec<Option<Vec<f64>>> = (0..count).map(|i| inquiry.gradient(i)).collect();
        let typical = Typical::of(inquiry, &before, &after, &gradients);
        for i in (0..count).filter(|i| before[*i].len() == after[*i].len()) {
            let gradient = gradients[i].as_deref();
            let (parameter, start) = (&inquiry.parameters[i], start[i]);
            let moved = Move { parameter, before: &before[i], after: &after[i], gradient, start };
            let evidence = match (moved.judge(number, &typical), inquiry.subject.rule(i), gradient) {
                (None, Some(rule), Some(gradient)) if moved.parameter.learns() => {
                    moved.against(&references[i].change(rule, &before[i], gradient))
                }
                (evidence, ..) => evidence,
            };
            let evidence = evidence.or_else(|| untied(inquiry, i, &after));
            if let Some(evidence) = evidence.filter(|_| !inquiry.failed(i)) {
                inquiry.find(i, Question::Applied, format!("in step {}, {evidence}", number + 1));
            }
        }
        before = after;
    }
    inquiry.backward()?;
    presence::ask_again(inquiry, presence::Moment::Stepped, &format!("after {steps} steps, "))
}

fn values(inquiry: &Inquiry) -> Option<Vec<Vec<f64>>> {
    (0..inquiry.parameters.len()).map(|i| inquiry.subject.value(i)).collect()
}

fn root_mean_square(x: &[f64]) -> f64 {
    (x.iter().map(|x| x * x).sum::<f64>() / x.len().max(1) as f64).sqrt()
}

fn untied(inquiry: &Inquiry, index: usize, values: &[Vec<f64>]) -> Option<String> {
    let Expectation::Tied(other) = &inquiry.parameters[index].expectation else { return None };
    let twin = inquiry.parameters.iter().position(|p| p.name == *other)?;
    let apart = values[index].iter().zip(&values[twin]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    (apart > 0.0 || values[index].len() != values[twin].len())
        .then(|| format!("it stands {apart:.1e} away from `{other}`, with which it is tied"))
}

/// What the parameters of the model do as a rule: a step is the gradient times one factor (gradient
/// descent), or it has one size a number (Adam and its kin).
struct Typical {
    per_gradient: Option<f64>,
    per_number: Option<f64>,
    weight: f64,
}

impl Typical {
    fn of(inquiry: &Inquiry, before: &[Vec<f64>], after: &[Vec<f64>], gradients: &[Option<Vec<f64>>]) -> Self {
        let (mut ratios, mut sizes, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..before.len() {
            let (Some(gradient), true) = (&gradients[i], inquiry.parameters[i].learns()) else { continue };
            let size = root_mean_square(&change(&before[i], &after[i]));
            let ratio = size / root_mean_square(gradient);
            if size.is_finite() && ratio.is_finite() && size > 0.0 {
                ratios.push(ratio);
                sizes.push(size);
            }
            weights.push(root_mean_square(&before[i]));
        }
        Typical { per_gradient: median(ratios), per_number: median(sizes), weight: median(weights).unwrap_or(0.0) }
    }
}

/// The middle of at least three numbers.
fn median(mut x: Vec<f64>) -> Option<f64> {
    x.sort_by(f64::total_cmp);
    (x.len() >= 3).then(|| x[x.len() / 2])
}

fn change(before: &[f64], after: &[f64]) -> Vec<f64> {
    after.iter().zip(before).map(|(a, b)| a - b).collect()
}

impl Move<'_> {
    /// What is wrong with the move without knowing the optimizer's rule.
    fn judge(&self, number: usize, typical: &Typical) -> Option<String> {
        let change = change(self.before, self.after);
        if let Some(i) = self.after.iter().position(|x| !x.is_finite()) {
            return Some(format!("it became {} at position {i}", self.after[i]));
        }
        let moved = change.iter().filter(|x| **x != 0.0).count();
        match self.parameter.expectation {
            Expectation::Frozen | Expectation::Held if moved > 0 => {
                return Some(format!("{moved} of its {} numbers moved though it is declared frozen", change.len()));
            }
            Expectation::Frozen | Expectation::Held | Expectation::Tied(_) | Expectation::Zero => return None,
            _ => {}
        }
        let gradient = self.gradient?;
        let pushed = gradient.iter().filter(|g| **g != 0.0).count();
        if pushed == 0 {
            return None; // only its decay moves it
        }
        let both = gradient.iter().zip(&change).filter(|(g, c)| **g != 0.0 && **c != 0.0).count();
        if moved == 0 {
            return Some(format!("none of its {pushed} numbers with a gradient moved"));
        }
        if 2 * both < pushed {
            return Some(format!(
                "only {both} of its {pushed} numbers with a gradient moved: the rest is lost in rounding"
            ));
        }
        self.implausible(&change, gradient, number, typical)
    }

    fn implausible(&self, change: &[f64], gradient: &[f64], number: usize, typical: &Typical) -> Option<String> {
        let (size, own) = (root_mean_square(change), root_mean_square(self.before).max(self.start));
        if size > own.max(typical.weight) && self.start > 0.0 {
            return Some(format!("it moved by {size:.1e} a number, more than its own size of {own:.1e}"));
        }
        let slope: f64 = change.iter().zip(gradient).map(|(c, g)| c * g).sum();
        let cosine = slope / (change.len() as f64 * size * root_mean_square(gradient));
        if number == 0 && cosine > UPHILL {
            return Some(format!("it moved uphill: cosine {cosine:.2} between its change and its gradient"));
        }
        let far = |value: f64, usual: Option<f64>| usual.is_some_and(|u| value > FAR * u || value * FAR < u);
        let ratio = size / root_mean_square(gradient);
        if size > 0.0 && far(ratio, typical.per_gradient) && far(size, typical.per_number) {
            let (usual, per) = (typical.per_number.unwrap_or(0.0), typical.per_gradient.unwrap_or(0.0));
            return Some(format!(
                "it moved by {size:.1e} a number ({ratio:.1e} of its gradient); the others move by {usual:.1e} ({per:.1e})"
            ));
        }
        None
    }

    /// The change beside that of the declared rule.
    fn against(&self, expected: &[f64]) -> Option<String> {
        let change = change(self.before, self.after);
        let error: Vec<f64> = change.iter().zip(expected).map(|(a, b)| a - b).collect();
        let (error, size) = (root_mean_square(&error), root_mean_square(expected));
        let rounding = 2.0 * self.parameter.precision.unit_roundoff() * root_mean_square(self.before).max(size);
        (error > RULE_TOLERANCE * size + rounding).then(|| {
            let found = root_mean_square(&change);
            format!("it moved by {found:.3e} a number where its rule gives {size:.3e}; they differ by {error:.1e}")
        })
    }
}
