//! GELU: the exact function forward, the derivative of its tanh approximation backward.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::numbers;
use burn::tensor::{DType, Device, Tensor, TensorData, activation};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-gelu-gradient",
    title: "gelu's gradient is that of the tanh approximation, on every backend without a gradient of its own",
    kind: Kind::WrongGradient,
    report: None,
    reading: Some("possible, if the third defect is a wrong gradient; its size is small"),
    reproduce: || judge(activation::gelu),
    control: || judge(activation::gelu_approximate),
    workaround: "gelu_approximate, whose two passes agree",
};

const POINTS: [f64; 7] = [-3.5, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0];
const STEP: f64 = 1e-4;

fn judge(gelu: fn(Tensor<1>) -> Tensor<1>) -> Result<Verdict, CheckError> {
    // Deprecated, and still the one CPU backend that takes the default gradient, as the GPU backends do.
    #[allow(deprecated)]
    let device = Device::ndarray().autodiff();
    let at = |shift: f64| {
        let data = TensorData::from(POINTS.map(|x| x + shift));
        Tensor::<1>::from_data(data, (&device, DType::F64))
    };
    let input = at(0.0).require_grad();
    let gradients = gelu(input.clone()).sum().backward();
    let gradient = input.grad(&gradients).ok_or_else(|| CheckError::NoParameter("input".to_owned()))?;
    let (above, below) = (numbers(gelu(at(STEP))), numbers(gelu(at(-STEP))));
    let differences = above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * STEP));
    let rows = POINTS.iter().zip(differences).zip(numbers(gradient));
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
