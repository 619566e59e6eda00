//! Burn's entries that an older version can have, for the versions that are generic over a backend (0.20, 0.21).
//!
//! One source for all of them, on the ndarray backend; the checks are those of `burn/defects` in the older API. It
//! speaks as that program does: `--list`, and `--child ID [--aspect control]`, which prints a verdict as JSON.
//! A check that panics or overflows ends the process, which is its evidence.

use burn::backend::{Autodiff, NdArray};
use burn::grad_clipping::GradientClipping;
use burn::module::{AutodiffModule, Module, Param, ParamId};
use burn::nn::{Linear, LinearConfig, LinearLayout};
use burn::optim::{GradientsParams, Optimizer, SgdConfig};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorData, activation};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

type Plain = NdArray<f32>;
type Auto = Autodiff<Plain>;
type Auto64 = Autodiff<NdArray<f64>>;
/// Whether the defect shows, and the numbers that show it.
type Seen = (bool, String);
/// An entry: its name, its kind and its check, whose control is the same with `false`.
type Entry = (&'static str, &'static str, fn(bool) -> Seen);

const ENTRIES: &[Entry] = &[
    ("burn-linear-batched-weight-gradient", "speed", |d| speed(16, d, |x, w| batched(x, w))),
    ("burn-rank3-matmul", "speed", |d| speed(256, d, |x, w| x.matmul(w.unsqueeze()))),
    ("burn-param-map", "missing-gradient", param_map),
    ("burn-param-initialized", "missing-gradient", param_initialized),
    ("burn-init-mapper", "missing-gradient", init_mapper),
    ("burn-to-device", "missing-gradient", to_device),
    ("burn-col-layout-leaf", "missing-gradient", col_layout_leaf),
    #[cfg(alias_compiles)]
    ("burn-alias-field", "missing-gradient", alias_field),
    ("burn-tied-clones", "wrong-gradient", tied_clones),
    ("burn-gelu-gradient", "wrong-gradient", gelu_gradient),
    ("burn-col-layout-init", "interface", col_layout_init),
    ("burn-clip-per-tensor", "interface", clip_per_tensor),
    ("burn-clip-overflow", "precision", clip_overflow),
    ("burn-graph-memory", "memory", graph_memory),
    ("burn-deep-graph-overflow", "crash", deep_graph_overflow),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let at = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let Some(id) = at("--child") else {
        let entry = |(id, kind, _): &Entry| serde_json::json!({ "id": id, "kind": kind, "title": id });
        let entries: Vec<_> = ENTRIES.iter().map(entry).collect();
        println!("{}", serde_json::json!({ "version": env!("BURN_VERSION"), "entries": entries }));
        return;
    };
    let Some((_, _, check)) = ENTRIES.iter().find(|(known, _, _)| known == id) else {
        eprintln!("error: there is no entry called `{id}`");
        std::process::exit(1);
    };
    let (present, evidence) = check(at("--aspect").is_none_or(|aspect| aspect != "control"));
    let verdict = if present { "present" } else { "absent" };
    println!("{}", serde_json::json!({ "verdict": verdict, "evidence": evidence }));
}

/// Reproducible values in (-1, 1) that no small pattern fits, as `burn/defects` has them.
fn tensor<B: Backend, const D: usize>(shape: [usize; D], seed: u32) -> Tensor<B, D> {
    let value = |i: usize| ((1.7 * i as f64 + 0.37 * f64::from(seed) + 0.5).sin() * 0.9) as f32;
    let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), &B::Device::default())
}

fn numbers<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn furthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// One SGD step: present when weight or bias has no gradient or does not move.
fn judge_training(layer: Linear<Auto>) -> Seen {
    let input = tensor([4, 16], 1);
    // Something that is trained, so that the loss has a tape at all.
    let anchor: Tensor<Auto, 1> = tensor([8], 4).require_grad();
    let loss = |l: &Linear<Auto>| (l.forward::<2>(input.clone()) + anchor.clone().unsqueeze()).powi_scalar(2).mean();
    let tape = loss(&layer).backward();
    let flag = |tensor: bool| if tensor { "a" } else { "NO" };
    let bias = layer.bias.as_ref().is_some_and(|b| b.val().grad(&tape).is_some());
    let weight = layer.weight.val().grad(&tape).is_some();
    let values = |l: &Linear<Auto>| (numbers(l.weight.val()), l.bias.as_ref().map_or(Vec::new(), |b| numbers(b.val())));
    let before = values(&layer);
    let gradients = GradientsParams::from_grads(tape, &layer);
    let layer = SgdConfig::new().init().step(0.1, layer, gradients);
    let after = values(&layer);
    let moved = [furthest(&before.0, &after.0), furthest(&before.1, &after.1)];
    let again = catch_unwind(AssertUnwindSafe(|| loss(&layer).backward())).is_ok();
    let seen = format!(
        "weight: {} gradient, moved by {:.1e}; bias: {} gradient, moved by {:.1e}; step 2 {}",
        flag(weight),
        moved[0],
        flag(bias),
        moved[1],
        if again { "runs" } else { "panics" }
    );
    (!weight || !bias || moved.contains(&0.0), seen)
}

