//! `conv1d` with a kernel that is not contiguous reads it in the wrong order.

use crate::arbiter::candle::Model;
use crate::defects::probe::tensor;
use crate::defects::training::{self, normal, weight};
use crate::defects::{Check, Entry, Kind, Training};
use candle_core::{DType, Result, Tensor, Var};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-conv1d-kernel",
    title: "conv1d with a non-contiguous kernel computes a wrong value, and so does its weight gradient",
    kind: Kind::WrongGradient,
    report: Some("#3895"),
    reading: None,
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "a sum of matrix products; kernel.contiguous() mends the value but not the gradient, whose own convolution has such a kernel",
    source: include_str!("conv1d_kernel.rs"),
};

// reproducer {
type Convolution = fn(&Tensor, &Tensor) -> Result<Tensor>;

/// `x` `[batch, 3, 6]` and `kernel` `[4, 3, 2]`, of any strides.
fn fused(x: &Tensor, kernel: &Tensor) -> Result<Tensor> {
    x.conv1d(kernel, 0, 1, 1, 1)
}

/// Largest difference from the convolution by its definition, with batch 2.
fn difference(convolution: Convolution) -> Result<(bool, String)> {
    let (x, kernel) = (tensor(&[2, 3, 6], 1, DType::F64)?, tensor(&[2, 3, 4], 2, DType::F64)?.permute((2, 1, 0))?);
    let found: Vec<f64> = convolution(&x, &kernel)?.flatten_all()?.to_vec1()?;
    let (x, k) = (x.to_vec3::<f64>()?, kernel.to_vec3::<f64>()?);
    let mut worst = 0f64;
    for (i, value) in found.iter().enumerate() {
        let (batch, out, at) = (i / 20, i / 5 % 4, i % 5);
        let pairs = (0..3).flat_map(|c| (0..2).map(move |j| (c, j)));
        let sum: f64 = pairs.map(|(c, j)| x[batch][c][at + j] * k[out][c][j]).sum();
        worst = worst.max((value - sum).abs());
    }
    Ok((worst > 1e-9, format!("largest difference from the definition {worst:.2e}")))
}

fn defect() -> Result<(bool, String)> {
    difference(fused)
}
// }

/// The same as a sum of matrix products, one a position of the kernel.
fn by_products(x: &Tensor, kernel: &Tensor) -> Result<Tensor> {
    let product = |at: usize| {
        let weights = kernel.narrow(2, at, 1)?.squeeze(2)?.contiguous()?;
        weights.broadcast_matmul(&x.narrow(2, at, 5)?.contiguous()?)
    };
    product(0)? + product(1)?
}

fn control() -> Result<(bool, String)> {
    difference(by_products)
}

fn model(defective: bool) -> Result<Model<'static>> {
    let (x, kernel) = (tensor(&[2, 3, 6], 1, DType::F64)?, Var::from_tensor(&tensor(&[2, 3, 4], 2, DType::F64)?)?);
    let (used, convolution) = (kernel.as_tensor().clone(), if defective { fused } else { by_products });
    let loss = move |_: &[Tensor]| convolution(&x, &used.permute((2, 1, 0))?)?.sqr()?.sum_all();
    Ok(Model::from_vars(vec![("kernel".to_owned(), kernel)], Vec::new(), loss))
}

/// Learns the kernel of another convolution.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let convolution = if defective { fused } else { by_products };
    let kernel = weight(&[2, 3, 4], 0.5, seed, "kernel", DType::F32)?;
    let teacher = normal(&[2, 3, 4], 0.5, seed, "teacher")?.permute((2, 1, 0))?;
    training::train(std::slice::from_ref(&kernel), |step| {
        let x = normal(&[8, 3, 6], 1.0, seed, &format!("batch/{step}"))?;
        candle_nn::loss::mse(&convolution(&x, &kernel.permute((2, 1, 0))?)?, &by_products(&x, &teacher)?)
    })
}
