//! A Candle model under the arbiter.

use super::cut;
use crate::arbiter::{
    Expectation, ModelFault, Numbers, Parameter, Precision, Questions, Rule, Subject, Verdict, judge,
};
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::VarMap;

type Loss<'a> = Box<dyn Fn(&[Tensor]) -> Result<Tensor> + 'a>;
type Optimizer<'a> = Box<dyn FnMut(&GradStore) -> Result<()> + 'a>;

/// Named variables, the function that gives their loss on a probe, and the optimizer.
pub struct Model<'a> {
    parameters: Vec<Parameter>,
    vars: Vec<Var>,
    loss: Loss<'a>,
    inputs: Vec<Tensor>,
    /// The inputs with other strides, while a variant is on.
    strided: Option<Vec<Tensor>>,
    batches: Vec<Vec<Tensor>>,
    optimizer: Option<Optimizer<'a>>,
    rule: Option<Rule>,
    loss_precision: Option<Precision>,
    gradients: Vec<Option<Vec<f64>>>,
}

impl<'a> Model<'a> {
    /// All variables of `vars`, by name; `loss` gives the loss of the probe, a scalar. It must give the
    /// same each time: a fixed batch, no unseeded dropout.
    pub fn new(vars: &VarMap, loss: impl Fn() -> Result<Tensor> + 'a) -> Self {
        let data = vars.data().lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut named: Vec<(String, Var)> = data.iter().map(|(name, var)| (name.clone(), var.clone())).collect();
        named.sort_by(|a, b| a.0.cmp(&b.0)); // the map gives another order in every process
        Self::from_vars(named, Vec::new(), move |_| loss())
    }

    /// Given variables and inputs. The inputs are handed to `loss`, so that the arbiter can lay the same
    /// numbers out in memory in another order: contiguity decides which kernels Candle runs.
    pub fn from_vars(
        vars: Vec<(String, Var)>,
        inputs: Vec<Tensor>,
        loss: impl Fn(&[Tensor]) -> Result<Tensor> + 'a,
    ) -> Self {
        let parameter = |(name, var): &(String, Var)| Parameter {
            precision: precision(var.dtype()),
            ..Parameter::new(name.clone(), var.dims())
        };
        let parameters: Vec<Parameter> = vars.iter().map(parameter).collect();
        let gradients = vec![None; vars.len()];
        let vars = vars.into_iter().map(|(_, var)| var).collect();
        let (loss, batches): (Loss, _) = (Box::new(loss), Vec::new());
        let (strided, optimizer, rule, loss_precision) = (None, None, None, None);
        Model { parameters, vars, loss, inputs, strided, batches, optimizer, rule, loss_precision, gradients }
    }

    /// Declares what to expect of the parameter called `name`.
    ///
    /// # Errors
    /// When there is no such parameter.
    pub fn expect(mut self, name: &str, expectation: Expectation) -> Result<Self> {
        self.named(name)?.expectation = expectation;
        Ok(self)
    }

    /// Declares that the parameter called `name` is made of so many equal parts that learn independently.
    ///
    /// # Errors
    /// When there is no such parameter.
    pub fn units(mut self, name: &str, units: usize) -> Result<Self> {
        self.named(name)?.units = Some(units);
        Ok(self)
    }

    fn named(&mut self, name: &str) -> Result<&mut Parameter> {
        let known: Vec<String> = self.parameters.iter().map(|p| p.name.clone()).collect();
        let message = || format!("there is no parameter called `{name}`, only {}", known.join(", "));
        self.parameters.iter_mut().find(|p| p.name == name).ok_or_else(|| candle_core::Error::Msg(message()))
    }

    /// With the step of the optimizer that training uses, such as `|g| adamw.step(g)`.
    pub fn optimizer(mut self, step: impl FnMut(&GradStore) -> Result<()> + 'a) -> Self {
        self.optimizer = Some(Box::new(step));
        self
    }

    /// Other inputs for the training steps of *applied*, one set a step: defects of an optimizer's state
    /// show when the gradient changes.
    pub fn batches(mut self, batches: Vec<Vec<Tensor>>) -> Self {
        self.batches = batches;
        self
    }

    /// Holds the optimizer to this rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Says how exact the loss is, when that is less than its own dtype: a model in bf16 whose loss is f32.
    pub fn loss_in(mut self, precision: Precision) -> Self {
        self.loss_precision = Some(precision);
        self
    }

