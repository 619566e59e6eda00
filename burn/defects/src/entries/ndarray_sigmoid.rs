//! The ndarray backend computes sigmoid in f32, whatever the tensor's dtype.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::numbers;
use burn::tensor::{DType, Device, Tensor, TensorData, activation};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-ndarray-sigmoid",
    title: "sigmoid of f64 tensors has f32 precision on the ndarray backend, and so have silu and its like",
    kind: Kind::Precision,
    report: None,
    reading: None,
    // Deprecated, and still shipped: it is what this entry is about.
    #[allow(deprecated)]
    reproduce: || judge(&Device::ndarray()),
    control: || judge(&Device::flex()),
    workaround: "the flex backend",
};

const POINTS: [f64; 7] = [-3.5, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0];

fn judge(device: &Device) -> Result<Verdict, CheckError> {
    let input = Tensor::<1>::from_data(TensorData::from(POINTS), (device, DType::F64));
    let output = numbers(activation::sigmoid(input));
    let error = |(x, y): (&f64, &f64)| (y - 1.0 / (1.0 + (-x).exp())).abs();
    let worst = POINTS.iter().zip(&output).map(error).fold(0.0, f64::max);
    let evidence = format!("largest error over {} points in f64: {worst:.1e}", POINTS.len());
    Ok(Verdict::when(worst > 1e-12, evidence))
}
