//! A small decoder to train on any device, for the defects that only a whole model at size shows.

use crate::catalogue::Verdict;
use crate::probe::numbers;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use std::fmt;

/// Sizes of one model and how long it is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Width of the residual stream; one attention head, so any width will do.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
    /// Tokens known.
    pub vocabulary: usize,
    /// Sequences a step, and tokens in each.
    pub batch: [usize; 2],
    /// Steps of AdamW.
    pub steps: usize,
}

impl Shape {
    /// Numbers that are trained.
    pub fn parameters(&self) -> usize {
        let Shape { width, depth, vocabulary, .. } = *self;
        2 * vocabulary * width + vocabulary + depth * (12 * width * width + 2 * width)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Shape { width, depth, vocabulary, batch, .. }, millions) = (self, self.parameters() as f64 / 1e6);
        write!(f, "{millions:.2} M parameters ({depth} blocks of width {width}, {vocabulary} tokens, batch {batch:?})")
    }
}

#[derive(Module, Debug)]
struct Block {
    norm: LayerNorm,
    query_key_value: Linear,
    output: Linear,
    up: Linear,
    down: Linear,
}

#[derive(Module, Debug)]
struct Decoder {
    embedding: Embedding,
    blocks: Vec<Block>,
    head: Linear,
}

impl Block {
    fn new(width: usize, device: &Device) -> Self {
        let linear = |inputs, outputs| LinearConfig::new(inputs, outputs).with_bias(false).init(device);
        let norm = LayerNormConfig::new(width).init(device);
        let (query_key_value, output) = (linear(width, 3 * width), linear(width, width));
        Block { norm, query_key_value, output, up: linear(width, 4 * width), down: linear(4 * width, width) }
    }

    fn forward(&self, x: Tensor<3>, mask: &Tensor<3>) -> Tensor<3> {
        let [_, _, width] = x.dims();
        let normed = self.norm.forward(x.clone());
        let parts = self.query_key_value.forward(normed.clone());
        let [query, key, value] = [0, 1, 2].map(|i| parts.clone().narrow(2, i * width, width));
        let scores = query.matmul(key.swap_dims(1, 2)) / (width as f64).sqrt() + mask.clone();
        let attended = self.output.forward(activation::softmax(scores, 2).matmul(value));
        x + attended + self.down.forward(activation::gelu_approximate(self.up.forward(normed)))
    }
}

fn decoder(shape: &Shape, device: &Device) -> Decoder {
    Decoder {
        embedding: EmbeddingConfig::new(shape.vocabulary, shape.width).init(device),
        blocks: (0..shape.depth).map(|_| Block::new(shape.width, device)).collect(),
        head: LinearConfig::new(shape.width, shape.vocabulary).init(device),
    }
}

/// Losses in nats of training `shape` on each device for so many steps, from the same weights with the same data.
pub fn losses(shape: &Shape, devices: &[(&Device, usize)]) -> Vec<Vec<f64>> {
    let host = Device::flex().autodiff();
    [&host, &Device::flex()].map(|device| device.seed(11));
    let model = decoder(shape, &host);
    // Parameters are drawn when they are first looked at.
    let _ = model.num_params();
    let train =
        |(device, steps): &(&Device, usize)| trained(model.clone().fork(&host).fork(device), shape, device, *steps);
    devices.iter().map(train).collect()
}

fn trained(mut model: Decoder, shape: &Shape, device: &Device, steps: usize) -> Vec<f64> {
    let [rows, time] = shape.batch;
    let token = |i: usize| ((i * i + 3 * i) % shape.vocabulary) as i32;
    let ids = |shift: usize| TensorData::new((0..rows * time).map(|i| token(i + shift)).collect(), [rows, time]);
    let [inputs, targets] = [0, 1].map(|shift| Tensor::<2, Int>::from_data(ids(shift), device));
    let mask = Tensor::<2>::full([time, time], -1e9, device).triu(1).unsqueeze::<3>();
    let criterion = CrossEntropyLossConfig::new().init(device);
    let mut optimizer = AdamWConfig::new().init();
    let mut losses = Vec::new();
    for _ in 0..steps {
        let embedded = model.embedding.forward(inputs.clone());
        let hidden = model.blocks.iter().fold(embedded, |x, block| block.forward(x, &mask));
        let logits = model.head.forward(hidden).reshape([rows * time, shape.vocabulary]);
        let loss = criterion.forward(logits, targets.clone().reshape([rows * time]));
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        losses.extend(numbers(loss.inner()));
        model = optimizer.step(1e-3, model, gradients);
    }
    losses
}

/// Present when a loss is not finite or leaves `expected`, the host's losses on as many steps as there are.
pub fn judge_losses(shape: &Shape, losses: &[f64], expected: &[f64]) -> Verdict {
    // Of the first loss: one batch is soon known by heart, and a loss near 0 is no scale.
    let scale = expected.first().copied().unwrap_or(1.0);
    let off = losses.iter().zip(expected).map(|(a, b)| ((a - b) / scale).abs()).fold(0.0, f64::max);
    let bad = losses.iter().filter(|l| !l.is_finite()).count();
    let (first, last) = (losses.first().copied().unwrap_or(f64::NAN), losses.last().copied().unwrap_or(f64::NAN));
    let evidence = format!(
        "{shape}: loss {first:.4} to {last:.4} nats, {bad} of {} not finite, largest difference from the CPU {off:.1e} \
         of the first loss over {} steps",
        losses.len(),
        expected.len()
    );
    // 2 %: room for reduced-precision products on the GPU, far below what corruption does.
    Verdict::when(losses.is_empty() || bad > 0 || off > 0.02, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { width: 12, depth: 2, vocabulary: 17, batch: [2, 7], steps: 12 };

    #[test]
    fn it_learns_and_repeats_itself_on_the_host() {
        let host = Device::flex().autodiff();
        let [a, b] = losses(&SHAPE, &[(&host, 12), (&host, 12)]).try_into().unwrap();
        assert_eq!(a, b);
        assert!(a.len() == 12 && a[11] < a[0] - 0.05, "{a:?}");
        let words = "0.00 M parameters (2 blocks of width 12, 17 tokens, batch [2, 7])";
        assert!(matches!(judge_losses(&SHAPE, &a, &b), Verdict::Absent(seen) if seen.starts_with(words)));
        assert_eq!(SHAPE.parameters(), decoder(&SHAPE, &Device::flex()).num_params());
    }

    #[test]
    fn a_wrong_or_missing_number_is_found() {
        let present = |losses: &[f64]| matches!(judge_losses(&SHAPE, losses, &[2.0, 2.0]), Verdict::Present(_));
        assert!(!present(&[2.0, 2.01, 1.0]));
        assert!(present(&[2.0, 2.1]) && present(&[2.0, 2.0, f64::NAN]) && present(&[]));
    }
}
