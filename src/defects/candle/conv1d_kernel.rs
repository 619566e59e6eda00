//! `conv1d` with a kernel that is not contiguous reads it in the wrong order.

use crate::arbiter::candle::Model;
use crate::defects::probe::{ask_arbiter, tensor};
use crate::defects::{Entry, Kind, Verdict};
use candle_core::{DType, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-conv1d-kernel",
    title: "conv1d with a non-contiguous kernel computes a wrong value, and so does its weight gradient",
    kind: Kind::WrongGradient,
    report: Some("#3895"),
    reading: None,
    reproduce,
    control,
    workaround: "a sum of matrix products; kernel.contiguous() mends the value but not the gradient, whose own convolution has such a kernel",
};

type Convolution = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// `x` `[batch, 3, 6]` and `kernel` `[4, 3, 2]`, of any strides.
fn fused(x: &Tensor, kernel: &Tensor) -> Result<Tensor> {
    x.conv1d(kernel, 0, 1, 1, 1)
}

/// The same as a sum of matrix products, one a position of the kernel.
fn by_products(x: &Tensor, kernel: &Tensor) -> Result<Tensor> {
    let product = |at: usize| {
        let weights = kernel.narrow(2, at, 1)?.squeeze(2)?.contiguous()?;
        weights.broadcast_matmul(&x.narrow(2, at, 5)?.contiguous()?)
    };
    product(0)? + product(1)?
}

/// Largest difference from the convolution by its definition, with batch 2.
fn difference(convolution: Convolution, kernel: &Tensor) -> Result<f64> {
    let x = tensor(&[2, 3, 6], 1, DType::F64)?;
    let found: Vec<f64> = convolution(&x, kernel)?.flatten_all()?.to_vec1()?;
    let (x, k) = (x.to_vec3::<f64>()?, kernel.to_vec3::<f64>()?);
    let mut worst = 0f64;
    for (i, value) in found.iter().enumerate() {
        let (batch, out, at) = (i / 20, i / 5 % 4, i % 5);
        let sum: f64 =
            (0..3).flat_map(|c| (0..2).map(move |j| (c, j))).map(|(c, j)| x[batch][c][at + j] * k[out][c][j]).sum();
        worst = worst.max((value - sum).abs());
    }
    Ok(worst)
}

/// Values by the definition, gradients by the arbiter.
fn judge(convolution: Convolution) -> Result<Verdict> {
    let kernel = tensor(&[2, 3, 4], 2, DType::F64)?;
    let worst = difference(convolution, &kernel.permute((2, 1, 0))?)?;
    let (x, kernel) = (tensor(&[2, 3, 6], 1, DType::F64)?, Var::from_tensor(&kernel)?);
    let used = kernel.as_tensor().clone();
    let loss = move |_: &[Tensor]| convolution(&x, &used.permute((2, 1, 0))?)?.sqr()?.sum_all();
    let answer = ask_arbiter(&mut Model::from_vars(vec![("kernel".to_owned(), kernel)], Vec::new(), loss))?;
    Ok(Verdict::when(worst > 1e-9, format!("largest difference from the definition {worst:.2e}; {answer}")))
}

fn reproduce() -> Result<Verdict> {
    judge(fused)
}

fn control() -> Result<Verdict> {
    judge(by_products)
}
