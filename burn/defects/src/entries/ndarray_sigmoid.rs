//! The ndarray backend computes sigmoid in f32, whatever the tensor's dtype.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::numbers;
use crate::training::{HIDDEN, start, train_around};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{DType, Device, Tensor, TensorData, activation};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-ndarray-sigmoid",
    title: "sigmoid of f64 tensors has f32 precision on the ndarray backend, and so have silu and its like",
    kind: Kind::Precision,
    report: None,
    reading: None,
    source: include_str!("ndarray_sigmoid.rs"),
    reproduce: || judge(&backend(true)),
    control: || judge(&backend(false)),
    arbiter: Asked::Model(|defective| {
        let data = TensorData::from(POINTS);
        let x = Param::from_tensor(Tensor::from_data(data, (&backend(defective).autodiff(), DType::F64)));
        ask(Point { x }, |p: &Point, _| activation::sigmoid(p.x.val()).sum())
    }),
    training: Training::Runs(|defective, seed| {
        let (device, dtype) = (backend(defective).autodiff(), DType::F64);
        let weight = Param::from_tensor(start([8, HIDDEN], seed, "first", (&device, dtype)));
        train_around(Linear { weight, bias: None }, seed, (&device, dtype), activation::sigmoid)
    }),
    workaround: "the flex backend",
};

const POINTS: [f64; 7] = [-3.5, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0];

#[derive(Module, Debug)]
struct Point {
    x: Param<Tensor<1>>,
}

/// The backend that has the defect is deprecated, and still shipped.
#[allow(deprecated)]
fn backend(defective: bool) -> Device {
    if defective { Device::ndarray() } else { Device::flex() }
}

fn judge(device: &Device) -> Result<Verdict, CheckError> {
    let input = Tensor::<1>::from_data(TensorData::from(POINTS), (device, DType::F64));
    let output = numbers(activation::sigmoid(input));
    let error = |(x, y): (&f64, &f64)| (y - 1.0 / (1.0 + (-x).exp())).abs();
    let worst = POINTS.iter().zip(&output).map(error).fold(0.0, f64::max);
    let evidence = format!("largest error over {} points in f64: {worst:.1e}", POINTS.len());
    Ok(Verdict::when(worst > 1e-12, evidence))
}
