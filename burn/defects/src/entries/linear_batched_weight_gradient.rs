//! `nn::Linear` on rank-3 input: one weight gradient per batch element, summed afterwards.

use crate::catalogue::{Asked, Entry, Kind, Training};
use crate::speed::{Product, ask_product, flattened, judge_product, train_product};
use burn::tensor::module::linear;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-linear-batched-weight-gradient",
    title: "Linear on [batch, time, width] computes a weight gradient per batch element and sums them",
    kind: Kind::Speed,
    report: None,
    reading: Some("the area is likely: the abstract names a backward pass at about 3 % of the hardware's speed"),
    // 16 x 64: full tiles, which the backend's merging of batches leaves alone.
    source: include_str!("linear_batched_weight_gradient.rs"),
    reproduce: || judge_product(16, product(true)),
    control: || judge_product(16, product(false)),
    arbiter: Asked::Model(|defective| ask_product(product(defective))),
    training: Training::Runs(|defective, seed| train_product(product(defective), seed)),
    workaround: "flatten to [batch * time, width] around every Linear",
};

fn product(defective: bool) -> Product {
    if defective { |x, weight| linear(x, weight, None) } else { flattened }
}
