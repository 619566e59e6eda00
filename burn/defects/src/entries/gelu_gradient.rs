//! GELU: the exact function forward, the derivative of its tanh approximation backward.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::numbers;
use crate::training::{HIDDEN, start, train_around};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{DType, Device, Tensor, TensorData, activation};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-gelu-gradient",
    title: "gelu's gradient is that of the tanh approximation, on every backend without a gradient of its own",
    kind: Kind::WrongGradient,
    report: None,
    reading: Some("possible, if the third defect is a wrong gradient; its size is small"),
    source: include_str!("gelu_gradient.rs"),
    reproduce: || judge(gelu(true)),
    control: || judge(gelu(false)),
    arbiter: Asked::Model(|defective| {
        let point =
            Point { x: Param::from_tensor(Tensor::from_data(TensorData::from(POINTS), (&device(), DType::F64))) };
        ask(point, move |p: &Point, _| gelu(defective)(p.x.val()).sum())
    }),
    training: Training::Runs(|defective, seed| {
        let (device, dtype) = (device(), DType::F32);
        let weight = Param::from_tensor(start([8, HIDDEN], seed, "first", (&device, dtype)));
        let middle: fn(Tensor<2>) -> Tensor<2> =
            if defective { activation::gelu } else { activation::gelu_approximate };
        train_around(Linear { weight, bias: None }, seed, (&device, dtype), middle)
    }),
    workaround: "gelu_approximate, whose two passes agree",
};

const POINTS: [f64; 7] = [-3.5, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0];
const STEP: f64 = 1e-4;

#[derive(Module, Debug)]
struct Point {
    x: Param<Tensor<1>>,
}

fn gelu(defective: bool) -> fn(Tensor<1>) -> Tensor<1> {
    if defective { activation::gelu } else { activation::gelu_approximate }
}

/// Deprecated, and still the one CPU backend that takes the default gradient, as the GPU backends do.
#[allow(deprecated)]
fn device() -> Device {
    Device::ndarray().autodiff()
}

fn judge(gelu: fn(Tensor<1>) -> Tensor<1>) -> Result<Verdict, CheckError> {
    let device = device();
    let at = |shift: f64| {
        let data = TensorData::from(POINTS.map(|x| x + shift));
        Tensor::<1>::from_data(data, (&device, DType::F64))
    };
    let input = at(0.0).require_grad();
    let gradients = gelu(input.clone()).sum().backward();
    let gradient = input.grad(&gradients).map_or(Vec::new(), numbers);
    let (above, below) = (numbers(gelu(at(STEP))), numbers(gelu(at(-STEP))));
    let differences = above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * STEP));
    let rows = POINTS.iter().zip(differences).zip(gradient);
    let worst = rows.map(|((x, d), g)| ((d - g).abs(), *x, d, g)).fold((0.0, 0.0, 0.0, 0.0), larger);
    let (off, x, difference, gradient) = worst;
    let evidence = format!(
        "ndarray, f64, worst of {} points: at x = {x} the difference quotient is {difference:.7}, the gradient {gradient:.7}, \
         {off:.1e} apart",
        POINTS.len()
    );
    Ok(Verdict::when(off > 1e-6, evidence))
}

fn larger(a: (f64, f64, f64, f64), b: (f64, f64, f64, f64)) -> (f64, f64, f64, f64) {
    if b.0 > a.0 { b } else { a }
}
