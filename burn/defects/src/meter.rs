//! A linear layer of Burn, of Candle and ours, forward and backward, beside the fastest GEMM of this process.

use crate::catalogue::BURN;
use crate::probe::{device, tensor};
use crate::speed::{Product, flattened};
use burn::tensor::module::linear;
use burn::tensor::{DType, Device};
use candle_core::{DType as CandleType, Device as CandleDevice, Result, Tensor as CandleTensor, Var};
use shikha::defects::CANDLE;
use shikha::defects::meter::{Efficiency, LayerShape, Speed, Timed, gemm, measure, seconds};
use std::time::Duration;

/// Timings of each pass, of which the best counts.
const ROUNDS: usize = 7;
/// Side of the square matrices of the GEMM.
const SIDE: usize = 1024;
/// How long each framework's GEMM is repeated.
const BUDGET: Duration = Duration::from_millis(1500);

/// Burn's ways, the last of which is the control.
const BURN_WAYS: [(&str, Product); 3] = [
    ("nn::Linear", |x, weight| linear(x, weight, None)),
    ("x.matmul(w.unsqueeze())", |x, weight| x.matmul(weight.unsqueeze())),
    ("nn::Linear, reshaped to rank 2", flattened),
];

type CandleWay = fn(&CandleTensor, &CandleTensor) -> Result<CandleTensor>;

/// Candle's own composition of ops, and our op.
const CANDLE_WAYS: [(&str, &str, CandleWay); 2] = [
    ("Candle", "composed: reshape, matmul with w.t()", |x, w| shikha::ops::composed::linear(x, w, None)),
    ("ours", "ops::candle::linear", |x, w| shikha::ops::candle::linear(x, w, None)),
];

/// Runs the whole meter.
///
/// # Errors
/// When Candle refuses an op.
pub fn run() -> Result<Efficiency> {
    let peaks = [("Burn", burn_gemm()), ("Candle", candle_gemm()?)];
    let [(gemm_of, gemm_peak), other] = peaks;
    let (gemm_of, gemm_peak) = if other.1 > gemm_peak { other } else { (gemm_of, gemm_peak) };
    let mut speeds = Vec::new();
    for shape in LayerShape::SWEPT {
        speeds.extend(at(shape)?);
    }
    Ok(Efficiency {
        burn: BURN.to_owned(),
        candle: CANDLE.to_owned(),
        threads: threads(),
        rounds: ROUNDS,
        gemm_side: SIDE,
        gemm_peak,
        gemm_of: gemm_of.to_owned(),
        speeds,
    })
}

/// Threads of a product: what the environment asks for, else every core.
fn threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok()).filter(|&n| n > 0);
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

fn burn_gemm() -> f64 {
    let [a, b] = [1, 2].map(|seed| tensor::<2>([SIDE, SIDE], seed, DType::F32, &Device::flex()));
    gemm(SIDE, BUDGET, || drop(a.clone().matmul(b.clone())))
}

fn candle_gemm() -> Result<f64> {
    let [a, b] = [normal((SIDE, SIDE))?, normal((SIDE, SIDE))?];
    let mut failed = None;
    let speed = gemm(SIDE, BUDGET, || failed = a.matmul(&b).err());
    failed.map_or(Ok(speed), Err)
}

fn normal(shape: impl Into<candle_core::Shape>) -> Result<CandleTensor> {
    CandleTensor::randn(0f32, 1.0, shape, &CandleDevice::Cpu)?.to_dtype(CandleType::F32)
}

/// Every way at one shape, timed in turns.
fn at(shape: LayerShape) -> Result<Vec<Speed>> {
    let LayerShape { batch, time, width } = shape;
    let of = |seed| tensor::<3>([batch, time, width], seed, DType::F32, &device());
    let (x, upstream) = (of(1).require_grad(), of(3));
    let weight = tensor::<2>([width, width], 2, DType::F32, &device()).require_grad();
    let dims = (batch, time, width);
    let (cx, cw) = (Var::from_tensor(&normal(dims)?)?, Var::from_tensor(&normal((width, width))?)?);
    let cu = normal(dims)?;
    // What Candle would refuse, it refuses here; inside the timings nothing is left to fail.
    for (_, _, way) in CANDLE_WAYS {
        (way(&cx, &cw)? * &cu)?.sum_all()?.backward()?;
    }
    let mut ways: Vec<Timed> = Vec::new();
    for (way, product) in BURN_WAYS {
        let (x, weight, upstream) = (&x, &weight, &upstream);
        let forward = Box::new(move || seconds(|| product(x.clone(), weight.clone())));
        let backward = Box::new(move || {
            let loss = (product(x.clone(), weight.clone()) * upstream.clone()).sum();
            seconds(|| loss.backward())
        });
        ways.push(Timed { framework: "Burn", way, forward, backward });
    }
    for (framework, way, op) in CANDLE_WAYS {
        let (x, weight, upstream) = (&cx, &cw, &cu);
        let forward = Box::new(move || seconds(|| op(x, weight)));
        let backward = Box::new(move || {
            let loss = op(x, weight).and_then(|y| (y * upstream)?.sum_all());
            seconds(|| loss.and_then(|loss| loss.backward()))
        });
        ways.push(Timed { framework, way, forward, backward });
    }
    Ok(measure(shape, &mut ways, ROUNDS))
}
