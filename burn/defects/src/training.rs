//! The small models that the catalogue trains with and without a defect, from the weights and data of a seed.

use crate::probe::{device, numbers};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};
use shikha::defects::{Curves, SEEDS, STEPS};
use shikha::rng::Stream;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The learning rate of AdamW, without weight decay.
pub const RATE: f64 = 1e-2;

const INPUTS: usize = 8;
/// Outputs of a layer that [`train_layer`] takes: its weight is `[8, 16]`.
pub const HIDDEN: usize = 16;
const OUTPUTS: usize = 4;
/// Rows of a batch.
pub const ROWS: usize = 16;

/// The loss of every step, or at which step training ended and how.
pub type Run = Result<Vec<f64>, String>;

/// Two layers with something between them, on a fixed target.
#[derive(Module, Debug)]
pub struct Net {
    /// `[8, 16]`.
    pub first: Linear,
    /// `[16, 4]`.
    pub second: Linear,
}

/// Normal numbers of the stream `name` under `seed`, of variance 1 / rows, on `device`.
pub fn start(shape: [usize; 2], seed: u64, name: &str, at: (&Device, DType)) -> Tensor<2> {
    let stream = Stream::new(seed, name);
    let scale = (shape[0] as f64).sqrt().recip();
    let values: Vec<f64> = (0..shape.iter().product::<usize>() as u64).map(|i| scale * stream.normal(i)).collect();
    Tensor::from_data(TensorData::new(values, shape).convert_dtype(at.1), at)
}

/// [`start`] in f32 on the CPU with automatic differentiation.
pub fn weight(shape: [usize; 2], seed: u64) -> Tensor<2> {
    start(shape, seed, "first", (&device(), DType::F32))
}

impl Net {
    /// `first` with a second layer of the seed beside it.
    pub fn new(first: Linear, seed: u64, at: (&Device, DType)) -> Self {
        let weight = Param::from_tensor(start([HIDDEN, OUTPUTS], seed, "second", at));
        Net { first, second: Linear { weight, bias: None } }
    }

    /// Inputs `[16, 8]` and targets `[16, 4]` of batch `step`.
    pub fn batch(seed: u64, step: usize, at: (&Device, DType)) -> (Tensor<2>, Tensor<2>) {
        let x = start([ROWS, INPUTS], seed, &format!("batch/{step}"), at) * (ROWS as f64).sqrt();
        let target = x.clone().matmul(start([INPUTS, OUTPUTS], seed, "teacher", at) * 2.0).tanh();
        (x, target)
    }

    /// Mean squared error on batch `step`: the target is tanh of a product with a fixed matrix.
    pub fn loss(
        &self,
        seed: u64,
        step: usize,
        at: (&Device, DType),
        middle: impl Fn(Tensor<2>) -> Tensor<2>,
    ) -> Tensor<1> {
        let (x, target) = Net::batch(seed, step, at);
        (self.second.forward(middle(self.first.forward(x))) - target).square().mean()
    }
}

/// Trains a layer `[8, 16]` with tanh and a second layer behind it, in f32 by AdamW.
pub fn train_layer(first: Linear, seed: u64) -> Run {
    train_around(first, seed, (&device(), DType::F32), |x| x.tanh())
}

/// [`train_layer`] with `middle` in place of tanh, on a device and in a type.
pub fn train_around(first: Linear, seed: u64, at: (&Device, DType), middle: fn(Tensor<2>) -> Tensor<2>) -> Run {
    train(Net::new(first, seed, at), by(adamw(), RATE), |net: &Net, step| net.loss(seed, step, at, middle))
}

/// AdamW without weight decay.
pub fn adamw() -> ModuleOptimizer {
    AdamWConfig::new().with_weight_decay(0.0).init()
}

/// A step of `optimizer`.
pub fn by<M: Module>(mut optimizer: ModuleOptimizer, rate: f64) -> impl FnMut(M, Gradients) -> M {
    move |module, mut tape| {
        let gradients = GradientsParams::from_module(&mut tape, &module);
        optimizer.step(rate, module, gradients)
    }
}

/// Trains `module` for as many steps as every curve of the catalogue has.
pub fn train<M: Module>(
    mut module: M,
    mut step: impl FnMut(M, Gradients) -> M,
    loss: impl Fn(&M, usize) -> Tensor<1>,
) -> Run {
    let mut losses = Vec::new();
    for number in 0..STEPS {
        let whole = || {
            let loss = loss(&module, number);
            let tape = loss.backward();
            let value = numbers(loss.inner()).first().copied().unwrap_or(f64::NAN);
            (value, step(module.clone(), tape))
        };
        let ended =
            |payload: Box<dyn Any + Send>| format!("training panics in step {}: {}", number + 1, words(&payload));
        let (value, next) = catch_unwind(AssertUnwindSafe(whole)).map_err(ended)?;
        losses.push(value);
        module = next;
    }
    Ok(losses)
}

fn words(payload: &Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    // Its first sentence; Burn goes on with advice.
    text.and_then(|text| text.lines().next()?.split(". ").next()).unwrap_or("without a message").to_owned()
}

/// The curves of every seed with and without, read as those of the main catalogue are.
pub fn curves(run: impl Fn(bool, u64) -> Run) -> Curves {
    let of = |defective: bool| (0..SEEDS).map(|seed| run(defective, seed)).collect::<Result<Vec<_>, _>>();
    match of(false).and_then(|healthy| Ok((healthy, of(true)?))) {
        Ok((healthy, defective)) => Curves::of(healthy, defective),
        Err(why) => Curves::None { why },
    }
}
