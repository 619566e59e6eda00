//! The gradient-flow arbiter's adapter for Burn 0.22: a module, the function that gives its loss, an
//! optimizer's step.
//!
//! Parameters are found by the module's own visitor, with dotted names. The visitor shows only what
//! Burn's derive knows of; bring a count or a list with [`Questions::expecting`] to notice fields it
//! leaves out.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{DType, Gradients, Tensor, TensorData};
use shikha::arbiter::{
    Expectation, ModelFault, Numbers, Parameter, Precision, Questions, Rule, Subject, Verdict, judge,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Loss<'a, M> = Box<dyn Fn(&M, usize) -> Tensor<1> + 'a>;
type Step<'a, M> = Box<dyn FnMut(M, Gradients) -> M + 'a>;

/// A Burn module under the arbiter.
pub struct Model<'a, M> {
    module: Option<M>,
    loss: Loss<'a, M>,
    step: Option<Step<'a, M>>,
    rule: Option<Rule>,
    parameters: Vec<Parameter>,
    ids: Vec<ParamId>,
    values: Vec<Vec<f64>>,
    gradients: Vec<Option<Vec<f64>>>,
}

impl<'a, M: Module> Model<'a, M> {
    /// `loss(module, batch)` gives the loss on probe `batch`: 0 for all questions but *applied*, which takes
    /// the next one each step. The module must be the object that trains: a moved or mapped copy has
    /// other leaves. Parameters that share an identity are declared tied.
    pub fn new(module: M, loss: impl Fn(&M, usize) -> Tensor<1> + 'a) -> Self {
        let mut walk = Walk::default();
        module.visit(&mut walk);
        let mut parameters: Vec<Parameter> = Vec::new();
        for (i, seen) in walk.seen.iter().enumerate() {
            let twin = walk.seen[..i].iter().find(|other| other.id == seen.id);
            let expectation = twin.map_or(Expectation::Trainable, |twin| Expectation::Tied(twin.name.clone()));
            let parameter = Parameter::new(seen.name.clone(), seen.shape.clone());
            parameters.push(parameter.in_precision(seen.precision).expecting(expectation));
        }
        let ids = walk.seen.iter().map(|seen| seen.id).collect();
        let gradients = vec![None; parameters.len()];
        let values = walk.seen.into_iter().map(|seen| seen.values).collect();
        let (loss, step): (Loss<'a, M>, _) = (Box::new(loss), None);
        Model { module: Some(module), loss, step, rule: None, parameters, ids, values, gradients }
    }

    /// With the step of the optimizer that training uses: module and gradients in, module out.
    pub fn optimizer(mut self, step: impl FnMut(M, Gradients) -> M + 'a) -> Self {
        self.step = Some(Box::new(step));
        self
    }

    /// Holds the optimizer to this rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Declares what to expect of the parameter called `name`.
    ///
    /// # Errors
    /// When there is no such parameter.
    pub fn expect(mut self, name: &str, expectation: Expectation) -> Result<Self, ModelFault> {
        let known: Vec<String> = self.parameters.iter().map(|p| p.name.clone()).collect();
        let found = self.parameters.iter_mut().find(|p| p.name == name);
        let message = || format!("there is no parameter called `{name}`, only {}", known.join(", "));
        found.ok_or_else(message)?.expectation = expectation;
        Ok(self)
    }

    /// Asks everything.
    ///
    /// # Errors
    /// When a pass of the module panics.
    pub fn judge(&mut self) -> Result<Verdict, ModelFault> {
        judge(self, &Questions::default())
    }

    fn module(&self) -> Result<&M, ModelFault> {
        self.module.as_ref().ok_or_else(|| "the module was lost when a step panicked".into())
    }

    /// A panic inside Burn as an error: several of its faults show that way only.
    fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, ModelFault> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            format!("Burn panicked: {}", text.unwrap_or_else(|| "without a message".to_owned())).into()
        })
    }

    fn run(&mut self, batch: usize) -> Result<(f64, Gradients), ModelFault> {
        let (module, loss) = (self.module()?, &self.loss);
        let (value, gradients, seen) = Self::guarded(|| {
            let loss = loss(module, batch);
            let value = scalar(&loss);
            let gradients = loss.backward();
            let mut walk = Walk { tape: Some(&gradients), ..Walk::default() };
            module.visit(&mut walk);
            let seen = walk.seen;
            (value, gradients, seen)
        })?;
        self.gradients = seen.into_iter().map(|seen| seen.gradient).collect();
        Ok((value, gradients))
    }

    fn train(&mut self, number: usize) -> Result<(), ModelFault> {
        let (_, gradients) = self.run(number)?;
        let module = self.module.take().ok_or("the module was lost when a step panicked")?;
        let Some(step) = self.step.as_mut() else { return Ok(()) };
        let module = Self::guarded(|| step(module, gradients))?;
        let mut walk = Walk::default();
        module.visit(&mut walk);
        self.values = walk.seen.into_iter().map(|seen| seen.values).collect();
        self.module = Some(module);
        Ok(())
    }

    fn shifted(&self, index: usize, values: &[f64]) -> Result<f64, ModelFault> {
        let (module, loss) = (self.module()?.clone(), &self.loss);
        Self::guarded(|| {
            let mut shift = Shift { at: index, position: 0, values };
            scalar(&loss(&module.map(&mut shift), 0))
        })
    }

    /// Identities of the parameters, in the order of the walk.
    pub fn ids(&self) -> &[ParamId] {
        &self.ids
    }
}

