//! A convolutional classifier: two convolutions with ReLU, average pooling, a linear layer.

use super::family::Family;
use super::kit::{Kit, Start, below, cross_entropy, normal};
use crate::arbiter::Expectation;
use crate::rng::Stream;
use candle_core::{DType, Result, Tensor};

const BATCH: usize = 3;
const CLASSES: usize = 3;

const KERNEL: Start = Start::Normal(0.3);
const BIAS: Start = Start::Normal(0.1);

macro_rules! family {
    ($name:expr, $bias:expr, $expectations:expr) => {
        Family {
            name: $name,
            variables: &[
                ("conv1", &[4, 2, 3, 3], KERNEL),
                ("conv1.bias", &[4], $bias),
                ("conv2", &[5, 4, 3, 3], KERNEL),
                ("conv2.bias", &[5], BIAS),
                ("class", &[CLASSES, 20], KERNEL),
                ("class.bias", &[CLASSES], BIAS),
            ],
            expectations: $expectations,
            inputs,
            loss,
        }
    };
}

/// All units alive, as a rule.
pub const CONVOLUTION: Family = family!("convolutional", BIAS, &[]);

/// Biases so low that some channels of the first layer never fire on the probe; healthy all the same.
pub const DEAD_UNITS: Family =
    family!("convolutional, dead ReLUs", Start::Normal(2.0), &[("conv2", Expectation::SparseRows)]);

/// Images `[BATCH, 2, 6, 6]` and classes `[BATCH]`.
fn inputs(stream: &Stream, dtype: DType) -> Result<Vec<Tensor>> {
    Ok(vec![normal(stream, &[BATCH, 2, 6, 6], dtype)?, below(stream, &[BATCH], CLASSES as u64)?])
}

fn channels(bias: &Tensor) -> Result<Tensor> {
    bias.reshape((1, bias.elem_count(), 1, 1))
}

fn loss(kit: &Kit, inputs: &[Tensor]) -> Result<Tensor> {
    let x = inputs[0].conv2d(&kit.get("conv1")?, 1, 1, 1, 1)?.broadcast_add(&channels(&kit.get("conv1.bias")?)?)?;
    let x = kit.formula("relu", x.relu()?, || x.elu(1.0))?;
    let x = kit.site("features", x)?.conv2d(&kit.get("conv2")?, 1, 1, 1, 1)?;
    let x = x.broadcast_add(&channels(&kit.get("conv2.bias")?)?)?.relu()?;
    let x = kit.site("pooled", x.avg_pool2d(3)?)?.flatten_from(1)?;
    let logits = x.matmul(&kit.get("class")?.t()?)?.broadcast_add(&kit.get("class.bias")?)?;
    kit.site("loss", cross_entropy(&logits, &inputs[1])?)
}
