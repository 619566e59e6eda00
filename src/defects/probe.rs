//! Is the gradient that autograd gives the one that finite differences give?
//!
//! What stands between the two marks is also the first half of every reproducer of a wrong gradient.

use super::Verdict;
use candle_core::{DType, Device, Result, Tensor, Var};

// reproducer {
/// A tensor of fixed, irregular numbers in [-1, 1).
pub fn tensor(shape: &[usize], salt: u64, dtype: DType) -> Result<Tensor> {
    let count = shape.iter().product::<usize>() as u64;
    let number = |i: u64| 2.0 * ((i * i + 31 * salt * i + salt) as f64 * 0.618_033_988_749_894_9).fract() - 1.0;
    Tensor::from_vec((1..=count).map(number).collect(), shape, &Device::Cpu)?.to_dtype(dtype)
}

/// The sum of op(x)*c with irregular weights c, so that no error cancels.
pub fn loss(op: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let y = op(x)?;
    (tensor(y.dims(), 99, y.dtype())? * y)?.sum_all()
}

/// Autograd's gradient of that sum at x beside central differences: whether it is missing or wrong.
pub fn differences(op: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<(bool, String)> {
    let (step, tolerance) = if x.dtype() == DType::F64 { (1e-5, 1e-4) } else { (1e-2, 2e-2) };
    let base: Vec<f64> = x.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?;
    let at = |i: usize, shift: f64| -> Result<f64> {
        let mut values = base.clone();
        values[i] += shift;
        let shifted = Tensor::from_vec(values, x.dims(), &Device::Cpu)?.to_dtype(x.dtype())?;
        loss(op, &shifted)?.to_dtype(DType::F64)?.to_scalar()
    };
    let slope = |i| Ok((at(i, step)? - at(i, -step)?) / (2.0 * step));
    let expected = (0..base.len()).map(slope).collect::<Result<Vec<f64>>>()?;
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (var, size) = (Var::from_tensor(x)?, norm(&expected));
    let Some(found) = loss(op, &var)?.backward()?.get(&var).cloned() else {
        return Ok((size > 0.0, format!("autograd gives no gradient; finite differences give one of norm {size:.3}")));
    };
    let found: Vec<f64> = found.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?;
    let error: Vec<f64> = found.iter().zip(&expected).map(|(a, b)| a - b).collect();
    let relative = norm(&error) / size.max(1e-12);
    let seen = format!("relative error against finite differences {relative:.1e}");
    Ok((relative > tolerance || relative.is_nan(), seen))
}
// }

/// Compares autograd's gradient of Σ op(x)∘c at `x` with central differences. `x` is f64 or f32.
///
/// The defect is present when there is no gradient although the differences are not zero, or when the
/// relative error is above 10⁻⁴ (f64) or 2·10⁻² (f32, where differences themselves are that rough).
///
/// # Errors
/// When `op` fails.
pub fn judge_gradient(op: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Verdict> {
    differences(op, x).map(Verdict::from)
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

    #[test]
    fn the_numbers_are_irregular() {
        let values: Vec<f64> = tensor(&[200], 3, DType::F64).unwrap().to_vec1().unwrap();
        let mean = values.iter().sum::<f64>() / 200.0;
        assert!(mean.abs() < 0.15 && values.iter().all(|x| (-1.0..1.0).contains(x)), "{mean}");
        assert!(values.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
