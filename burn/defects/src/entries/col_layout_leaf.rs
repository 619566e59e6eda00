//! `LinearLayout::Col`: up to 0.21 the layer's weight is a result, no leaf, and is never trained.

use crate::asked::ask_layer;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{device, judge_training, tensor};
use crate::training::{HIDDEN, train_layer};
use burn::nn::{Linear, LinearConfig, LinearLayout};
use burn::tensor::DType;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-col-layout-leaf",
    title: "Linear in column layout never trains its weight, in silence",
    kind: Kind::MissingGradient,
    report: Some("#5705 (the later panic only)"),
    reading: Some("likely of the versions of that time: the layout that one would try against slow products"),
    source: include_str!("col_layout_leaf.rs"),
    reproduce: || judge(true),
    control: || judge(false),
    arbiter: Asked::Model(|defective| ask_layer(layer(defective, [16, 8], 0))),
    training: Training::Runs(|defective, seed| train_layer(layer(defective, [8, HIDDEN], seed), seed)),
    workaround: "row layout",
};

/// A layer as its own initializer makes it.
fn layer(column: bool, [inputs, outputs]: [usize; 2], seed: u64) -> Linear {
    let (device, layout) = (device(), if column { LinearLayout::Col } else { LinearLayout::Row });
    device.seed(seed);
    LinearConfig::new(inputs, outputs).with_layout(layout).init(&device)
}

fn judge(column: bool) -> Result<Verdict, CheckError> {
    let input = tensor([4, 16], 1, DType::F32, &device());
    Ok(judge_training(layer(column, [16, 8], 0), |l| l.forward(input.clone()).square().mean()))
}