fn with(weight: Param<Tensor<Auto, 2>>) -> Linear<Auto> {
    Linear { weight, bias: Some(Param::from_tensor(tensor([8], 3))) }
}

fn param_map(defective: bool) -> Seen {
    let weight = Param::from_tensor(tensor([16, 8], 2));
    judge_training(with(if defective {
        weight.map(|w| w * 0.5)
    } else {
        weight.map(|w| (w * 0.5).detach().require_grad())
    }))
}

fn param_initialized(defective: bool) -> Seen {
    let weight = tensor([16, 8], 2);
    let initialized = |w| Param::initialized(ParamId::new(), w);
    judge_training(with(if defective { initialized(weight) } else { Param::from_tensor(weight) }))
}

/// The older versions leave the lazy case without a gradient too, so the control is another way.
fn init_mapper(defective: bool) -> Seen {
    let weight = LinearConfig::new(16, 8).init::<Auto>(&Default::default()).weight;
    let _ = weight.val();
    judge_training(with(if defective {
        weight.init_mapper(|w| w * 0.5)
    } else {
        Param::from_tensor((weight.val() * 0.5).detach())
    }))
}

fn to_device(defective: bool) -> Seen {
    let (layer, device) = (with(Param::from_tensor(tensor([16, 8], 2))), Default::default());
    judge_training(if defective { layer.to_device(&device) } else { layer.fork(&device) })
}

fn col_layout_leaf(defective: bool) -> Seen {
    let layout = if defective { LinearLayout::Col } else { LinearLayout::Row };
    judge_training(LinearConfig::new(16, 8).with_layout(layout).init(&Default::default()))
}

/// The layer by another name; 0.20 refuses it with a compile error.
#[cfg(alias_compiles)]
type Projection = Linear<Auto>;

#[cfg(alias_compiles)]
#[derive(Module, Debug)]
struct Aliased<B: Backend> {
    first: Linear<B>,
    second: Projection,
}

#[cfg(alias_compiles)]
#[derive(Module, Debug)]
struct Spelled<B: Backend> {
    first: Linear<B>,
    second: Linear<B>,
}

/// Present when the module counts, or hands its optimizer, fewer parameters than the two layers have.
#[cfg(alias_compiles)]
fn alias_field(defective: bool) -> Seen {
    let [first, second] = [2, 3].map(|seed| Linear { weight: Param::from_tensor(tensor([16, 16], seed)), bias: None });
    let tape = second.forward(first.forward::<2>(tensor([4, 16], 1)).tanh()).powi_scalar(2).mean().backward();
    let (counted, reached) = if defective {
        let model: Aliased<Auto> = Aliased { first, second };
        (model.num_params(), GradientsParams::from_grads(tape, &model).len())
    } else {
        let model: Spelled<Auto> = Spelled { first, second };
        (model.num_params(), GradientsParams::from_grads(tape, &model).len())
    };
    let seen = format!("{counted} of {} parameters counted, 2 layers, gradients for {reached}", 2 * 16 * 16);
    (counted < 2 * 16 * 16 || reached < 2, seen)
}

#[derive(Module, Debug)]
struct Tied<B: Backend> {
    embedding: Param<Tensor<B, 2>>,
    head: Option<Param<Tensor<B, 2>>>,
}

