//! Each fused op beside its composed twin, and beside Candle's own fused kernel where there is one:
//! milliseconds forward, and forward with backward, in one process.
//! `cargo bench --bench ops -- [directory for ops.csv]`.

use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{ops as fused, rotary_emb};
use shikha::artifact::write_atomic;
use shikha::ops::{candle as ours, composed};
use shikha::report::Table;
use shikha::rng::Stream;
use std::path::Path;
use std::time::Instant;

/// Repetitions, of which the median counts.
const REPEATS: usize = 9;

/// Sizes of the 16.9 M parameter model: 8 windows of 256, width 384, 6 heads, SwiGLU 1024, vocabulary 8192.
const BATCH: usize = 8;
const TIME: usize = 256;
const WIDTH: usize = 384;
const HEADS: usize = 6;
const INNER: usize = 1024;
const VOCABULARY: usize = 8192;

fn normal(name: &str, shape: &[usize]) -> Result<Var> {
    let stream = Stream::new(1, name);
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count as u64).map(|i| 0.5 * stream.normal(i) as f32).collect();
    Var::from_tensor(&Tensor::from_vec(values, shape, &Device::Cpu)?)
}

/// A way to compute an op from its inputs.
type Way<'a> = Box<dyn Fn(&[Tensor]) -> Result<Tensor> + 'a>;

struct Case<'a> {
    op: &'static str,
    inputs: Vec<Var>,
    ours: Way<'a>,
    composed: Way<'a>,
    candle: Option<Way<'a>>,
}

fn median(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let mut seconds = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let started = Instant::now();
        work()?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(1e3 * seconds[REPEATS / 2])
}

/// Milliseconds forward, and forward with backward.
fn time(inputs: &[Var], way: &Way) -> Result<[f64; 2]> {
    let plain: Vec<Tensor> = inputs.iter().map(|v| v.as_tensor().detach()).collect();
    let tracked: Vec<Tensor> = inputs.iter().map(|v| v.as_tensor().clone()).collect();
    let forward = median(|| way(&plain).map(drop))?;
    let both = median(|| way(&tracked)?.sum_all()?.backward().map(drop))?;
    Ok([forward, both])
}

