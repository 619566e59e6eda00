//! *Right*: the directional derivative from the gradient beside a finite difference of the loss.

use super::difference::{Difference, every_step, measure, normalise, random_direction};
use super::judge::{Inquiry, RightSettings};
use super::{Expectation, ModelFault, Precision, Question};

/// Asks every parameter with a gradient that failed nothing yet. Along its own direction a gradient
/// shows its scale and sign best; random directions show a part that is missing.
pub fn ask(inquiry: &mut Inquiry, settings: RightSettings) -> Result<(), ModelFault> {
    let mut passed_over = Vec::new();
    for i in 0..inquiry.parameters.len() {
        if inquiry.failed(i) || !inquiry.parameters[i].learns() {
            continue;
        }
        let Some(gradient) = inquiry.gradient(i) else { continue };
        for number in 0..=settings.directions {
            let direction = direction(inquiry, i, number, &gradient);
            if direction.iter().all(|x| *x == 0.0) {
                continue; // a gradient of zeros has no direction of its own
            }
            let Some(difference) = measure(inquiry, i, &direction)? else {
                passed_over.push(i);
                break;
            };
            inquiry.asked(Question::Right);
            let claimed: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
            let asked = Asked { index: i, settings, claimed, gradient: &gradient };
            let mut answer = asked.compare(inquiry, difference);
            if let Answer::Wrong(evidence) = &answer
                && asked.holds_at_another_step(inquiry, &direction, difference)?
            {
                answer = Answer::CannotTell(format!("{evidence}; with another step size they agree"));
            }
            match answer {
                Answer::Right => {}
                Answer::Wrong(evidence) => {
                    inquiry.find(i, Question::Right, evidence);
                    break;
                }
                Answer::CannotTell(evidence) => inquiry.note(i, Question::Right, evidence),
            }
        }
    }
    let first = passed_over.first().filter(|_| inquiry.verdict.asked.contains(&Question::Right));
    if let Some(first) = first {
        let evidence = format!("not asked of it and {} other parameters", passed_over.len() - 1);
        inquiry.note(*first, Question::Right, evidence);
    }
    Ok(())
}

fn direction(inquiry: &Inquiry, index: usize, number: usize, gradient: &[f64]) -> Vec<f64> {
    if number > 0 {
        return random_direction(inquiry.seed, index, number, gradient.len(), &|_| true);
    }
    let mut own = gradient.to_vec();
    normalise(&mut own);
    own
}

enum Answer {
    Right,
    Wrong(String),
    CannotTell(String),
}

/// Relative error allowed by default, by the number type of the loss.
pub fn default_tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F64 => 1e-5,
        Precision::F32 => 2e-2,
        Precision::F16 | Precision::Bf16 => 1e-1,
    }
}

/// What is asked of one parameter along one direction.
struct Asked<'a> {
    index: usize,
    settings: RightSettings,
    /// The derivative by the gradient.
    claimed: f64,
    gradient: &'a [f64],
}

impl Asked<'_> {
    /// Kinks that a step crosses can pass for a smooth slope. Before a gradient is called wrong, every
    /// other step size is tried; one that agrees with it, and is exact enough to tell, acquits it.
    fn holds_at_another_step(
        &self,
        inquiry: &mut Inquiry,
        direction: &[f64],
        first: Difference,
    ) -> Result<bool, ModelFault> {
        let error = (self.claimed - first.slope).abs();
        for difference in every_step(inquiry, self.index, direction)? {
            let exact = 3.0 * (difference.truncation + difference.rounding) < error;
            if exact && !matches!(self.compare(inquiry, difference), Answer::Wrong(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compare(&self, inquiry: &Inquiry, difference: Difference) -> Answer {
        let Asked { index, settings, claimed, gradient } = *self;
        // The gradient itself was rounded in the parameter's type, the difference in the loss's.
        let precision = inquiry.parameters[index].precision.coarser(inquiry.subject.loss_precision());
        let tolerance = settings.tolerance.unwrap_or_else(|| default_tolerance(precision));
        // Of a random direction, what a gradient of this norm gives on average; so that a direction that
        // happens to stand across the gradient is not held to an error relative to nothing.
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let scale = claimed.abs().max(difference.slope.abs()).max(norm / (gradient.len() as f64).sqrt());
        let uncertain = 3.0 * (difference.truncation + difference.rounding);
        let error = (claimed - difference.slope).abs();
        let allowed = tolerance * scale + uncertain;
        if inquiry.parameters[index].expectation == Expectation::Zero {
            return zero(difference, norm, uncertain);
        }
        let numbers =
            format!("gradient gives {claimed:.6e} along a direction, the loss itself {:.6e}", difference.slope);
        if error > allowed || error.is_nan() {
            return Answer::Wrong(format!("{numbers}: relative error {:.1e}, allowed {tolerance:.0e}", error / scale));
        }
        let nothing = claimed == 0.0 && norm == 0.0;
        if !nothing && uncertain > tolerance.max(1e-3) * scale && uncertain > 10.0 * tolerance * scale {
            let evidence = format!("{numbers}; cannot tell closer than {uncertain:.1e}, beside a kink or by rounding");
            return Answer::CannotTell(evidence);
        }
        Answer::Right
    }
}

/// A gradient that is zero by the mathematics must be so in the differences too.
fn zero(difference: Difference, norm: f64, uncertain: f64) -> Answer {
    if difference.slope.abs() > uncertain.max(10.0 * norm) {
        let slope = difference.slope;
        return Answer::Wrong(format!("is declared zero by the mathematics, but the loss changes by {slope:.2e}"));
    }
    Answer::Right
}
