//! `nn::Linear` on rank-3 input: one weight gradient per batch element, summed afterwards.

use crate::catalogue::{Entry, Kind};
use crate::speed::{flattened, judge_product};
use burn::tensor::module::linear;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-linear-batched-weight-gradient",
    title: "Linear on [batch, time, width] computes a weight gradient per batch element and sums them",
    kind: Kind::Speed,
    report: None,
    reading: Some("the area is likely: the abstract names a backward pass at about 3 % of the hardware's speed"),
    // 16 x 64: full tiles, which the backend's merging of batches leaves alone.
    reproduce: || Ok(judge_product(16, |x, weight| linear(x, weight, None))),
    control: || Ok(judge_product(16, flattened)),
    workaround: "flatten to [batch * time, width] around every Linear",
};