fn tied_clones(defective: bool) -> Seen {
    const RATE: f64 = 0.5;
    let (input, start): (Tensor<Auto, 2>, Tensor<Auto, 2>) = (tensor([4, 6], 1), tensor([6, 5], 2));
    let loss = |embedding: Tensor<Auto, 2>, head: Tensor<Auto, 2>| {
        (input.clone().matmul(embedding).tanh().matmul(head.transpose()) - 1).powi_scalar(2).mean()
    };
    let embedding = Param::from_tensor(start.clone());
    let mut model = Tied { head: defective.then(|| embedding.clone()), embedding };
    let (mut optimizer, mut by_hand) = (SgdConfig::new().init(), start);
    for _ in 0..3 {
        let head = model.head.as_ref().unwrap_or(&model.embedding).val();
        let gradients = GradientsParams::from_grads(loss(model.embedding.val(), head).backward(), &model);
        model = optimizer.step(RATE, model, gradients);
        let leaf = by_hand.detach().require_grad();
        let gradient = leaf.grad(&loss(leaf.clone(), leaf.clone()).backward()).expect("a leaf has a gradient");
        by_hand = leaf.detach() - Tensor::from_inner(gradient) * RATE;
    }
    let [first, second] = [&model.embedding, model.head.as_ref().unwrap_or(&model.embedding)].map(|p| numbers(p.val()));
    let expected = numbers(by_hand);
    let wrong = furthest(&first, &expected).max(furthest(&second, &expected));
    let apart = furthest(&first, &second);
    (wrong > 1e-5, format!("after 3 SGD steps the uses differ by {apart:.2e}, and by {wrong:.2e} from one weight"))
}

fn gelu_gradient(defective: bool) -> Seen {
    const STEP: f64 = 1e-4;
    let points = [-3.5, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0];
    let at = |shift: f64| -> Tensor<Auto64, 1> {
        Tensor::from_data(TensorData::from(points.map(|x| x + shift)), &Default::default())
    };
    // The control is the exact function, composed of ops that have gradients of their own.
    let exact = |x: Tensor<Auto64, 1>| x.clone() * 0.5 * ((x / 2f64.sqrt()).erf() + 1);
    let gelu = |x| if defective { activation::gelu(x) } else { exact(x) };
    let input = at(0.0).require_grad();
    let tape = gelu(input.clone()).sum().backward();
    let gradient = input.grad(&tape).map_or(Vec::new(), numbers);
    let (above, below) = (numbers(gelu(at(STEP))), numbers(gelu(at(-STEP))));
    let slopes: Vec<f64> = above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * STEP)).collect();
    let off = furthest(&slopes, &gradient);
    (off > 1e-6, format!("f64, largest distance of gradient and difference quotient at 7 points {off:.1e}"))
}

fn col_layout_init(defective: bool) -> Seen {
    let layout = || if defective { LinearLayout::Col } else { LinearLayout::Row };
    let largest = |inputs: usize, outputs: usize| {
        let layer = LinearConfig::new(inputs, outputs).with_layout(layout()).init::<Plain>(&Default::default());
        numbers(layer.weight.val()).iter().fold(0.0, |m: f64, v| m.max(v.abs())) * (inputs as f64).sqrt()
    };
    let shares = [largest(64, 1024), largest(1024, 64)];
    let off = shares.iter().any(|share| !(0.9..=1.001).contains(share));
    (off, format!("largest weight by its bound: 64 -> 1024 {:.3}, 1024 -> 64 {:.3}", shares[0], shares[1]))
}

fn clip_per_tensor(defective: bool) -> Seen {
    let gradients = [[3.0f32, 4.0], [0.3, 0.4]].map(|g| Tensor::<Plain, 1>::from_floats(g, &Default::default()));
    let whole = gradients.iter().map(|g| norm(&numbers(g.clone())).powi(2)).sum::<f64>().sqrt();
    let [large, small] = gradients.map(|g| {
        let clipped = if defective { GradientClipping::Norm(1.0).clip_gradient(g) } else { g * (1.0 / whole) };
        norm(&numbers(clipped))
    });
    ((large / small / 10.0 - 1.0).abs() > 1e-3, format!("norms 5 and 0.5 clipped at 1: {large:.3} and {small:.3}"))
}

fn clip_overflow(defective: bool) -> Seen {
    let values = [1e20f64, 1.0];
    let clipped = if defective {
        let gradient = Tensor::<Plain, 1>::from_data(TensorData::from(values), &Default::default());
        numbers(GradientClipping::Norm(1.0).clip_gradient(gradient))
    } else {
        let gradient = Tensor::<NdArray<f64>, 1>::from_data(TensorData::from(values), &Default::default());
        numbers(GradientClipping::Norm(1.0).clip_gradient(gradient))
    };
    let length = norm(&clipped);
    ((length - 1.0).abs() > 1e-3, format!("[1e20, 1] clipped at 1 gives {clipped:?}, of norm {length:.3}"))
}

