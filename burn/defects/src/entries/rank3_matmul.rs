//! A rank-3 product with a broadcast weight, as a tied output head is often written.

use crate::catalogue::{Asked, Entry, Kind, Training};
use crate::speed::{Product, ask_product, flattened, judge_product, train_product};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-rank3-matmul",
    title: "x.matmul(w.unsqueeze()) with x of rank 3: the backward pass multiplies batch element by batch element",
    kind: Kind::Speed,
    report: None,
    reading: Some("the area is likely: many short sequences bring the backward pass to a few per cent of a GEMM"),
    source: include_str!("rank3_matmul.rs"),
    reproduce: || judge_product(256, product(true)),
    control: || judge_product(256, product(false)),
    arbiter: Asked::Model(|defective| ask_product(product(defective))),
    training: Training::Runs(|defective, seed| train_product(product(defective), seed)),
    workaround: "flatten to [batch * time, width] before the product",
};

fn product(defective: bool) -> Product {
    if defective { |x, weight| x.matmul(weight.unsqueeze()) } else { flattened }
}
