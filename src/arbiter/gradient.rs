//! The questions that one backward pass answers: *present*, *finite*, *non-zero*.

use super::{Expectation, Finding, Gradient, Parameter, Question, Subject, Verdict};

/// Asks every parameter the three questions.
pub fn judge(subject: &dyn Subject) -> Verdict {
    let mut verdict = Verdict { parameters: 0, numbers: 0, findings: Vec::new(), norms: Vec::new() };
    subject.show(&mut |parameter, gradient| {
        verdict.parameters += 1;
        verdict.numbers += gradient.map_or(0, |g| g.len() as u64);
        let norm = gradient.map_or(0.0, |g| (0..g.len()).map(|i| g.at(i) * g.at(i)).sum::<f64>().sqrt());
        verdict.norms.push((parameter.name.clone(), if norm.is_finite() { norm } else { -1.0 }));
        if let Err((question, evidence)) = examine(parameter, gradient) {
            verdict.findings.push(Finding { parameter: parameter.name.clone(), question, evidence });
        }
    });
    verdict
}

fn examine(parameter: &Parameter, gradient: Option<Gradient>) -> Result<(), (Question, String)> {
    let frozen = parameter.expectation == Expectation::Frozen;
    let Some(gradient) = gradient else {
        return if frozen {
            Ok(())
        } else {
            Err((Question::Present, "has no gradient: nothing it does reaches the loss".to_owned()))
        };
    };
    if frozen {
        return Err((Question::Present, "is declared frozen but has a gradient".to_owned()));
    }
    let expected: usize = parameter.shape.iter().product();
    if gradient.len() != expected {
        let evidence = format!("has a gradient of {} numbers, expected {expected}", gradient.len());
        return Err((Question::Present, evidence));
    }
    if let Some(i) = (0..expected).find(|i| !gradient.at(*i).is_finite()) {
        return Err((Question::Finite, format!("has {} at position {i} of its gradient", gradient.at(i))));
    }
    non_zero(parameter, gradient)
}

fn non_zero(parameter: &Parameter, gradient: Gradient) -> Result<(), (Question, String)> {
    let rows = if parameter.shape.len() > 1 { parameter.shape[0] } else { 1 };
    let width = gradient.len() / rows.max(1);
    let is_zero = |row: usize| (row * width..(row + 1) * width).all(|i| gradient.at(i) == 0.0);
    let zero: Vec<usize> = (0..rows).filter(|row| is_zero(*row)).collect();
    if zero.len() == rows {
        return Err((Question::NonZero, "has a gradient of zeros only".to_owned()));
    }
    let allowed =
        |row: usize| matches!(&parameter.expectation, Expectation::ZeroRows(may) if may.get(row) == Some(&true));
    let unexpected: Vec<usize> = zero.into_iter().filter(|row| !allowed(*row)).collect();
    match unexpected.first() {
        Some(first) => {
            let evidence =
                format!("has zeros only in {} of {rows} rows of its gradient, first row {first}", unexpected.len());
            Err((Question::NonZero, evidence))
        }
        None => Ok(()),
    }
}
