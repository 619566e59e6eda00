//! The arbiter during training: every few steps a look at each parameter's gradient.

use super::Numbers;
use crate::ops::norm::sum_of_squares;
use std::time::Instant;

/// Steps between two looks by default.
pub const EVERY: u64 = 50;
/// Looks that a parameter's usual norm is the median of.
const HISTORY: usize = 9;
/// A norm so many times its usual one has exploded; so many times below it, died.
const FACTOR: f64 = 1e4;

/// A gradient that died or exploded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("step {step}: the gradient of `{parameter}` {what}; look at {look_at}, then resume from the last checkpoint")]
pub struct Alarm {
    /// The step.
    pub step: u64,
    /// The parameter.
    pub parameter: String,
    /// What happened to it.
    pub what: String,
    /// Where to look first.
    pub look_at: &'static str,
}

/// Norms of the last looks, a parameter each.
#[derive(Debug, Clone)]
pub struct Monitor {
    names: Vec<String>,
    every: u64,
    history: Vec<Vec<f64>>,
    seconds: f64,
}

impl Monitor {
    /// A monitor that looks at the named parameters every `every` steps; 0 never looks.
    pub fn new(names: Vec<String>, every: u64) -> Self {
        let history = vec![Vec::new(); names.len()];
        Monitor { names, every, history, seconds: 0.0 }
    }

    /// Seconds spent looking since this was last asked.
    pub fn take_seconds(&mut self) -> f64 {
        std::mem::take(&mut self.seconds)
    }

    /// Whether it looks at a step.
    pub fn is_due(&self, step: u64) -> bool {
        self.every > 0 && step.is_multiple_of(self.every)
    }

    /// Looks if `step` is due; `gradient` gives the gradient of a parameter by its index.
    ///
    /// # Errors
    /// [`Alarm`] when a gradient is missing, not finite, zero, or far from what it was.
    pub fn look<'a>(&mut self, step: u64, gradient: impl Fn(usize) -> Option<Numbers<'a>>) -> Result<(), Alarm> {
        if !self.is_due(step) {
            return Ok(());
        }
        let started = Instant::now();
        let result = (0..self.names.len()).try_for_each(|i| self.look_at(step, i, gradient(i)));
        self.seconds += started.elapsed().as_secs_f64();
        result
    }

    fn look_at(&mut self, step: u64, index: usize, gradient: Option<Numbers>) -> Result<(), Alarm> {
        let alarm = |what: String, look_at: &'static str| {
            Err(Alarm { step, parameter: self.names[index].clone(), what, look_at })
        };
        let Some(gradient) = gradient else {
            return alarm("is missing".to_owned(), "what changed in the graph since the pre-flight");
        };
        let norm = match gradient {
            Numbers::F32(x) => sum_of_squares(x),
            Numbers::F64(x) => sum_of_squares(x),
        }
        .sqrt();
        let usual = median(&self.history[index]);
        let died = "inputs that became constant, a saturated unit, or an underflow in a narrow number type";
        if !norm.is_finite() {
            return alarm(
                format!("has the norm {norm}"),
                "the batch of this step, the learning rate and the number type",
            );
        }
        if norm == 0.0 {
            return alarm("is zero".to_owned(), died);
        }
        match usual {
            Some(usual) if norm > FACTOR * usual => alarm(
                format!("exploded: its norm is {norm:.1e}, the usual one {usual:.1e}"),
                "the learning rate, the clipping norm and the batch of this step",
            ),
            Some(usual) if norm * FACTOR < usual => {
                alarm(format!("died: its norm is {norm:.1e}, the usual one {usual:.1e}"), died)
            }
            _ => {
                let history = &mut self.history[index];
                history.push(norm);
                if history.len() > HISTORY {
                    history.remove(0);
                }
                Ok(())
            }
        }
    }
}

/// The middle of at least three numbers.
fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted.len() >= 3).then(|| sorted[sorted.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at one gradient of the given norms, step by step.
    fn watch(norms: &[f32]) -> Result<Monitor, Alarm> {
        let mut monitor = Monitor::new(vec!["w".to_owned()], 2);
        for (i, norm) in norms.iter().enumerate() {
            let gradient = [*norm, 0.0];
            monitor.look(2 * (i as u64 + 1), |_| Some(Numbers::F32(&gradient)))?;
        }
        Ok(monitor)
    }

    #[test]
    fn an_ordinary_course_raises_no_alarm_and_each_fault_names_parameter_step_and_cause() {
        assert!(watch(&[1.0, 5.0, 0.2, 30.0, 0.01, 2.0]).unwrap().take_seconds() > 0.0);
        for (norms, what, step) in [
            (vec![1.0, 1.0, 1.0, f32::NAN], "NaN", 8),
            (vec![1.0, 0.0], "is zero", 4),
            (vec![1.0, 2.0, 3.0, 1e5], "exploded", 8),
            (vec![1.0, 2.0, 3.0, 1e-5], "died", 8),
        ] {
            let alarm = watch(&norms).unwrap_err();
            assert!(alarm.what.contains(what) && alarm.step == step && alarm.parameter == "w", "{alarm}");
            assert!(alarm.to_string().contains("look at "));
        }
        let mut monitor = Monitor::new(vec!["w".to_owned()], 1);
        assert!(monitor.look(1, |_| None).unwrap_err().what.contains("missing"));
    }

    #[test]
    fn it_looks_only_when_due() {
        let mut monitor = Monitor::new(vec!["w".to_owned()], 10);
        assert!((1..10).all(|step| monitor.look(step, |_| None).is_ok()));
        assert!(monitor.look(10, |_| None).is_err());
        assert!((1..100).all(|step| Monitor::new(vec!["w".to_owned()], 0).look(step, |_| None).is_ok()));
    }
}
