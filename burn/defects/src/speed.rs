//! Forward and backward speed of a product, beside a GEMM measured in the same process.

use crate::asked::ask;
use crate::catalogue::Verdict;
use crate::probe::{device, tensor};
use crate::training::{HIDDEN, Net, RATE, ROWS as ROWS_OF_BATCH, Run, adamw, by, train, weight};
use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::module::linear;
use burn::tensor::{DType, Device, Tensor};
use shikha::defects::Answer;
use std::time::{Duration, Instant};

/// Model width of the measured product; its weight is `WIDTH` x `WIDTH`.
const WIDTH: usize = 512;
/// Rows (batch times sequence) of the measured product, however they are split.
const ROWS: usize = 1024;
/// Rounds of timings: the best of each counts, so that other work on the machine counts less.
const ROUNDS: usize = 9;
/// No further round is begun after this time.
const BUDGET: Duration = Duration::from_millis(1500);
/// Below this share of the flattened product's backward speed a backward pass is slow.
const SLOW: f64 = 0.65;

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

/// What is multiplied, with a tape and without.
struct Operands {
    input: Tensor<3>,
    weight: Tensor<2>,
    upstream: Tensor<3>,
    plain: [Tensor<2>; 2],
}

impl Operands {
    fn new(batch: usize) -> Self {
        let shape = [batch, ROWS / batch, WIDTH];
        let (device, plain) = (device(), Device::flex());
        Operands {
            input: tensor(shape, 1, DType::F32, &device).require_grad(),
            weight: tensor([WIDTH, WIDTH], 2, DType::F32, &device).require_grad(),
            upstream: tensor(shape, 3, DType::F32, &device),
            plain: [tensor([ROWS, WIDTH], 1, DType::F32, &plain), tensor([WIDTH, WIDTH], 2, DType::F32, &plain)],
        }
    }

    /// Seconds of the backend's own product of two matrices, without a tape: its GEMM and no more.
    fn gemm(&self) -> f64 {
        let [left, right] = self.plain.clone();
        seconds(|| left.matmul(right))
    }

    fn forward(&self, product: Product) -> f64 {
        seconds(|| product(self.input.clone(), self.weight.clone()))
    }

    /// Seconds of the backward pass, for both gradients.
    fn backward(&self, product: Product) -> f64 {
        let loss = (product(self.input.clone(), self.weight.clone()) * self.upstream.clone()).sum();
        seconds(|| loss.backward())
    }
}

fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let started = Instant::now();
    let _result = run();
    started.elapsed().as_secs_f64()
}

/// Times `product` with the 1024 rows split into `batch` sequences, forward and backward.
///
/// Present when the backward pass runs at less than 65 % of the flattened product's backward pass, both
/// measured in turns. Beside them: the forward pass, and a GEMM of the same size.
pub fn judge_product(batch: usize, product: Product) -> Verdict {
    let operands = Operands::new(batch);
    let mut best = [f64::INFINITY; 4];
    let started = Instant::now();
    for round in 0..ROUNDS {
        if round >= 2 && started.elapsed() > BUDGET {
            break;
        }
        let times =
            [operands.gemm(), operands.forward(product), operands.backward(product), operands.backward(flattened)];
        best = [0, 1, 2, 3].map(|i| best[i].min(times[i]));
    }
    // Two floating-point operations per multiplication; two products in a backward pass.
    let work = 2.0 * (ROWS * WIDTH * WIDTH) as f64 / 1e9;
    let [gemm, forward, backward, flat] = [work / best[0], work / best[1], 2.0 * work / best[2], 2.0 * work / best[3]];
    let evidence = format!(
        "[{batch}, {}, {WIDTH}] x [{WIDTH}, {WIDTH}]: backward {backward:.1} GFLOP/s: {:.0} % of forward ({forward:.1}), \
         {:.0} % of a GEMM of that size ({gemm:.1}), {:.0} % of the flattened backward ({flat:.1})",
        ROWS / batch,
        100.0 * backward / forward,
        100.0 * backward / gemm,
        100.0 * backward / flat
    );
    Verdict::when(backward < SLOW * flat, evidence)
}
