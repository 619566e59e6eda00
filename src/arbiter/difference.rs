//! Directional derivatives of the loss by central differences.

use super::judge::Inquiry;
use super::{ModelFault, Precision};
use crate::rng::Stream;

/// Rounding errors of a loss, in units of its last place: a forward pass adds up many.
const ROUNDINGS: f64 = 16.0;

/// A derivative with what is known of its error.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The derivative along the unit direction, extrapolated from two step sizes.
    pub slope: f64,
    /// Disagreement of the two step sizes: the error of leaving out higher terms, large at a kink.
    pub truncation: f64,
    /// Error from rounding in the loss.
    pub rounding: f64,
}

impl Difference {
    /// Whether it cannot be told from zero.
    pub fn is_zero(&self) -> bool {
        self.slope.abs() <= 3.0 * (self.truncation + self.rounding)
    }

    /// Along a random unit direction inside the numbers for which `inside` holds; `None` when the
    /// subject gives no loss at shifted weights.
    pub fn along(
        inquiry: &mut Inquiry,
        index: usize,
        inside: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Difference>, ModelFault> {
        let length = inquiry.parameters[index].len();
        let direction = random_direction(inquiry.seed, index, 1 << 20, length, inside);
        measure(inquiry, index, &direction)
    }
}

/// A unit vector of normal numbers, zero where `inside` does not hold.
pub fn random_direction(
    seed: u64,
    index: usize,
    number: usize,
    length: usize,
    inside: &dyn Fn(usize) -> bool,
) -> Vec<f64> {
    let stream = Stream::new(seed, &format!("arbiter/{index}/{number}"));
    let mut direction: Vec<f64> = (0..length).map(|i| stream.normal(i as u64)).collect();
    direction.iter_mut().enumerate().filter(|(i, _)| !inside(*i)).for_each(|(_, x)| *x = 0.0);
    normalise(&mut direction);
    direction
}

/// Scales to length 1; zeros stay zeros.
pub fn normalise(direction: &mut [f64]) {
    let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt();
    if norm > 0.0 {
        direction.iter_mut().for_each(|x| *x /= norm);
    }
}

/// The derivative along `direction` at the parameter's value. The step is relative to the parameter's
/// size; when two step sizes disagree, as beside a kink, smaller ones are tried.
pub fn measure(inquiry: &mut Inquiry, index: usize, direction: &[f64]) -> Result<Option<Difference>, ModelFault> {
    let Some(value) = inquiry.subject.value(index) else { return Ok(None) };
    let size = size(&value);
    let precision = inquiry.subject.loss_precision();
    let mut best: Option<Difference> = None;
    for step in steps(precision) {
        let Some(found) = two_steps(inquiry, index, &value, direction, step * size)? else { return Ok(None) };
        let error = |d: &Difference| d.truncation + d.rounding;
        if best.as_ref().is_none_or(|b| error(&found) < error(b)) {
            best = Some(found);
        }
        if found.truncation <= 1e-6 * found.slope.abs() + found.rounding {
            break;
        }
    }
    Ok(best)
}

/// The derivative by every step size in turn.
pub fn every_step(inquiry: &mut Inquiry, index: usize, direction: &[f64]) -> Result<Vec<Difference>, ModelFault> {
    let Some(value) = inquiry.subject.value(index) else { return Ok(Vec::new()) };
    let size = size(&value);
    let mut found = Vec::new();
    for step in steps(inquiry.subject.loss_precision()) {
        found.extend(two_steps(inquiry, index, &value, direction, step * size)?);
    }
    Ok(found)
}

/// What a step is relative to: the parameter's norm, or that of small numbers where it starts at zero.
fn size(value: &[f64]) -> f64 {
    let norm = value.iter().map(|x| x * x).sum::<f64>().sqrt();
    norm.max(1e-2 * (value.len() as f64).sqrt())
}

fn steps(precision: Precision) -> [f64; 3] {
    match precision {
        Precision::F64 => [1e-4, 1e-5, 1e-6],
        Precision::F32 => [2e-2, 5e-3, 1e-3],
        Precision::F16 | Precision::Bf16 => [1e-1, 5e-2, 2e-2],
    }
}

fn two_steps(
    inquiry: &mut Inquiry,
    index: usize,
    value: &[f64],
    direction: &[f64],
    step: f64,
) -> Result<Option<Difference>, ModelFault> {
    let mut size = 0.0f64;
    let Some(here) = inquiry.loss_at(index, value).transpose()? else { return Ok(None) };
    // The slope, and by how much it differs from one side to the other.
    let mut central = |h: f64| -> Result<Option<(f64, f64)>, ModelFault> {
        let mut at = |h: f64| {
            let shifted: Vec<f64> = value.iter().zip(direction).map(|(x, d)| x + h * d).collect();
            inquiry.loss_at(index, &shifted).transpose()
        };
        let (Some(above), Some(below)) = (at(h)?, at(-h)?) else { return Ok(None) };
        size = size.max(above.abs()).max(below.abs());
        Ok(Some(((above - below) / (2.0 * h), (above - 2.0 * here + below).abs() / h)))
    };
    let (Some((wide, wide_bend)), Some((narrow, bend))) = (central(step)?, central(step / 2.0)?) else {
        return Ok(None);
    };
    let rounding = ROUNDINGS * inquiry.subject.loss_precision().unit_roundoff() * size / step;
    // Of a smooth loss the two sides come together as the step shrinks; at a kink they do not.
    let kink = if bend > 0.75 * wide_bend { bend } else { 0.0 };
    Ok(Some(Difference { slope: (4.0 * narrow - wide) / 3.0, truncation: (narrow - wide).abs() + kink, rounding }))
}
