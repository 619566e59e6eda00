//! *Repeatable*: the same probe twice, the same bits.

use super::judge::Inquiry;
use super::{ModelFault, Question};

/// Passes compared.
const PASSES: usize = 3;

/// Compares loss and gradients of several passes bit for bit.
pub fn ask(inquiry: &mut Inquiry) -> Result<(), ModelFault> {
    let loss = inquiry.backward()?;
    let first: Vec<Option<Vec<f64>>> = (0..inquiry.parameters.len()).map(|i| inquiry.gradient(i)).collect();
    inquiry.asked(Question::Repeatable);
    for pass in 1..PASSES {
        let again = inquiry.backward()?;
        let mut differs = false;
        for (i, first) in first.iter().enumerate() {
            let second = inquiry.gradient(i);
            if let Some(evidence) = difference(first.as_deref(), second.as_deref()) {
                inquiry.find(i, Question::Repeatable, evidence);
                differs = true;
            }
        }
        if !differs && again.to_bits() != loss.to_bits() {
            let evidence = format!("pass {pass} gave a loss of {again}, the first {loss}; the gradients agree");
            inquiry.find(0, Question::Repeatable, evidence);
            differs = true;
        }
        if differs {
            break;
        }
    }
    Ok(())
}

fn difference(first: Option<&[f64]>, second: Option<&[f64]>) -> Option<String> {
    let (first, second) = match (first, second) {
        (None, None) => return None,
        (Some(first), Some(second)) => (first, second),
        _ => return Some("has a gradient in one pass and none in the next".to_owned()),
    };
    let pairs = || first.iter().zip(second).filter(|(a, b)| a.to_bits() != b.to_bits());
    let count = pairs().count();
    let largest = pairs().map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    (count > 0)
        .then(|| format!("has {count} of {} numbers changed from pass to pass, by up to {largest:.1e}", first.len()))
}
