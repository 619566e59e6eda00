//! `LinearLayout::Col`: the bounds of the initial weights come from the wrong axis.

use crate::asked::ask_layer;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{device, numbers};
use crate::training::{HIDDEN, train_layer};
use burn::nn::{Linear, LinearConfig, LinearLayout};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-col-layout-init",
    title: "Linear in column layout draws its initial weights for the wrong fan-in",
    kind: Kind::Interface,
    report: None,
    reading: None,
    source: include_str!("col_layout_init.rs"),
    reproduce: || judge(LinearLayout::Col),
    control: || judge(LinearLayout::Row),
    arbiter: Asked::Model(|defective| ask_layer(layer(defective, [16, 8], 0))),
    training: Training::Runs(|defective, seed| train_layer(layer(defective, [8, HIDDEN], seed), seed)),
    workaround: "row layout, or an explicit initializer",
};

/// A layer as its own initializer makes it.
fn layer(defective: bool, [inputs, outputs]: [usize; 2], seed: u64) -> Linear {
    let device = device();
    device.seed(seed);
    let layout = if defective { LinearLayout::Col } else { LinearLayout::Row };
    LinearConfig::new(inputs, outputs).with_layout(layout).init(&device)
}

fn judge(layout: LinearLayout) -> Result<Verdict, CheckError> {
    let [wide, narrow] = [(64, 1024), (1024, 64)].map(|(inputs, outputs)| largest(inputs, outputs, layout));
    let off = |(largest, bound): (f64, f64)| !(0.9..=1.001).contains(&(largest / bound));
    let tell = |(largest, bound): (f64, f64)| format!("largest weight {largest:.4}, documented bound {bound:.4}");
    let evidence = format!("64 -> 1024: {}; 1024 -> 64: {}", tell(wide), tell(narrow));
    Ok(Verdict::when(off(wide) || off(narrow), evidence))
}

/// The largest weight and the bound that the documentation gives: 1 / √inputs.
fn largest(inputs: usize, outputs: usize, layout: LinearLayout) -> (f64, f64) {
    let device = device();
    let layer = LinearConfig::new(inputs, outputs).with_layout(layout).init(&device);
    let largest = numbers(layer.weight.val()).iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    (largest, (inputs as f64).sqrt().recip())
}
