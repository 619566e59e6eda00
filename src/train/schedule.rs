//! The learning rate over the steps.

use crate::recipe::{ScheduleKind, TrainRecipe};

/// Learning rate of `step`, counted from 1: linear warmup to the peak over `warmup_steps`, then half a
/// cosine down to the minimum (I. Loshchilov, F. Hutter, ICLR 2017), or constant with a linear decay
/// over the last `decay_steps` (S. Hu et al., arXiv:2404.06395). The minimum is reached at the last step.
pub fn learning_rate(recipe: &TrainRecipe, step: u64) -> f64 {
    let (peak, minimum) = (recipe.learning_rate, recipe.minimum_learning_rate);
    if step <= recipe.warmup_steps {
        return peak * step as f64 / recipe.warmup_steps as f64;
    }
    let fall = match recipe.schedule {
        ScheduleKind::WarmupCosine => {
            let done = progress(step, recipe.warmup_steps, recipe.steps);
            0.5 * (1.0 + (std::f64::consts::PI * done).cos())
        }
        ScheduleKind::WarmupStableDecay => 1.0 - progress(step, recipe.steps - recipe.decay_steps, recipe.steps),
    };
    minimum + (peak - minimum) * fall
}

/// How far `step` is from `start` to `end`, from 0 to 1.
fn progress(step: u64, start: u64, end: u64) -> f64 {
    if end <= start {
        return 0.0;
    }
    (step.saturating_sub(start) as f64 / (end - start) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    fn recipe(schedule: ScheduleKind) -> TrainRecipe {
        let mut recipe = Recipe::load("pocket").unwrap().train;
        (recipe.steps, recipe.warmup_steps, recipe.decay_steps) = (100, 10, 20);
        (recipe.learning_rate, recipe.minimum_learning_rate, recipe.schedule) = (1.0, 0.1, schedule);
        recipe
    }

    #[test]
    fn warmup_and_cosine() {
        let r = recipe(ScheduleKind::WarmupCosine);
        let at = |step| learning_rate(&r, step);
        assert_eq!((at(1), at(5), at(10)), (0.1, 0.5, 1.0));
        assert!((at(55) - 0.55).abs() < 1e-12, "half way down");
        assert!((at(100) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn warmup_stable_and_decay() {
        let r = recipe(ScheduleKind::WarmupStableDecay);
        let at = |step| learning_rate(&r, step);
        assert_eq!((at(10), at(50), at(80)), (1.0, 1.0, 1.0));
        assert!((at(90) - 0.55).abs() < 1e-12);
        assert!((at(100) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn no_warmup_starts_near_the_peak() {
        let mut r = recipe(ScheduleKind::WarmupCosine);
        r.warmup_steps = 0;
        assert!(learning_rate(&r, 1) > 0.999);
    }
}