fn scalar(loss: &Tensor<1>) -> f64 {
    loss.clone().inner().into_data().iter::<f64>().next().unwrap_or(f64::NAN)
}

fn numbers(data: &TensorData) -> Vec<f64> {
    data.iter::<f64>().collect()
}

fn precision(dtype: DType) -> Precision {
    match dtype {
        DType::F64 => Precision::F64,
        DType::F16 => Precision::F16,
        DType::BF16 => Precision::Bf16,
        _ => Precision::F32,
    }
}

struct Seen {
    name: String,
    shape: Vec<usize>,
    precision: Precision,
    id: ParamId,
    values: Vec<f64>,
    gradient: Option<Vec<f64>>,
}

/// The visitor: names from the modules it enters, gradients from the tape when there is one.
#[derive(Default)]
struct Walk<'a> {
    tape: Option<&'a Gradients>,
    path: Vec<String>,
    seen: Vec<Seen>,
}

impl ModuleVisitor for Walk<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        self.seen.push(Seen {
            name: self.path.join("."),
            shape: tensor.dims().to_vec(),
            precision: precision(tensor.dtype()),
            id: param.id,
            gradient: self.tape.and_then(|tape| tensor.grad(tape)).map(|g| numbers(&g.into_data())),
            values: numbers(&tensor.inner().into_data()),
        });
    }

    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}

/// Puts `values` in place of the parameter at position `at` of the walk.
struct Shift<'a> {
    at: usize,
    position: usize,
    values: &'a [f64],
}

impl ModuleMapper for Shift<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let here = self.position == self.at;
        self.position += 1;
        if !here {
            return param;
        }
        let (id, tensor, mapper) = param.consume();
        let data = TensorData::new(self.values.to_vec(), tensor.dims()).convert_dtype(tensor.dtype());
        let tensor = Tensor::from_data(data, (&tensor.device(), tensor.dtype()));
        Param::from_mapped_value(id, tensor, mapper)
    }
}

impl<M: Module> Subject for Model<'_, M> {
    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn backward(&mut self) -> Result<f64, ModelFault> {
        Ok(self.run(0)?.0)
    }

    fn gradient(&self, index: usize) -> Option<Numbers<'_>> {
        self.gradients.get(index)?.as_deref().map(Numbers::F64)
    }

    fn value(&self, index: usize) -> Option<Vec<f64>> {
        self.values.get(index).cloned()
    }

    fn loss_at(&mut self, index: usize, values: &[f64]) -> Option<Result<f64, ModelFault>> {
        Some(self.shifted(index, values))
    }

    fn loss_precision(&self) -> Precision {
        let coarser = |a: Precision, b: Precision| if a.unit_roundoff() > b.unit_roundoff() { a } else { b };
        self.parameters.iter().map(|p| p.precision).fold(Precision::F64, coarser)
    }

    fn step(&mut self, number: usize) -> Option<Result<(), ModelFault>> {
        self.step.as_ref()?;
        Some(self.train(number))
    }

    fn rule(&self, _: usize) -> Option<Rule> {
        self.rule
    }
}