    /// Asks everything.
    ///
    /// # Errors
    /// When a pass of the model fails.
    pub fn judge(&mut self) -> std::result::Result<Verdict, ModelFault> {
        judge(self, &Questions::default())
    }

    fn run(&mut self, inputs: &[Tensor]) -> Result<(f64, GradStore)> {
        let loss = (self.loss)(inputs)?;
        let gradients = loss.backward()?;
        self.gradients =
            self.vars.iter().map(|var| gradients.get(var).map(numbers).transpose()).collect::<Result<_>>()?;
        Ok((scalar(&loss)?, gradients))
    }

    fn current(&self) -> Vec<Tensor> {
        self.strided.as_ref().unwrap_or(&self.inputs).clone()
    }

    fn train(&mut self, number: usize) -> Result<()> {
        let inputs = self.batches.get(number).cloned().unwrap_or_else(|| self.current());
        let (_, gradients) = self.run(&inputs)?;
        self.optimizer.as_mut().map_or(Ok(()), |step| step(&gradients))
    }

    fn shifted(&self, index: usize, values: &[f64]) -> Result<f64> {
        let var = &self.vars[index];
        let kept = var.as_tensor().copy()?;
        var.set(&tensor(values, var.as_tensor())?)?;
        let loss = (self.loss)(&self.current()).and_then(|loss| scalar(&loss));
        var.set(&kept)?;
        loss
    }
}

fn precision(dtype: DType) -> Precision {
    match dtype {
        DType::F64 => Precision::F64,
        DType::BF16 => Precision::Bf16,
        DType::F16 => Precision::F16,
        _ => Precision::F32,
    }
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

fn scalar(loss: &Tensor) -> Result<f64> {
    loss.to_dtype(DType::F64)?.to_scalar()
}

fn tensor(values: &[f64], like: &Tensor) -> Result<Tensor> {
    Tensor::from_slice(values, like.shape(), &Device::Cpu)?.to_device(like.device())?.to_dtype(like.dtype())
}

/// The same numbers with the strides of a transposed tensor; `None` where the rank is below 2.
fn transposed_strides(tensor: &Tensor) -> Result<Option<Tensor>> {
    let rank = tensor.rank();
    if rank < 2 || tensor.dims()[rank - 1] < 2 || tensor.dims()[rank - 2] < 2 {
        return Ok(None);
    }
    tensor.transpose(rank - 2, rank - 1)?.contiguous()?.transpose(rank - 2, rank - 1).map(Some)
}

impl Subject for Model<'_> {
    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn backward(&mut self) -> std::result::Result<f64, ModelFault> {
        Ok(self.run(&self.current())?.0)
    }

    fn gradient(&self, index: usize) -> Option<Numbers<'_>> {
        self.gradients[index].as_deref().map(Numbers::F64)
    }

    fn value(&self, index: usize) -> Option<Vec<f64>> {
        numbers(self.vars[index].as_tensor()).ok()
    }

    fn loss_at(&mut self, index: usize, values: &[f64]) -> Option<std::result::Result<f64, ModelFault>> {
        Some(self.shifted(index, values).map_err(Into::into))
    }

    fn loss_precision(&self) -> Precision {
        let coarsest = self.parameters.iter().map(|p| p.precision).reduce(Precision::coarser);
        self.loss_precision.or(coarsest).unwrap_or(Precision::F32)
    }

    fn step(&mut self, number: usize) -> Option<std::result::Result<(), ModelFault>> {
        self.optimizer.as_ref()?;
        Some(self.train(number).map_err(Into::into))
    }

    fn rule(&self, _: usize) -> Option<Rule> {
        self.rule
    }

    fn variants(&self) -> usize {
        let other = |tensor: &Tensor| transposed_strides(tensor).ok().flatten().is_some();
        usize::from(self.inputs.iter().any(other))
    }

    fn set_variant(&mut self, number: Option<usize>) -> String {
        let other = |tensor: &Tensor| transposed_strides(tensor).ok().flatten().unwrap_or_else(|| tensor.clone());
        self.strided = number.map(|_| self.inputs.iter().map(other).collect());
        "inputs that are not contiguous".to_owned()
    }

    fn explain(&mut self, _: &[usize]) -> Option<String> {
        let inputs = self.current();
        cut::explain(|| {
            let _ = (self.loss)(&inputs);
        })
    }
}
