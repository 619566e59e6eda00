//! Every Candle op of ours passes the arbiter, *right* included; Candle's own fused one in its place does not.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::rotary_emb;
use shikha::arbiter::candle::Model;
use shikha::arbiter::{Question, Verdict};
use shikha::ops::candle as ours;
use shikha::rng::Stream;

type Op = fn(&[Tensor]) -> Result<Tensor>;

fn numbers(name: &str, shape: &[usize], dtype: DType) -> Tensor {
    let stream = Stream::new(11, name);
    let values: Vec<f64> = (0..shape.iter().product()).map(|i: usize| stream.normal(i as u64)).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
}

/// Σ op(inputs)∘c with each input a variable `0`, `1`, … and irregular weights c.
fn judge(op: Op, shapes: &[&[usize]], dtype: DType) -> Verdict {
    let var = |(i, shape): (usize, &&[usize])| {
        let name = i.to_string();
        let var = Var::from_tensor(&numbers(&name, shape, dtype)).unwrap();
        (name, var)
    };
    let vars: Vec<(String, Var)> = shapes.iter().enumerate().map(var).collect();
    let inputs: Vec<Tensor> = vars.iter().map(|(_, var)| var.as_tensor().clone()).collect();
    let loss = move |_: &[Tensor]| {
        let y = op(&inputs)?;
        let weights = numbers("weights", y.dims(), y.dtype());
        (y * weights)?.sum_all()
    };
    Model::from_vars(vars, Vec::new(), loss).judge().unwrap()
}

fn angles(dtype: DType) -> [Tensor; 2] {
    let angles = Tensor::arange(0f32, 10.0, &Device::Cpu).unwrap().reshape((5, 2)).unwrap().to_dtype(dtype).unwrap();
    [angles.cos().unwrap(), angles.sin().unwrap()]
}

fn ids() -> Tensor {
    Tensor::new(&[2u32, 0, 2, 1, 3], &Device::Cpu).unwrap()
}

/// An op of ours with the shapes of its inputs and Candle's fused counterpart, if it has one.
type Case = (&'static str, Op, &'static [&'static [usize]], Option<Op>);

const CASES: [Case; 11] = [
    (
        "rms_norm",
        |x| ours::rms_norm(&x[0], &x[1], 1e-5),
        &[&[3, 6], &[6]],
        Some(|x| candle_nn::ops::rms_norm(&x[0], &x[1], 1e-5)),
    ),
    (
        "layer_norm",
        |x| ours::layer_norm(&x[0], &x[1], &x[2], 1e-5),
        &[&[3, 6], &[6], &[6]],
        Some(|x| candle_nn::ops::layer_norm(&x[0], &x[1], &x[2], 1e-5)),
    ),
    (
        "softmax_last_dim",
        |x| ours::softmax_last_dim(&x[0]),
        &[&[3, 7]],
        Some(|x| candle_nn::ops::softmax_last_dim(&x[0])),
    ),
    (
        "rope",
        |x| ours::rope(&x[0], &angles(x[0].dtype())[0], &angles(x[0].dtype())[1]),
        &[&[2, 3, 5, 4]],
        Some(|x| rotary_emb::rope(&x[0], &angles(x[0].dtype())[0], &angles(x[0].dtype())[1])),
    ),
    (
        "rope_interleaved",
        |x| ours::rope_interleaved(&x[0], &angles(x[0].dtype())[0], &angles(x[0].dtype())[1]),
        &[&[2, 3, 5, 4]],
        Some(|x| rotary_emb::rope_i(&x[0], &angles(x[0].dtype())[0], &angles(x[0].dtype())[1])),
    ),
    (
        "rope_thd",
        |x| ours::rope_thd(&x[0], &angles(x[0].dtype())[0], &angles(x[0].dtype())[1]),
        &[&[2, 5, 3, 4]],
        Some(|x| rotary_emb::rope_thd(&x[0], &angles(x[0].dtype())[0], &angles(x[0].dtype())[1])),
    ),
    (
        "causal_attention",
        |x| ours::causal_attention(&x[0], &x[1], &x[2]),
        &[&[1, 4, 5, 3], &[1, 2, 5, 3], &[1, 2, 5, 3]],
        Some(|x| {
            let rows = |x: &Tensor| x.transpose(1, 2)?.contiguous();
            let mask = candle_nn::attention::AttnMask::causal();
            candle_nn::attention::flash_attn::<f32>(&rows(&x[0])?, &rows(&x[1])?, &rows(&x[2])?, 0.5, mask, None, None)
        }),
    ),
    ("swiglu", |x| ours::swiglu(&x[0], &x[1]), &[&[3, 5], &[3, 5]], None),
    ("embedding", |x| ours::embedding(&ids(), &x[0]), &[&[4, 3]], None),
    ("linear", |x| ours::linear(&x[0], &x[1], Some(&x[2])), &[&[2, 3, 4], &[5, 4], &[5]], None),
    ("linear_cross_entropy", |x| ours::linear_cross_entropy(&x[0], &x[1], &ids()), &[&[5, 3], &[4, 3]], None),
];

#[test]
fn every_op_of_ours_is_right_and_candles_fused_one_fails() {
    for (name, ours, shapes, theirs) in CASES {
        let verdict = judge(ours, shapes, DType::F64);
        assert!(verdict.passed() && verdict.asked.contains(&Question::Right), "{name}: {}", verdict.report());
        if let Some(theirs) = theirs {
            let verdict = judge(theirs, shapes, DType::F32);
            let missing = verdict.findings.iter().filter(|f| f.question == Question::Present).count();
            assert_eq!(missing, shapes.len(), "{name}: {}", verdict.report());
            let cut = verdict.cut.unwrap_or_default();
            assert!(cut.contains("has no backward pass"), "{name}: {cut}");
        }
    }
}
