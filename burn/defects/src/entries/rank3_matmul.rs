//! A rank-3 product with a broadcast weight, as a tied output head is often written.

use crate::catalogue::{Entry, Kind};
use crate::speed::{flattened, judge_product};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-rank3-matmul",
    title: "x.matmul(w.unsqueeze()) with x of rank 3: the backward pass multiplies batch element by batch element",
    kind: Kind::Speed,
    report: None,
    reading: Some("the area is likely: many short sequences bring the backward pass to a few per cent of a GEMM"),
    reproduce: || Ok(judge_product(256, |x, weight| x.matmul(weight.unsqueeze()))),
    control: || Ok(judge_product(256, flattened)),
    workaround: "flatten to [batch * time, width] before the product",
};
