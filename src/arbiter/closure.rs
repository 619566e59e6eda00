//! The adapter for hand-written models: numbers in, loss and gradients out.

use super::{ModelFault, Numbers, Parameter, Precision, Rule, Subject};

/// A gradient for each parameter, `None` where the model gives none.
pub type Gradients = Vec<Option<Vec<f64>>>;

type Pass<'a> = Box<dyn FnMut(&[Vec<f64>], usize) -> Result<(f64, Gradients), ModelFault> + 'a>;
type Optimizer<'a> = Box<dyn FnMut(&mut [Vec<f64>], &Gradients) -> Result<(), ModelFault> + 'a>;

/// A model that is a function from its parameters' numbers to a loss and gradients.
pub struct Closure<'a> {
    parameters: Vec<Parameter>,
    values: Vec<Vec<f64>>,
    gradients: Gradients,
    pass: Pass<'a>,
    optimizer: Option<Optimizer<'a>>,
    rule: Option<Rule>,
    precision: Precision,
}

impl<'a> Closure<'a> {
    /// `pass(values, batch)` gives loss and gradients at `values`, in the order of `parameters`, on
    /// probe `batch`: 0 for all questions but *applied*, which takes the next one each step.
    pub fn new(
        parameters: Vec<(Parameter, Vec<f64>)>,
        pass: impl FnMut(&[Vec<f64>], usize) -> Result<(f64, Gradients), ModelFault> + 'a,
    ) -> Self {
        let (parameters, values): (Vec<_>, Vec<_>) = parameters.into_iter().unzip();
        let gradients = vec![None; values.len()];
        let (pass, precision) = (Box::new(pass), Precision::F64);
        Closure { parameters, values, gradients, pass, optimizer: None, rule: None, precision }
    }

    /// With the optimizer that training uses.
    pub fn optimizer(mut self, step: impl FnMut(&mut [Vec<f64>], &Gradients) -> Result<(), ModelFault> + 'a) -> Self {
        self.optimizer = Some(Box::new(step));
        self
    }

    /// Holds the optimizer to this rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Says that the loss is computed in another number type than f64.
    pub fn loss_in(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }
}

impl Subject for Closure<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn backward(&mut self) -> Result<f64, ModelFault> {
        let (loss, gradients) = (self.pass)(&self.values, 0)?;
        self.gradients = gradients;
        Ok(loss)
    }

    fn gradient(&self, index: usize) -> Option<Numbers<'_>> {
        self.gradients.get(index)?.as_deref().map(Numbers::F64)
    }

    fn value(&self, index: usize) -> Option<Vec<f64>> {
        Some(self.values[index].clone())
    }

    fn loss_at(&mut self, index: usize, values: &[f64]) -> Option<Result<f64, ModelFault>> {
        let kept = std::mem::replace(&mut self.values[index], values.to_vec());
        let result = (self.pass)(&self.values, 0).map(|(loss, _)| loss);
        self.values[index] = kept;
        Some(result)
    }

    fn loss_precision(&self) -> Precision {
        self.precision
    }

    fn step(&mut self, number: usize) -> Option<Result<(), ModelFault>> {
        let optimizer = self.optimizer.as_mut()?;
        Some((self.pass)(&self.values, number).and_then(|(_, gradients)| {
            self.gradients = gradients;
            optimizer(&mut self.values, &self.gradients)
        }))
    }

    fn rule(&self, _: usize) -> Option<Rule> {
        self.rule
    }
}
