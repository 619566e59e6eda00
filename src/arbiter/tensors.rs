//! The adapter for any framework: tensors in safetensors files.
//!
//! A dump is one file of parameters, one of their gradients under the same names, and as far as they
//! are known: the parameters after one optimizer step or more, the gradients of the later steps, and the
//! gradients of a second pass over the same probe. `docs/arbiter.md` gives the layout.

use super::{Expectation, Expected, Finding, ModelFault, Numbers, Parameter, Precision, Question, Questions, Subject};
use super::{Verdict, judge};
use crate::error::FileError;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why a dump cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is not safetensors.
    #[error("{}: not a whole safetensors file: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        reason: String,
    },
    /// A tensor is not of floating-point numbers.
    #[error("{}: `{name}` is of {dtype}, expected F64, F32, F16 or BF16", path.display())]
    Type {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Its type.
        dtype: String,
    },
    /// A parameter is absent after a step, or has another shape there.
    #[error("{}: `{name}` {problem}; dump every parameter after the step under its own name", path.display())]
    After {
        /// The file.
        path: PathBuf,
        /// The parameter.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The numbers of files do not go together.
    #[error(
        "there are parameters after {after} steps and the gradients of {gradients}: give the gradients once a step, and at least once"
    )]
    Steps {
        /// Files of parameters after a step.
        after: usize,
        /// Files of gradients.
        gradients: usize,
    },
    /// The declarations cannot be read.
    #[error("{}: {reason}", path.display())]
    Declarations {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The model under test failed, which files cannot.
    #[error("{0}")]
    Model(ModelFault),
}

/// Where a dump lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dump {
    /// Parameters before the first step.
    pub parameters: PathBuf,
    /// Gradients of the first step, then of each later one as far as dumped.
    pub gradients: Vec<PathBuf>,
    /// Parameters after each step.
    pub after: Vec<PathBuf>,
    /// Gradients of a second pass over the first probe.
    pub again: Option<PathBuf>,
    /// What is declared, TOML.
    pub declarations: Option<PathBuf>,
}

/// What a user declares of a dump.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Declarations {
    /// An expectation a parameter.
    expect: BTreeMap<String, Expectation>,
    /// Independent units a parameter, where that is not its first axis.
    units: BTreeMap<String, usize>,
    /// Names that must be there.
    names: Vec<String>,
    /// Parameters that there must be.
    count: Option<usize>,
    /// Numbers that there must be in all.
    numbers: Option<u64>,
}

struct Tensor {
    shape: Vec<usize>,
    precision: Precision,
    values: Vec<f64>,
}

type Tensors = BTreeMap<String, Tensor>;

fn read(path: &Path) -> Result<Tensors, DumpError> {
    let bytes = std::fs::read(path).map_err(FileError::at("read", path))?;
    let format = |reason: String| DumpError::Format { path: path.to_path_buf(), reason };
    let file = SafeTensors::deserialize(&bytes).map_err(|e| format(e.to_string()))?;
    let mut tensors = Tensors::new();
    for (name, view) in file.iter() {
        let kind =
            || DumpError::Type { path: path.to_path_buf(), name: name.to_owned(), dtype: view.dtype().to_string() };
        let (precision, values) = numbers(&view).ok_or_else(kind)?;
        tensors.insert(name.to_owned(), Tensor { shape: view.shape().to_vec(), precision, values });
    }
    Ok(tensors)
}

/// The numbers of a tensor, little-endian as the format has them.
fn numbers(view: &TensorView) -> Option<(Precision, Vec<f64>)> {
    fn each<const N: usize>(data: &[u8], number: fn([u8; N]) -> f64) -> Vec<f64> {
        let whole = |chunk: &[u8]| chunk.try_into().map(number).unwrap_or(f64::NAN);
        data.chunks_exact(N).map(whole).collect()
    }
    let data = view.data();
    Some(match view.dtype() {
        Dtype::F64 => (Precision::F64, each::<8>(data, f64::from_le_bytes)),
        Dtype::F32 => (Precision::F32, each::<4>(data, |b| f64::from(f32::from_le_bytes(b)))),
        Dtype::F16 => (Precision::F16, each::<2>(data, |b| half::f16::from_le_bytes(b).to_f64())),
        Dtype::BF16 => (Precision::Bf16, each::<2>(data, |b| half::bf16::from_le_bytes(b).to_f64())),
        _ => return None,
    })
}

/// The files as a subject.
struct Files {
    parameters: Vec<Parameter>,
    /// Before the first step, then after each.
    values: Vec<Vec<Vec<f64>>>,
    /// Of each step, as far as dumped.
    gradients: Vec<Tensors>,
    again: Option<Tensors>,
    passes: usize,
    step: Option<usize>,
}

impl Subject for Files {
    fn parameters(&self) -> Vec<Parameter> {
        self.parameters.clone()
    }

    fn backward(&mut self) -> Result<f64, ModelFault> {
        self.passes += 1;
        Ok(0.0)
    }

