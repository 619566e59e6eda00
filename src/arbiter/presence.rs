//! What one backward pass answers: *present*, *finite*, *non-zero*.

use super::difference::Difference;
use super::judge::Inquiry;
use super::{Expectation, ModelFault, Numbers, Parameter, Question};

/// A gradient that is zero by the mathematics may be this large beside the largest other one, a number
/// each: what rounding in single precision leaves.
const ROUNDING_LEFT: f64 = 1e-4;

/// Asks the three questions, and looks for where the graph was cut.
pub fn ask(inquiry: &mut Inquiry, explain: bool) -> Result<(), ModelFault> {
    for (i, parameter) in inquiry.parameters.iter().enumerate() {
        let gradient = inquiry.subject.gradient(i);
        inquiry.verdict.numbers += gradient.map_or(0, |g| g.len() as u64);
        let norm = gradient.map(norm).filter(|norm| norm.is_finite());
        inquiry.verdict.norms.push((parameter.name.clone(), norm));
    }
    [Question::Present, Question::Finite, Question::NonZero].into_iter().for_each(|question| inquiry.asked(question));
    values_are_finite(inquiry);
    examine_all(inquiry, Moment::First, "")?;
    let missing: Vec<usize> = (0..inquiry.parameters.len())
        .filter(|i| inquiry.parameters[*i].learns() && inquiry.subject.gradient(*i).is_none())
        .collect();
    if explain && !missing.is_empty() {
        inquiry.verdict.cut = inquiry.subject.explain(&missing);
    }
    Ok(())
}

/// A parameter that is no number already makes every gradient one.
fn values_are_finite(inquiry: &mut Inquiry) {
    for i in 0..inquiry.parameters.len() {
        let Some(value) = inquiry.subject.value(i) else { continue };
        if let Some(at) = value.iter().position(|x| !x.is_finite()) {
            inquiry.find(i, Question::Finite, format!("is {} itself at position {at}", value[at]));
        }
    }
}

/// When the questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Of the first pass.
    First,
    /// Again, with the inputs laid out otherwise.
    OtherLayout,
    /// Again, once the optimizer has stepped.
    Stepped,
}

/// Asks again after something changed; `when` begins the evidence. Parameters that failed before are passed over.
pub fn ask_again(inquiry: &mut Inquiry, moment: Moment, when: &str) -> Result<(), ModelFault> {
    examine_all(inquiry, moment, when)
}

fn examine_all(inquiry: &mut Inquiry, moment: Moment, when: &str) -> Result<(), ModelFault> {
    let largest = largest_root_mean_square(inquiry);
    for i in 0..inquiry.parameters.len() {
        if moment != Moment::First && inquiry.failed(i) {
            continue;
        }
        let (parameter, gradient) = (&inquiry.parameters[i], inquiry.subject.gradient(i));
        if let Err((question, evidence)) = whole(parameter, gradient, moment, largest) {
            inquiry.find(i, question, format!("{when}{evidence}"));
        } else if gradient.is_some()
            && matches!(parameter.expectation, Expectation::Trainable | Expectation::ZeroRows(_))
        {
            rows(inquiry, i, moment, when)?;
        }
    }
    Ok(())
}

fn norm(gradient: Numbers) -> f64 {
    (0..gradient.len()).map(|i| gradient.at(i) * gradient.at(i)).sum::<f64>().sqrt()
}

fn largest_root_mean_square(inquiry: &Inquiry) -> f64 {
    let norms = (0..inquiry.parameters.len()).filter_map(|i| inquiry.subject.gradient(i));
    norms.map(|g| norm(g) / (g.len().max(1) as f64).sqrt()).filter(|x| x.is_finite()).fold(0.0, f64::max)
}

/// What can be said of the gradient as a whole.
fn whole(
    parameter: &Parameter,
    gradient: Option<Numbers>,
    moment: Moment,
    largest: f64,
) -> Result<(), (Question, String)> {
    let fail = |question, evidence: String| Err((question, evidence));
    let Some(gradient) = gradient else {
        return match parameter.expectation {
            Expectation::Frozen | Expectation::Held | Expectation::Tied(_) => Ok(()),
            _ => fail(Question::Present, "has no gradient: nothing it does reaches the loss".to_owned()),
        };
    };
    if parameter.expectation == Expectation::Frozen {
        return fail(Question::Present, "is declared frozen but has a gradient".to_owned());
    }
    let expected = parameter.len();
    if gradient.len() != expected {
        return fail(Question::Present, format!("has a gradient of {} numbers, expected {expected}", gradient.len()));
    }
    if let Some(i) = (0..expected).find(|i| !gradient.at(*i).is_finite()) {
        return fail(Question::Finite, format!("has {} at position {i} of its gradient", gradient.at(i)));
    }
    let zero = (0..expected).all(|i| gradient.at(i) == 0.0);
    match &parameter.expectation {
        Expectation::Zero => {
            let left = norm(gradient) / (expected.max(1) as f64).sqrt();
            if left > ROUNDING_LEFT * largest {
                return fail(
                    Question::NonZero,
                    format!(
                        "is declared zero by the mathematics but has {left:.1e} a number, the largest being {largest:.1e}"
                    ),
                );
            }
        }
        Expectation::ZeroAtFirst if moment != Moment::Stepped => {}
        Expectation::Tied(_) | Expectation::Held => {}
        _ if zero => return fail(Question::NonZero, "has a gradient of zeros only".to_owned()),
        _ => {}
    }
    Ok(())
}

/// Rows of zeros that were not declared: a fault when the loss depends on them, or when that cannot be asked.
fn rows(inquiry: &mut Inquiry, index: usize, moment: Moment, when: &str) -> Result<(), ModelFault> {
    let parameter = &inquiry.parameters[index];
    let count = parameter.rows();
    let width = parameter.len() / count;
    let Some(gradient) = inquiry.subject.gradient(index) else { return Ok(()) };
    let declared =
        |row: usize| matches!(&parameter.expectation, Expectation::ZeroRows(may) if may.get(row) == Some(&true));
    let is_zero = |row: &usize| (row * width..(row + 1) * width).all(|i| gradient.at(i) == 0.0);
    let zero: Vec<usize> = (0..count).filter(|row| !declared(*row)).filter(is_zero).collect();
    let Some(first) = zero.first().copied() else { return Ok(()) };
    let seen = format!("{when}has zeros only in {} of {count} rows of its gradient, first row {first}", zero.len());
    let inside = |i: usize| zero.binary_search(&(i / width)).is_ok();
    match Difference::along(inquiry, index, &inside)? {
        None => inquiry.find(index, Question::NonZero, seen),
        Some(difference) if difference.is_zero() && moment != Moment::First => {}
        Some(difference) if difference.is_zero() => {
            inquiry.note(index, Question::NonZero, format!("{seen}; the loss does not depend on them here"));
        }
        Some(difference) => {
            let slope = difference.slope;
            inquiry.find(index, Question::NonZero, format!("{seen}, yet the loss changes along them by {slope:.2e}"));
        }
    }
    Ok(())
}
