//! One case at one seed: what the arbiter says, and what two simpler checks say.

use super::case::{Case, Kind};
use super::kit::Kit;
use super::trainer::{Trainer, rule};
use crate::arbiter::candle::Model;
use crate::arbiter::{Expectation, ModelFault, Precision, Question, Questions, Subject, Verdict, judge};
use crate::rng::Stream;
use candle_core::backprop::GradStore;
use candle_core::{DType, Result, Tensor, Var};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Training steps whose loss is looked at.
pub const CURVE: usize = 60;
/// Batches that training goes through in turn.
const BATCHES: u64 = 4;

/// What three checks said of one case at one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The arbiter raised a finding; for a fault, of a parameter that the fault touches.
    pub arbiter: bool,
    /// The questions that failed.
    pub questions: BTreeSet<Question>,
    /// Some trainable parameter had no gradient or one of zeros only.
    pub presence: bool,
    /// The loss was not finite, or did not fall.
    pub curve: bool,
    /// Seconds the arbiter took.
    pub seconds: f64,
    /// Seconds of one training step.
    pub step_seconds: f64,
    /// The whole verdict.
    pub verdict: Verdict,
}

/// A case brought to life.
struct Living {
    case: Case,
    kit: Arc<Kit>,
    batches: Vec<Vec<Tensor>>,
}

impl Living {
    fn new(case: Case, seed: u64) -> Result<Self> {
        let kit = Kit::new(case.family.variables, seed, case.dtype, case.compute, case.plant)?;
        if let Some((copy, original)) = case.clone_of {
            kit.vars[copy].set(kit.vars[original].as_tensor())?;
        }
        let batch = |number: u64| {
            let stream = Stream::new(seed, &format!("batch/{number}"));
            let mut inputs = (case.family.inputs)(&stream, case.compute)?;
            if case.shuffled {
                inputs[1] = inputs[1].roll(1, 0)?;
            }
            Ok(inputs)
        };
        let batches = (0..BATCHES).map(batch).collect::<Result<_>>()?;
        Ok(Living { case, kit: Arc::new(kit), batches })
    }

    fn vars(&self) -> Vec<(String, Var)> {
        self.kit.vars.iter().map(|(name, var)| (name.clone(), var.clone())).collect()
    }

    fn trainer(&self) -> Result<Trainer> {
        let held = self.case.family.expectations.iter().filter(|(_, e)| *e == Expectation::Held);
        let held = held.map(|(name, _)| (*name).to_owned()).collect();
        Trainer::new(self.vars(), held, self.case.rate, self.case.step)
    }

    fn loss(&self) -> impl Fn(&[Tensor]) -> Result<Tensor> + 'static {
        let (kit, loss) = (self.kit.clone(), self.case.family.loss);
        move |inputs: &[Tensor]| kit.loss(&loss, inputs)
    }

    fn model(&self) -> Result<Model<'static>> {
        let mut trainer = self.trainer()?;
        let mut model = Model::from_vars(self.vars(), self.batches[0].clone(), self.loss())
            .optimizer(move |gradients: &GradStore| trainer.step(gradients))
            .batches(self.batches.clone())
            .rule(rule(self.case.rate));
        if self.case.compute == DType::BF16 {
            model = model.loss_in(Precision::Bf16);
        }
        for (name, expectation) in self.case.family.expectations {
            model = model.expect(name, expectation.clone())?;
        }
        match self.case.clone_of {
            Some((copy, original)) => model.expect(copy, Expectation::Tied(original.to_owned())),
            None => Ok(model),
        }
    }

    /// Losses of a training run of so many steps, and the seconds of one.
    fn curve(&self, steps: usize) -> Result<(Vec<f64>, f64)> {
        let (loss, mut trainer) = (self.loss(), self.trainer()?);
        let started = Instant::now();
        let mut losses = Vec::with_capacity(steps);
        for step in 0..steps {
            let now = loss(&self.batches[step % self.batches.len()])?;
            trainer.step(&now.backward()?)?;
            losses.push(now.to_dtype(DType::F64)?.to_scalar()?);
        }
        Ok((losses, started.elapsed().as_secs_f64() / steps as f64))
    }
}

/// The rule for a curve: a loss that is not finite, or a last quarter no lower than the first.
pub fn looks_ill(losses: &[f64]) -> bool {
    let quarter = (losses.len() / 4).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let (first, last) = (mean(&losses[..quarter]), mean(&losses[losses.len() - quarter..]));
    !losses.iter().all(|loss| loss.is_finite()) || last >= first
}