fn cases() -> Result<Vec<Case<'static>>> {
    let rows = normal("rows", &[BATCH, TIME, WIDTH])?;
    let heads = |name| normal(name, &[BATCH, HEADS, TIME, WIDTH / HEADS]);
    let (gain, bias) = (normal("gain", &[WIDTH])?, normal("bias", &[WIDTH])?);
    let tables = |name| normal(name, &[TIME, WIDTH / HEADS / 2]).map(|v| v.as_detached_tensor());
    let [(cos, sin), (cos_i, sin_i)] = [(tables("cos")?, tables("sin")?), (tables("cos")?, tables("sin")?)];
    let (cos_f, sin_f) = (cos.clone(), sin.clone());
    let ids: Vec<u32> = (0..(BATCH * TIME) as u32).map(|i| i * 7919 % VOCABULARY as u32).collect();
    let ids = Tensor::from_vec(ids, (BATCH, TIME), &Device::Cpu)?;
    let (ids_c, ids_e, ids_ec) = (ids.clone(), ids.clone(), ids.clone());
    let table = normal("table", &[VOCABULARY, WIDTH])?;
    Ok(vec![
        Case {
            op: "RMSNorm",
            inputs: vec![rows.clone(), gain.clone()],
            ours: Box::new(|x| ours::rms_norm(&x[0], &x[1], 1e-5)),
            composed: Box::new(|x| composed::rms_norm(&x[0], &x[1], 1e-5)),
            candle: Some(Box::new(|x| fused::rms_norm(&x[0], &x[1], 1e-5))),
        },
        Case {
            op: "LayerNorm",
            inputs: vec![rows.clone(), gain, bias],
            ours: Box::new(|x| ours::layer_norm(&x[0], &x[1], &x[2], 1e-5)),
            composed: Box::new(|x| composed::layer_norm(&x[0], &x[1], &x[2], 1e-5)),
            candle: Some(Box::new(|x| fused::layer_norm(&x[0], &x[1], &x[2], 1e-5))),
        },
        Case {
            op: "softmax",
            inputs: vec![normal("scores", &[BATCH, HEADS, TIME, TIME])?],
            ours: Box::new(|x| ours::softmax_last_dim(&x[0])),
            composed: Box::new(|x| composed::softmax_last_dim(&x[0])),
            candle: Some(Box::new(|x| fused::softmax_last_dim(&x[0]))),
        },
        Case {
            op: "RoPE",
            inputs: vec![heads("q")?],
            ours: Box::new(move |x| ours::rope(&x[0], &cos, &sin)),
            composed: Box::new(move |x| composed::rope(&x[0], &cos_i, &sin_i)),
            candle: Some(Box::new(move |x| rotary_emb::rope(&x[0], &cos_f, &sin_f))),
        },
        Case {
            op: "causal attention",
            inputs: vec![heads("q")?, heads("k")?, heads("v")?],
            ours: Box::new(|x| ours::causal_attention(&x[0], &x[1], &x[2])),
            composed: Box::new(|x| composed::causal_attention(&x[0], &x[1], &x[2])),
            candle: None,
        },
        Case {
            op: "SwiGLU",
            inputs: vec![normal("gate", &[BATCH * TIME, INNER])?, normal("up", &[BATCH * TIME, INNER])?],
            ours: Box::new(|x| ours::swiglu(&x[0], &x[1])),
            composed: Box::new(|x| composed::swiglu(&x[0], &x[1])),
            candle: None,
        },
        Case {
            op: "embedding",
            inputs: vec![table.clone()],
            ours: Box::new(move |x| ours::embedding(&ids_e, &x[0])),
            composed: Box::new(move |x| composed::embedding(&ids_ec, &x[0])),
            candle: None,
        },
        Case {
            op: "linear",
            inputs: vec![rows.clone(), normal("weight", &[INNER, WIDTH])?],
            ours: Box::new(|x| ours::linear(&x[0], &x[1], None)),
            composed: Box::new(|x| composed::linear(&x[0], &x[1], None)),
            candle: None,
        },
        Case {
            op: "linear + cross-entropy",
            inputs: vec![rows, table],
            ours: Box::new(move |x| ours::linear_cross_entropy(&x[0], &x[1], &ids)),
            composed: Box::new(move |x| composed::linear_cross_entropy(&x[0], &x[1], &ids_c)),
            candle: None,
        },
    ])
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let header = ["op", "forward, ours", "composed", "Candle fused", "with backward, ours", "composed", "ratio"];
    let mut table = Table::new("ops", &header);
    let mut csv = "op,way,forward_ms,forward_backward_ms\n".to_owned();
    for case in cases()? {
        let (ours, composed) = (time(&case.inputs, &case.ours)?, time(&case.inputs, &case.composed)?);
        // Candle's fused kernels have no gradient: their backward pass would be fast and empty.
        let plain: Vec<Tensor> = case.inputs.iter().map(|v| v.as_detached_tensor()).collect();
        let candle = case.candle.map(|way| median(|| way(&plain).map(drop))).transpose()?;
        let shown = |ms: f64| format!("{ms:.2} ms");
        table.push(vec![
            case.op.to_owned(),
            shown(ours[0]),
            shown(composed[0]),
            candle.map_or("none".to_owned(), shown),
            shown(ours[1]),
            shown(composed[1]),
            format!("{:.1}", composed[1] / ours[1]),
        ]);
        for (way, [forward, both]) in [("ours", ours), ("composed", composed)] {
            csv += &format!("{},{way},{forward},{both}\n", case.op);
        }
        if let Some(forward) = candle {
            csv += &format!("{},candle-fused,{forward},\n", case.op);
        }
    }
    print!("{}", table.to_text(118));
    if let Some(directory) = std::env::args().skip(1).find(|a| !a.starts_with('-')) {
        write_atomic(&Path::new(&directory).join("ops.csv"), csv.as_bytes())?;
    }
    Ok(())
}
