//! Losses that jump: one batch that is far off must not move the parameters.
//!
//! Clipping bounds the length of a step, not its direction, and AdamW's second moment remembers a large
//! gradient for about 1 / (1 − β₂) steps. So a step whose loss lies far above those before it is left out, as
//! A. Chowdhery et al. (PaLM, 2022) left out the batches around a spike. The parameters do not move meanwhile:
//! if the loss stays up, the batches are no accident, and the run stops.

use super::Row;
use std::collections::VecDeque;

/// Losses of taken steps that the next is compared with, and the fewest that say anything.
const WINDOW: usize = 32;
const FEWEST: usize = 8;
/// A spike lies above the mean by more than so many nats a token, and by more than so many standard
/// deviations. The steepest fall at the start of a run and the noise of a mixture of languages reach
/// neither: a test holds the rule to the reference run, no step of which may be left out.
const NATS: f64 = 2.0;
const DEVIATIONS: f64 = 6.0;

/// The losses of the last taken steps, nats per token.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses(VecDeque<f64>);

impl Losses {
    /// Those of a run's rows so far: a resumed run judges as the uninterrupted one would.
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut losses = Losses::default();
        rows.iter().filter(|row| !row.skipped).filter_map(|row| row.loss).for_each(|loss| losses.take(loss));
        losses
    }

    /// Adds the loss of a step that moved the parameters.
    pub(super) fn take(&mut self, loss: f64) {
        self.0.truncate(WINDOW - 1);
        self.0.push_front(loss);
    }

    /// The usual loss, when `loss` is a spike.
    pub(super) fn spike(&self, loss: f64) -> Option<f64> {
        let count = self.0.len() as f64;
        let mean = self.0.iter().sum::<f64>() / count;
        let variance = self.0.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        let above = loss - mean;
        (self.0.len() >= FEWEST && above > NATS && above > DEVIATIONS * variance.sqrt()).then_some(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(values: impl IntoIterator<Item = f64>) -> Losses {
        let mut losses = Losses::default();
        values.into_iter().for_each(|loss| losses.take(loss));
        losses
    }

    #[test]
    fn only_a_jump_above_both_limits_is_a_spike() {
        assert_eq!(losses([3.0; 7]).spike(99.0), None, "too few to say");
        let quiet = losses([3.0; 8]);
        assert_eq!((quiet.spike(4.9), quiet.spike(5.1)), (None, Some(3.0)));
        let noisy = losses((0..32).map(|i| 3.0 + f64::from(i % 2))); // deviation 0.5
        assert_eq!((noisy.spike(6.4), noisy.spike(6.6)), (None, Some(3.5)));
        assert_eq!(losses((0..40).map(|i| 9.7 - 0.1 * f64::from(i))).spike(9.7), None, "a fall is no spike");
    }

    #[test]
    fn no_step_of_the_reference_run_is_a_spike() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/reference/metrics.jsonl");
        let rows = crate::train::read_metrics(std::path::Path::new(path)).unwrap();
        let mut before = Losses::default();
        for loss in rows.iter().filter_map(|row| row.loss) {
            assert_eq!(before.spike(loss), None, "a loss of {loss}");
            before.take(loss);
        }
        assert!(rows.len() > WINDOW, "{} rows", rows.len());
    }

    #[test]
    fn the_window_moves() {
        let moved = losses([9.0; 32].into_iter().chain([1.0; 32]));
        assert_eq!((moved.0.len(), moved.spike(3.1)), (32, Some(1.0)));
    }
}
