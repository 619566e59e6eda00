//! Forward and backward speed of a product, beside a GEMM measured in the same process.

use crate::asked::ask;
use crate::catalogue::{CheckError, Verdict};
use crate::probe::{device, tensor};
use crate::training::{HIDDEN, Net, RATE, ROWS as ROWS_OF_BATCH, Run, adamw, by, train, weight};
use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::module::linear;
use burn::tensor::{DType, Tensor};
use shikha::defects::Answer;

/// Model width of the measured product; its weight is `WIDTH` x `WIDTH`.
const WIDTH: usize = 512;
/// Rows (batch times sequence) of the measured product, however they are split.
const ROWS: usize = 1024;
/// A product of an input [batch, time, WIDTH] with a weight [WIDTH, WIDTH].
pub type Product = fn(Tensor<3>, Tensor<2>) -> Tensor<3>;

/// The way round: one product of two matrices, whatever the batch.
pub fn flattened(x: Tensor<3>, weight: Tensor<2>) -> Tensor<3> {
    let ([batch, time, inputs], [_, outputs]) = (x.dims(), weight.dims());
    linear(x.reshape([batch * time, inputs]), weight, None).reshape([batch, time, outputs])
}

/// The arbiter on a product in a small layer.
pub fn ask_product(product: Product) -> Answer {
    let layer = Linear { weight: Param::from_tensor(weight([8, HIDDEN], 0)), bias: None };
    ask(layer, move |layer: &Linear, n| {
        let x = tensor([4, 4, 8], 1 + n as u32, DType::F32, &device());
        product(x, layer.weight.val()).square().mean()
    })
}

/// A short training run whose first layer is a product of four sequences of four tokens.
pub fn train_product(product: Product, seed: u64) -> Run {
    let first = Linear { weight: Param::from_tensor(weight([8, HIDDEN], seed)), bias: None };
    let at = (&device(), DType::F32);
    train(Net::new(first, seed, at), by(adamw(), RATE), |net: &Net, step| {
        let (x, target) = Net::batch(seed, step, at);
        let hidden = product(x.reshape([4, ROWS_OF_BATCH / 4, 8]), net.first.weight.val()).tanh();
        (net.second.forward(hidden.reshape([ROWS_OF_BATCH, HIDDEN])) - target).square().mean()
    })
}

fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let (started, _result) = (std::time::Instant::now(), run());
    started.elapsed().as_secs_f64()
}

/// Times `product` with the 1024 rows split into `batch` sequences, forward and backward.
///
/// Present when the backward pass runs at less than 65 % of the flattened product's backward pass, both
/// measured in turns. Beside them: the forward pass, and a GEMM of the same size.
pub fn judge_product(batch: usize, product: Product) -> Result<Verdict, CheckError> {
    let of = |seed| tensor::<3>([batch, ROWS / batch, WIDTH], seed, DType::F32, &device());
    let (x, upstream) = (of(1).require_grad(), of(3));
    let weight = tensor::<2>([WIDTH, WIDTH], 2, DType::F32, &device()).require_grad();
    // The GEMM and no more: two matrices without a tape.
    let (left, right) = (x.clone().inner().reshape([ROWS, WIDTH]), weight.clone().inner());
    let backward = |product: Product| {
        let loss = (product(x.clone(), weight.clone()) * upstream.clone()).sum();
        seconds(|| loss.backward())
    };
    let mut best = [f64::INFINITY; 4];
    // The best of each counts, so that other work on the machine counts less.
    for _ in 0..5 {
        let forward = seconds(|| product(x.clone(), weight.clone()));
        let gemm = seconds(|| left.clone().matmul(right.clone()));
        let times = [gemm, forward, backward(product), backward(flattened)];
        best = [0, 1, 2, 3].map(|i| best[i].min(times[i]));
    }
    // Two floating-point operations per multiplication; two products in a backward pass.
    let work = 2.0 * (ROWS * WIDTH * WIDTH) as f64 / 1e9;
    let [gemm, forward, backward, flat] = [work / best[0], work / best[1], 2.0 * work / best[2], 2.0 * work / best[3]];
    let [of_forward, of_gemm, of_flat] = [forward, gemm, flat].map(|speed| 100.0 * backward / speed);
    let evidence = format!(
        "batch {batch}: backward {backward:.1} GFLOP/s: {of_forward:.0} % of forward ({forward:.1}), {of_gemm:.0} % of a \
         GEMM of that size ({gemm:.1}), {of_flat:.0} % of the flattened backward ({flat:.1})"
    );
    Ok(Verdict::when(of_flat < 65.0, evidence))
}