/// Puts `case` before the arbiter and the two simpler checks.
///
/// # Errors
/// When a pass of the model fails.
pub fn run(case: &Case, seed: u64) -> std::result::Result<Trial, ModelFault> {
    let living = Living::new(*case, seed)?;
    let presence = presence_only(&mut living.model()?)?;
    let questions = Questions { seed, explain: false, ..Questions::default() };
    let started = Instant::now();
    let verdict = judge(&mut living.model()?, &questions)?;
    let seconds = started.elapsed().as_secs_f64();
    let (losses, step_seconds) = Living::new(*case, seed)?.curve(CURVE)?;
    let touched = touched(case, seed)?;
    let hits = |name: &String| case.kind == Kind::Healthy || touched.contains(name);
    Ok(Trial {
        arbiter: verdict.findings.iter().any(|f| hits(&f.parameter)),
        questions: verdict.findings.iter().map(|f| f.question).collect(),
        presence,
        curve: looks_ill(&losses),
        seconds,
        step_seconds,
        verdict,
    })
}

/// Missing or all zero, with nothing declared but what is held: the check of earlier tools.
fn presence_only(model: &mut Model) -> std::result::Result<bool, ModelFault> {
    model.backward()?;
    let learns = |e: &Expectation| !matches!(e, Expectation::Held | Expectation::Frozen | Expectation::Tied(_));
    let parameters = model.parameters();
    let mut indices = (0..parameters.len()).filter(|i| learns(&parameters[*i].expectation));
    Ok(indices.any(|i| model.gradient(i).is_none_or(|g| (0..g.len()).all(|j| g.at(j) == 0.0))))
}

/// The parameters whose gradient or movement differs from that of the healthy twin.
fn touched(case: &Case, seed: u64) -> std::result::Result<BTreeSet<String>, ModelFault> {
    let twin = Case {
        plant: None,
        step: None,
        clone_of: None,
        dtype: DType::F64,
        compute: DType::F64,
        shuffled: false,
        ..*case
    };
    let (mut faulty, mut healthy) = (Living::new(*case, seed)?.model()?, Living::new(twin, seed)?.model()?);
    let mut touched = BTreeSet::new();
    for number in 0..3 {
        for model in [&mut faulty, &mut healthy] {
            // A second pass first, so that what grows or flickers from pass to pass differs too.
            model.backward()?;
            model.step(number).transpose()?;
        }
        for (i, parameter) in healthy.parameters().iter().enumerate() {
            let gradients = [&faulty, &healthy].map(|model| model.gradient(i).map(|g| g.to_vec()));
            let values = [&faulty, &healthy].map(|model| model.value(i));
            if gradients[0] != gradients[1] || values[0] != values[1] {
                touched.insert(parameter.name.clone());
            }
        }
    }
    Ok(touched)
}

#[cfg(test)]
mod tests {
    use super::super::case::{faults, healthy_models};
    use super::*;
    use std::path::Path;

    /// Family, what is wrong, and the losses of the first steps at seed 0, of every case in f64.
    const LOSSES: &str = include_str!("losses.csv");
    /// The first batch comes again after all of them.
    const STEPS: usize = BATCHES as usize + 1;

    /// A stored score is that of these models and these faults: one that changes needs a new score
    /// (`make arbiter-store`), and then new losses: `SHIKHA_WRITE_LOSSES=1 cargo test --release --lib corpus_is`.
    #[test]
    fn the_corpus_is_the_one_that_was_scored() {
        let cases = healthy_models().into_iter().chain(faults());
        let in_f64 = cases.filter(|case| (case.dtype, case.compute) == (DType::F64, DType::F64));
        let rows: Vec<(String, Vec<f64>)> = in_f64
            .map(|case| {
                let name = format!("{};{}", case.family.name, case.title);
                (name, Living::new(case, 0).unwrap().curve(STEPS).unwrap().0)
            })
            .collect();
        if std::env::var_os("SHIKHA_WRITE_LOSSES").is_some() {
            let line = |(name, losses): &(String, Vec<f64>)| {
                let losses: Vec<String> = losses.iter().map(|loss| format!("{loss:.12e}")).collect();
                format!("{name};{}\n", losses.join(";"))
            };
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/arbiter/faults/losses.csv");
            std::fs::write(path, rows.iter().map(line).collect::<String>()).unwrap();
            return;
        }
        assert_eq!(LOSSES.lines().count(), rows.len());
        for ((name, losses), line) in rows.iter().zip(LOSSES.lines()) {
            let stored = line.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix(';'));
            let stored = stored.unwrap_or_else(|| panic!("{name} where {line} was"));
            let stored: Vec<f64> = stored.split(';').map(|loss| loss.parse().unwrap()).collect();
            // The processor has its say in the last places of a sum.
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs() || (a.is_nan() && b.is_nan());
            let all = losses.len() == stored.len() && losses.iter().zip(&stored).all(|(a, b)| close(*a, *b));
            assert!(all, "{name}: {losses:?}, stored {stored:?}");
        }
    }
}