/// Resident memory in bytes; 4 KiB pages.
fn resident() -> f64 {
    let line = std::fs::read_to_string("/proc/self/statm").expect("this check needs Linux");
    line.split_whitespace().nth(1).and_then(|field| field.parse::<f64>().ok()).expect("a number of pages") * 4096.0
}

fn graph_memory(defective: bool) -> Seen {
    const PASSES: usize = 200;
    let device = Default::default();
    let layers: Vec<Linear<Auto>> = (0..3).map(|_| LinearConfig::new(256, 256).init(&device)).collect();
    let plain: Vec<Linear<Plain>> = layers.iter().map(AutodiffModule::valid).collect();
    let pass = || {
        if defective {
            layers.iter().fold(tensor::<Auto, 2>([256, 256], 1), |x, l| l.forward(x).tanh()).mean().into_data();
        } else {
            plain.iter().fold(tensor::<Plain, 2>([256, 256], 1), |x, l| l.forward(x).tanh()).mean().into_data();
        }
    };
    (0..5).for_each(|_| pass());
    let before = resident();
    (0..PASSES).for_each(|_| pass());
    let grown = (resident() - before) / (1 << 20) as f64;
    (
        grown > 0.25 * PASSES as f64,
        format!("{PASSES} forward passes of three Linear(256) on 256 rows: {grown:.1} MiB more"),
    )
}

fn deep_graph_overflow(defective: bool) -> Seen {
    const PAIRS: usize = 10_000;
    let stack_mib = if defective { 2 } else { 256 };
    let work = || {
        let leaf: Tensor<Auto, 1> = tensor([2], 1).require_grad();
        let chain = (0..PAIRS).fold(leaf.clone(), |x, _| x.tanh().mul_scalar(1.001));
        let _ = (leaf.clone() * leaf).sum().backward();
        drop(chain);
    };
    let thread = std::thread::Builder::new().stack_size(stack_mib << 20).spawn(work).expect("a thread");
    (thread.join().is_err(), format!("a live chain of {PAIRS} pairs of ops, {stack_mib} MiB of stack"))
}

const WIDTH: usize = 512;
const ROWS: usize = 1024;

fn batched(x: Tensor<Auto, 3>, w: Tensor<Auto, 2>) -> Tensor<Auto, 3> {
    Linear { weight: Param::initialized(ParamId::new(), w), bias: None }.forward(x)
}

/// The backward pass beside that of the product on flattened rows, both measured in turns: present below 65 %.
fn speed(batch: usize, defective: bool, product: fn(Tensor<Auto, 3>, Tensor<Auto, 2>) -> Tensor<Auto, 3>) -> Seen {
    let flat = |x: Tensor<Auto, 3>, w: Tensor<Auto, 2>| {
        x.reshape([ROWS, WIDTH]).matmul(w).reshape([batch, ROWS / batch, WIDTH])
    };
    let shape = [batch, ROWS / batch, WIDTH];
    let (x, upstream): (Tensor<Auto, 3>, Tensor<Auto, 3>) = (tensor(shape, 1).require_grad(), tensor(shape, 3));
    let weight: Tensor<Auto, 2> = tensor([WIDTH, WIDTH], 2).require_grad();
    let seconds = |judged: bool| {
        let y = if judged { product(x.clone(), weight.clone()) } else { flat(x.clone(), weight.clone()) };
        let loss = (y * upstream.clone()).sum();
        let started = Instant::now();
        let _tape = loss.backward();
        started.elapsed().as_secs_f64()
    };
    let mut best = [f64::INFINITY; 2];
    for _ in 0..5 {
        best[0] = best[0].min(seconds(defective));
        best[1] = best[1].min(seconds(false));
    }
    let [own, flattened] = best.map(|s| 4.0 * (ROWS * WIDTH * WIDTH) as f64 / s / 1e9);
    let share = own / flattened;
    (share < 0.65, format!("batch {batch}: backward {own:.1} GFLOP/s, {:.0} % of the flattened one", 100.0 * share))
}
