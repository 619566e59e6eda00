//! Would the loss curve have shown it? A short training run with and without the defect, judged by rule.

use super::entry::{Entry, Training};
use crate::arbiter::faults::looks_ill;
use candle_core::Result;
use serde::{Deserialize, Serialize};

/// Seeds of weights and data; the same for the runs with and without.
pub const SEEDS: u64 = 6;

/// Student's t for 95 % and `SEEDS` − 1 degrees of freedom.
const STUDENT: f64 = 2.571;

/// What a loss curve gives away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// On its own: it is not finite, or does not fall.
    Alone,
    /// Only beside the curves of healthy runs, which a user does not have.
    BesideHealthy,
    /// Nothing.
    Nothing,
}

/// The curves, and what they give away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "curve", rename_all = "kebab-case")]
pub enum Curves {
    /// They were run.
    Run {
        /// What the defective ones give away.
        shows: Shows,
        /// Where the last quarter of a further healthy run lies with 95 %: its mean loss.
        band: [f64; 2],
        /// A seed a row.
        healthy: Vec<Vec<f64>>,
        /// The same seeds with the defect; a loss that is not finite is null.
        defective: Vec<Vec<Option<f64>>>,
    },
    /// None can exist, and why.
    None {
        /// Why.
        why: String,
    },
}

impl Curves {
    /// What the curves of training with the defect give away beside those without, a seed a row.
    ///
    /// A curve shows the defect on its own when it is not finite or its last quarter lies no lower than its
    /// first, for more than half of the seeds. It shows it beside healthy runs when the mean of its last
    /// quarter lies outside the 95 % prediction interval of the [`SEEDS`] healthy ones, again for more than half.
    pub fn of(healthy: Vec<Vec<f64>>, defective: Vec<Vec<f64>>) -> Self {
        judge(healthy, defective)
    }

    /// In a few words.
    pub fn short(&self) -> String {
        match self {
            Curves::Run { shows: Shows::Alone, .. } => "yes".to_owned(),
            Curves::Run { shows: Shows::BesideHealthy, .. } => "only beside healthy runs".to_owned(),
            Curves::Run { shows: Shows::Nothing, .. } => "no".to_owned(),
            Curves::None { why } => format!("no curve: {why}"),
        }
    }

    /// Whether a user who sees this one curve would not know: it exists, and on its own shows nothing.
    pub fn silent(&self) -> bool {
        matches!(self, Curves::Run { shows: Shows::BesideHealthy | Shows::Nothing, .. })
    }
}

impl Entry {
    /// Trains [`SEEDS`] times with and without the defect, and reads the curves as [`Curves::of`] does.
    ///
    /// # Errors
    /// When the framework refuses an op.
    pub fn would_the_loss_curve_show_it(&self) -> Result<Curves> {
        let run = match self.training {
            Training::Runs(run) => run,
            Training::NoCurve(why) => return Ok(Curves::None { why: why.to_owned() }),
        };
        let of = |defective: bool| (0..SEEDS).map(|seed| run(defective, seed)).collect::<Result<Vec<_>>>();
        Ok(Curves::of(of(false)?, of(true)?))
    }
}

fn judge(healthy: Vec<Vec<f64>>, defective: Vec<Vec<f64>>) -> Curves {
    let tails: Vec<f64> = healthy.iter().map(|curve| tail(curve)).collect();
    let n = tails.len() as f64;
    let mean = tails.iter().sum::<f64>() / n;
    let variance = tails.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let reach = STUDENT * (variance * (1.0 + 1.0 / n)).sqrt();
    let band = [mean - reach, mean + reach];
    let most = |test: &dyn Fn(&Vec<f64>) -> bool| 2 * defective.iter().filter(|c| test(c)).count() > defective.len();
    let outside = |curve: &Vec<f64>| !(band[0]..=band[1]).contains(&tail(curve));
    let shows = match (most(&|curve| looks_ill(curve)), most(&outside)) {
        (true, _) => Shows::Alone,
        (false, true) => Shows::BesideHealthy,
        (false, false) => Shows::Nothing,
    };
    let finite = |loss: &f64| loss.is_finite().then_some(rounded(*loss));
    let defective = defective.iter().map(|curve| curve.iter().map(finite).collect()).collect();
    let healthy = healthy.iter().map(|curve| curve.iter().map(|loss| rounded(*loss)).collect()).collect();
    Curves::Run { shows, band: band.map(rounded), healthy, defective }
}

/// Mean of the last quarter.
fn tail(curve: &[f64]) -> f64 {
    let quarter = (curve.len() / 4).max(1);
    curve[curve.len() - quarter..].iter().sum::<f64>() / quarter as f64
}

/// Five digits are more than a curve shows, and keep the stored file small.
fn rounded(x: f64) -> f64 {
    (x * 1e5).round() / 1e5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn falling(to: f64) -> Vec<f64> {
        (0..40).map(|i| to + (-f64::from(i) / 5.0).exp()).collect()
    }

    #[test]
    fn the_rule_tells_three_cases_apart() {
        let healthy: Vec<_> = (0..SEEDS).map(|s| falling(1.0 + 0.01 * s as f64)).collect();
        let shows = |defective: Vec<f64>| match judge(healthy.clone(), vec![defective; SEEDS as usize]) {
            Curves::Run { shows, .. } => shows,
            Curves::None { .. } => unreachable!("curves were given"),
        };
        assert_eq!(shows(falling(1.02)), Shows::Nothing);
        assert_eq!(shows(falling(1.3)), Shows::BesideHealthy);
        assert_eq!(shows(vec![2.0; 40]), Shows::Alone);
        assert_eq!(shows(vec![f64::NAN; 40]), Shows::Alone);
    }
}
