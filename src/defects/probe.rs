//! Is the gradient that autograd gives the one that finite differences give?

use super::Verdict;
use crate::arbiter::candle::Model;
use candle_core::{DType, Device, Result, Tensor, Var};

/// Fixed, irregular numbers in [−1, 1): the same in every run and on every machine.
pub(super) fn numbers(count: usize, salt: u64) -> Vec<f64> {
    let stream = crate::rng::Stream::new(salt, "defects");
    (0..count as u64).map(|i| 2.0 * stream.uniform(i) - 1.0).collect()
}

/// A contiguous tensor of [`numbers`].
pub(super) fn tensor(shape: &[usize], salt: u64, dtype: DType) -> Result<Tensor> {
    let count = shape.iter().product();
    Tensor::from_vec(numbers(count, salt), shape, &Device::Cpu)?.to_dtype(dtype)
}

/// Σ op(x)∘c with irregular weights c, so that no error cancels.
fn loss(op: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let y = op(x)?;
    let weights = tensor(y.dims(), 99, y.dtype())?;
    (y * weights)?.sum_all()
}

/// Compares autograd's gradient of Σ op(x)∘c at `x` with central differences. `x` is f64 or f32.
///
/// The defect is present when there is no gradient although the differences are not zero, or when the
/// relative error is above 10⁻⁴ (f64) or 2·10⁻² (f32, where differences themselves are that rough).
///
/// The evidence ends with what the arbiter says of the same op, with `x` as its parameter.
///
/// # Errors
/// When `op` fails.
pub fn judge_gradient(op: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Verdict> {
    let verdict = by_differences(op, x)?;
    let answer = ask_arbiter(&mut model(op, x)?)?;
    Ok(match verdict {
        Verdict::Present(evidence) => Verdict::Present(format!("{evidence}; {answer}")),
        Verdict::Absent(evidence) => Verdict::Absent(format!("{evidence}; {answer}")),
        other => other,
    })
}

/// Σ op(x)∘c with `x` as its one variable, of that name.
fn model<'a>(op: &'a dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Model<'a>> {
    let var = Var::from_tensor(x)?;
    let input = var.as_tensor().clone();
    Ok(Model::from_vars(vec![("x".to_owned(), var)], Vec::new(), move |_| loss(op, &input)))
}

/// What the arbiter says of a model: `the arbiter: x (present), cut by …` or `the arbiter: passes`.
///
/// # Errors
/// When the model fails.
pub(super) fn ask_arbiter(model: &mut Model) -> Result<String> {
    let verdict = model.judge().map_err(candle_core::Error::wrap)?;
    let mut found: Vec<String> = verdict.findings.iter().map(|f| format!("{} ({})", f.parameter, f.question)).collect();
    found.dedup();
    let cut = verdict.cut.map(|cut| format!(", cut: {cut}")).unwrap_or_default();
    let said = if found.is_empty() { "passes".to_owned() } else { found.join(", ") };
    Ok(format!("the arbiter: {said}{cut}"))
}

fn by_differences(op: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Verdict> {
    let (step, tolerance) = if x.dtype() == DType::F64 { (1e-5, 1e-4) } else { (1e-2, 2e-2) };
    let base: Vec<f64> = x.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?;
    let at = |i: usize, shift: f64| -> Result<f64> {
        let mut values = base.clone();
        values[i] += shift;
        let shifted = Tensor::from_vec(values, x.dims(), &Device::Cpu)?.to_dtype(x.dtype())?;
        loss(op, &shifted)?.to_dtype(DType::F64)?.to_scalar()
    };
    let mut expected = Vec::with_capacity(base.len());
    for i in 0..base.len() {
        expected.push((at(i, step)? - at(i, -step)?) / (2.0 * step));
    }
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let var = Var::from_tensor(x)?;
    let gradients = loss(op, var.as_tensor())?.backward()?;
    let Some(gradient) = gradients.get(&var) else {
        let evidence =
            format!("autograd gives no gradient; finite differences give one of norm {:.3}", norm(&expected));
        return Ok(Verdict::when(norm(&expected) > 0.0, evidence));
    };
    let found: Vec<f64> = gradient.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?;
    let difference: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
    let relative = norm(&difference) / norm(&expected).max(1e-12);
    let evidence = format!("relative error against finite differences {relative:.1e}");
    Ok(Verdict::when(relative > tolerance || relative.is_nan(), evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_a_wrong_and_a_missing_gradient_are_told_apart() {
        let x = tensor(&[2, 3], 1, DType::F64).unwrap();
        assert!(matches!(judge_gradient(&|x| x.sqr(), &x).unwrap(), Verdict::Absent(_)));
        let detached = judge_gradient(&|x| x.detach().sqr(), &x).unwrap();
        assert!(matches!(&detached, Verdict::Present(e) if e.contains("no gradient")), "{detached:?}");
        let half = judge_gradient(&|x| x.sqr()? + x.detach().sqr()?, &x).unwrap();
        assert!(matches!(&half, Verdict::Present(e) if e.contains("5.0e-1")), "{half:?}");
    }
}