    fn gradient(&self, index: usize) -> Option<Numbers<'_>> {
        let name = &self.parameters[index].name;
        let tensors = match (self.step, &self.again) {
            (Some(step), _) => self.gradients.get(step)?,
            // The first pass is judge's own, the second the first of *repeatable*.
            (None, Some(again)) if self.passes > 2 => again,
            _ => self.gradients.first()?,
        };
        tensors.get(name).map(|tensor| Numbers::F64(&tensor.values))
    }

    fn value(&self, index: usize) -> Option<Vec<f64>> {
        Some(self.values[self.step.map_or(0, |step| step + 1)][index].clone())
    }

    fn step(&mut self, number: usize) -> Option<Result<(), ModelFault>> {
        (number + 1 < self.values.len()).then(|| {
            self.step = Some(number);
            Ok(())
        })
    }

    fn repeats(&self) -> bool {
        self.again.is_some()
    }
}

/// Judges a dump: *present*, *finite*, *non-zero*; *applied* when the parameters after a step are there,
/// *repeatable* when a second pass is. *Right* needs the model itself.
///
/// # Errors
/// [`DumpError`] when a file is broken or something does not fit.
pub fn check_dump(dump: &Dump) -> Result<Verdict, DumpError> {
    let steps = dump.after.len();
    if dump.gradients.len() != steps.max(1) {
        return Err(DumpError::Steps { after: steps, gradients: dump.gradients.len() });
    }
    let before = read(&dump.parameters)?;
    let gradients = dump.gradients.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let again = dump.again.as_deref().map(read).transpose()?;
    let declared = declarations(dump.declarations.as_deref(), &before)?;
    let mut values = vec![before.values().map(|t| t.values.clone()).collect::<Vec<_>>()];
    for path in &dump.after {
        values.push(after(path, &before)?);
    }
    let parameters = before.iter().map(|(name, tensor)| parameter(name, tensor, &declared)).collect();
    let mut findings = strangers(&gradients, &before);
    findings.extend(other_shapes(&gradients, &before));
    let mut files = Files { parameters, values, gradients, again, passes: 0, step: None };
    let mut questions = Questions { right: None, steps, explain: false, ..Questions::default() };
    questions.expected = expected(declared);
    let mut verdict = judge(&mut files, &questions).map_err(DumpError::Model)?;
    verdict.findings.extend(findings);
    Ok(verdict)
}

fn parameter(name: &str, tensor: &Tensor, declared: &Declarations) -> Parameter {
    Parameter {
        name: name.to_owned(),
        shape: tensor.shape.clone(),
        precision: tensor.precision,
        units: declared.units.get(name).copied(),
        expectation: declared.expect.get(name).cloned().unwrap_or(Expectation::Trainable),
    }
}

fn declarations(path: Option<&Path>, parameters: &Tensors) -> Result<Declarations, DumpError> {
    let Some(path) = path else { return Ok(Declarations::default()) };
    let wrong = |reason: String| DumpError::Declarations { path: path.to_path_buf(), reason };
    let text = std::fs::read_to_string(path).map_err(FileError::at("read", path))?;
    let declared: Declarations = toml::from_str(&text).map_err(|e| wrong(e.to_string().trim().replace('\n', " ")))?;
    match declared.expect.keys().chain(declared.units.keys()).find(|name| !parameters.contains_key(*name)) {
        Some(name) => Err(wrong(format!("declares `{name}`, which is not among the parameters"))),
        None => Ok(declared),
    }
}

fn expected(declared: Declarations) -> Vec<Expected> {
    let names = (!declared.names.is_empty()).then_some(Expected::Names(declared.names));
    let counts = declared.count.map(Expected::Count).into_iter().chain(declared.numbers.map(Expected::Numbers));
    names.into_iter().chain(counts).collect()
}

fn after(path: &Path, before: &Tensors) -> Result<Vec<Vec<f64>>, DumpError> {
    let mut after = read(path)?;
    let wrong =
        |name: &str, problem: String| DumpError::After { path: path.to_path_buf(), name: name.to_owned(), problem };
    let mut values = Vec::with_capacity(before.len());
    for (name, tensor) in before {
        let moved = after.remove(name).ok_or_else(|| wrong(name, "is missing".to_owned()))?;
        if moved.shape != tensor.shape {
            return Err(wrong(name, format!("has the shape {:?} and before {:?}", moved.shape, tensor.shape)));
        }
        values.push(moved.values);
    }
    Ok(values)
}

/// Gradients of parameters that the parameters' file does not hold: the framework hides them from its visitor.
fn strangers(gradients: &[Tensors], parameters: &Tensors) -> Vec<Finding> {
    let names = gradients.first().into_iter().flat_map(|g| g.keys()).filter(|name| !parameters.contains_key(*name));
    let evidence = "has a gradient but is not among the parameters: no optimizer will be handed it".to_owned();
    let finding =
        |name: &String| Finding { parameter: name.clone(), question: Question::Present, evidence: evidence.clone() };
    names.map(finding).collect()
}

/// Gradients of as many numbers as the parameter but another shape.
fn other_shapes(gradients: &[Tensors], parameters: &Tensors) -> Vec<Finding> {
    let pairs = gradients.iter().flatten().filter_map(|(name, g)| Some((name, g, parameters.get(name)?)));
    let other = pairs.filter(|(_, g, p)| g.shape != p.shape && g.values.len() == p.values.len());
    let finding = |(name, g, p): (&String, &Tensor, &Tensor)| Finding {
        parameter: name.clone(),
        question: Question::Present,
        evidence: format!("has a gradient of shape {:?}, expected {:?}", g.shape, p.shape),
    };
    other.map(finding).collect()
}
