//! Optimizers as formulas in f64, to hold a framework's optimizer to.

/// An update rule with its constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// b ← μ·b + (g + λθ), θ ← θ − η·b.
    Sgd {
        /// η.
        learning_rate: f64,
        /// μ; 0 for plain gradient descent.
        momentum: f64,
        /// λ.
        weight_decay: f64,
    },
    /// AdamW (I. Loshchilov, F. Hutter, ICLR 2019): m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g²,
    /// θ ← θ − ηλθ − η·m̂/(√v̂ + ε).
    AdamW {
        /// η.
        learning_rate: f64,
        /// β₁.
        beta1: f64,
        /// β₂.
        beta2: f64,
        /// ε.
        epsilon: f64,
        /// λ.
        weight_decay: f64,
    },
}

/// A rule's memory of the steps so far, for one parameter.
#[derive(Debug, Clone)]
pub struct Reference {
    steps: i32,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Reference {
    /// Before the first step on a parameter of `length` numbers.
    pub fn new(length: usize) -> Self {
        Reference { steps: 0, first: vec![0.0; length], second: vec![0.0; length] }
    }

    /// The change that `rule` makes to `value` for `gradient`; its learning rate may differ from step to step.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn change(&mut self, rule: Rule, value: &[f64], gradient: &[f64]) -> Vec<f64> {
        let n = self.first.len();
        assert_eq!((value.len(), gradient.len()), (n, n), "lengths of a reference step");
        self.steps += 1;
        (0..n).map(|i| self.change_of(rule, i, value[i], gradient[i])).collect()
    }

    fn change_of(&mut self, rule: Rule, i: usize, value: f64, g: f64) -> f64 {
        match rule {
            Rule::Sgd { learning_rate, momentum, weight_decay } => {
                self.first[i] = momentum * self.first[i] + g + weight_decay * value;
                -learning_rate * self.first[i]
            }
            Rule::AdamW { learning_rate, beta1, beta2, epsilon, weight_decay } => {
                self.first[i] = beta1 * self.first[i] + (1.0 - beta1) * g;
                self.second[i] = beta2 * self.second[i] + (1.0 - beta2) * g * g;
                let mean = self.first[i] / (1.0 - beta1.powi(self.steps));
                let square = self.second[i] / (1.0 - beta2.powi(self.steps));
                -learning_rate * (weight_decay * value + mean / (square.sqrt() + epsilon))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_steps_are_those_of_the_formulas() {
        let sgd = Rule::Sgd { learning_rate: 0.1, momentum: 0.5, weight_decay: 0.0 };
        let mut reference = Reference::new(1);
        assert_eq!(reference.change(sgd, &[1.0], &[2.0]), [-0.2]);
        assert!((reference.change(sgd, &[0.8], &[2.0])[0] + 0.3).abs() < 1e-15); // b = 0.5·2 + 2
        let adamw = Rule::AdamW { learning_rate: 0.1, beta1: 0.9, beta2: 0.99, epsilon: 0.0, weight_decay: 0.5 };
        let mut reference = Reference::new(2);
        let change = reference.change(adamw, &[2.0, 0.0], &[3.0, -1e-3]);
        assert!((change[0] + 0.2).abs() < 1e-12 && (change[1] - 0.1).abs() < 1e-12, "{change:?}");
    }
}
