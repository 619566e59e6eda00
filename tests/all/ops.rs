//! Tests of `ops`: every backward kernel against central differences in f64, f32 against f64, the same
//! bits for any number of threads, and AdamW against Candle's.

use proptest::prelude::*;
use shikha::ops::{
    IGNORE, Precision, Real, adamw, attention, embedding, linear, linear_cross_entropy, rms_norm, rope, swiglu,
};
use shikha::rng::Stream;

fn random(name: &str, count: usize) -> Vec<f64> {
    let stream = Stream::new(11, name);
    (0..count as u64).map(|i| stream.normal(i)).collect()
}

fn to<T: Real>(x: &[f64]) -> Vec<T> {
    x.iter().map(|x| T::from_f64(*x)).collect()
}

/// ‖x‖.
fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// ‖a − b‖.
fn error<T: Real>(a: &[T], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a.to_f64() - b).powi(2)).sum::<f64>().sqrt()
}

/// ‖a − b‖ / ‖b‖.
fn distance<T: Real>(a: &[T], b: &[f64]) -> f64 {
    error(a, b) / length(b)
}

/// Outputs and gradients of one op for given inputs and cotangent.
struct Run<T> {
    out: Vec<T>,
    gradients: Vec<Vec<T>>,
}

/// One op with its shape, for any number type.
trait Op: Sync {
    fn run<T: Real>(&self, inputs: &[Vec<T>], cotangent: &[T]) -> Run<T>;
}

/// Every gradient against central differences, f32 against f64, and 1, 2 and 3 threads to the bit.
fn check(op: &impl Op, sizes: &[usize], outputs: usize) -> Result<(), TestCaseError> {
    let inputs: Vec<Vec<f64>> = sizes.iter().enumerate().map(|(i, n)| random(&format!("input {i}"), *n)).collect();
    let cotangent = random("cotangent", outputs);
    let exact = op.run(&inputs, &cotangent);
    let loss = |inputs: &[Vec<f64>]| -> f64 {
        op.run(inputs, &cotangent).out.iter().zip(&cotangent).map(|(y, c)| y * c).sum()
    };
    for (which, gradient) in exact.gradients.iter().enumerate() {
        let mut moved = inputs.clone();
        let difference: Vec<f64> = (0..sizes[which])
            .map(|i| {
                let (x, step) = (inputs[which][i], 1e-5);
                moved[which][i] = x + step;
                let above = loss(&moved);
                moved[which][i] = x - step;
                let below = loss(&moved);
                moved[which][i] = x;
                (above - below) / (2.0 * step)
            })
            .collect();
        // Where terms cancel (a norm of width 1, say) the difference is noise of about 1e-16 / step.
        let close = error(gradient, &difference) < (1e-6 * length(&difference)).max(1e-10);
        prop_assert!(close, "gradient {which}: {gradient:?} for {difference:?}");
    }
    let (inputs, cotangent): (Vec<Vec<f32>>, Vec<f32>) = (inputs.iter().map(|x| to(x)).collect(), to(&cotangent));
    let single = op.run(&inputs, &cotangent);
    prop_assert!(distance(&single.out, &exact.out) < 2e-3);
    for (single, exact) in single.gradients.iter().zip(&exact.gradients) {
        prop_assert!(error(single, exact) < (2e-3 * length(exact)).max(1e-6));
    }
    Ok(())
}

/// f32 bits of outputs and gradients with 1, 2 and 3 threads.
fn same_bits(op: &impl Op, sizes: &[usize], outputs: usize) {
    let inputs: Vec<Vec<f32>> = sizes.iter().enumerate().map(|(i, n)| to(&random(&format!("bits {i}"), *n))).collect();
    let cotangent = to(&random("bits", outputs));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let run: Run<f32> = pool.install(|| op.run(&inputs, &cotangent));
        run.gradients.into_iter().chain([run.out]).map(|x| x.iter().map(|x| x.to_bits()).collect()).collect()
    };
    let one: Vec<Vec<u32>> = run(1);
    assert!(one.iter().all(|part| part.iter().any(|bits| *bits != 0)), "an all-zero result proves nothing");
    for threads in [2, 3] {
        assert!(one == run(threads), "{threads} threads give other bits");
    }
}

struct RmsNorm(usize, usize);

impl Op for RmsNorm {
    fn run<T: Real>(&self, inputs: &[Vec<T>], dy: &[T]) -> Run<T> {
        let Self(rows, width) = *self;
        let (mut out, mut inverse) = (vec![T::ZERO; rows * width], vec![T::ZERO; rows]);
        let (mut dx, mut dgain) = (vec![T::ZERO; rows * width], vec![T::ZERO; width]);
        rms_norm::forward(&inputs[0], &inputs[1], 1e-5, &mut out, &mut inverse);
        rms_norm::backward(&inputs[0], &inputs[1], &inverse, dy, &mut dx, &mut dgain);
        Run { out, gradients: vec![dx, dgain] }
    }
}

struct Linear(linear::Shape);

impl Op for Linear {
    fn run<T: Real>(&self, inputs: &[Vec<T>], dy: &[T]) -> Run<T> {
        let mut out = vec![T::ONE; dy.len()];
        let [mut dx, mut dw] = [vec![T::ONE; inputs[0].len()], vec![T::ZERO; inputs[1].len()]];
        linear::forward(&inputs[0], &inputs[1], &mut out, self.0, false);
        linear::backward_input(dy, &inputs[1], &mut dx, self.0, false);
        linear::backward_weight(dy, &inputs[0], &mut dw, self.0);
        Run { out, gradients: vec![dx, dw] }
    }
}

struct Swiglu;

impl Op for Swiglu {
    fn run<T: Real>(&self, inputs: &[Vec<T>], dy: &[T]) -> Run<T> {
        let [mut out, mut dgate, mut dup] = [(); 3].map(|()| vec![T::ONE; dy.len()]);
        swiglu::forward(&inputs[0], &inputs[1], &mut out);
        swiglu::backward(&inputs[0], &inputs[1], dy, &mut dgate, &mut dup);
        Run { out, gradients: vec![dgate, dup] }
    }
}

/// Rows of `heads` heads of the given width, `time` positions from `start`.
struct Rope {
    heads: usize,
    head_dim: usize,
    time: usize,
    start: usize,
}

impl Op for Rope {
    fn run<T: Real>(&self, inputs: &[Vec<T>], dy: &[T]) -> Run<T> {
        let tables = rope::Tables::new(self.start + self.time, self.head_dim, 10_000.0);
        let (mut out, mut dx) = (inputs[0].clone(), dy.to_vec());
        rope::forward(&mut out, &tables, self.start, self.time, self.heads);
        rope::backward(&mut dx, &tables, self.start, self.time, self.heads);
        Run { out, gradients: vec![dx] }
    }
}

struct Attention(attention::Shape);

impl Attention {
    fn sizes(&self) -> [usize; 3] {
        let rows = self.0.batch * self.0.time * self.0.head_dim;
        [rows * self.0.heads, rows * self.0.kv_heads, rows * self.0.kv_heads]
    }
}

impl Op for Attention {
    fn run<T: Real>(&self, inputs: &[Vec<T>], dout: &[T]) -> Run<T> {
        let [q, k, v] = [&inputs[0], &inputs[1], &inputs[2]];
        let mut out = vec![T::ONE; q.len()];
        let mut log_sum_exp = vec![T::ZERO; self.0.batch * self.0.heads * self.0.time];
        attention::forward(q, k, v, &self.0, &mut out, &mut log_sum_exp);
        let [mut dq, mut dk, mut dv] = [q, k, v].map(|x| vec![T::ONE; x.len()]);
        let saved = attention::Saved { out: &out, log_sum_exp: &log_sum_exp };
        attention::backward(q, k, v, saved, dout, &self.0, &mut dq, &mut dk, &mut dv);
        Run { out, gradients: vec![dq, dk, dv] }
    }
}

struct Embedding(Vec<u32>, usize);

impl Op for Embedding {
    fn run<T: Real>(&self, inputs: &[Vec<T>], dout: &[T]) -> Run<T> {
        let (mut out, mut dtable) = (vec![T::ZERO; dout.len()], vec![T::ZERO; inputs[0].len()]);
        embedding::forward(&self.0, &inputs[0], &mut out, self.1);
        embedding::backward(&self.0, dout, &mut dtable, self.1);
        Run { out, gradients: vec![dtable] }
    }
}

/// The sum of the losses as one output; the cotangent is the scale.
struct CrossEntropy(linear_cross_entropy::Shape, Vec<u32>);

impl Op for CrossEntropy {
    fn run<T: Real>(&self, inputs: &[Vec<T>], scale: &[T]) -> Run<T> {
        let [mut dx, mut dw] = [vec![T::ONE; inputs[0].len()], vec![T::ZERO; inputs[1].len()]];
        let (x, w, targets) = (&inputs[0], &inputs[1], &self.1);
        let (nats, counted) =
            linear_cross_entropy::forward_backward(x, w, targets, self.0, scale[0].to_f64(), &mut dx, &mut dw);
        assert_eq!(counted, targets.iter().filter(|t| **t != IGNORE).count());
        let rows = linear_cross_entropy::per_row(x, w, targets, self.0);
        assert!((rows.iter().sum::<f64>() - nats).abs() <= 1e-5 * nats.abs());
        Run { out: vec![T::from_f64(nats)], gradients: vec![dx, dw] }
    }
}

/// Targets in which every fourth is ignored, the first never.
fn targets(rows: usize, vocabulary: usize) -> Vec<u32> {
    let stream = Stream::new(5, "targets");
    (0..rows as u64).map(|i| if i % 4 == 3 { IGNORE } else { stream.below(i, vocabulary as u64) as u32 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn rms_norm_is_right(rows in 1usize..5, width in 1usize..37) {
        check(&RmsNorm(rows, width), &[rows * width, width], rows * width)?;
    }

    #[test]
    fn linear_is_right(rows in 1usize..6, inputs in 1usize..19, outputs in 1usize..9) {
        let op = Linear(linear::Shape { rows, inputs, outputs, precision: Precision::F32 });
        check(&op, &[rows * inputs, outputs * inputs], rows * outputs)?;
    }

    #[test]
    fn swiglu_is_right(count in 1usize..70) {
        check(&Swiglu, &[count, count], count)?;
    }

    #[test]
    fn rope_is_right(batch in 1usize..3, time in 1usize..5, start in 0usize..9, heads in 1usize..4, half in 1usize..6) {
        let count = batch * time * heads * 2 * half;
        check(&Rope { heads, head_dim: 2 * half, time, start }, &[count], count)?;
    }

    #[test]
    fn attention_is_right(batch in 1usize..3, time in 1usize..9, kv_heads in 1usize..3, group in 1usize..4, head_dim in 1usize..6) {
        let op = Attention(attention::Shape { batch, time, heads: kv_heads * group, kv_heads, head_dim });
        check(&op, &op.sizes(), op.sizes()[0])?;
    }

    #[test]
    fn embedding_is_right_where_ids_repeat(ids in prop::collection::vec(0u32..5, 1..20), width in 1usize..7) {
        let outputs = ids.len() * width;
        check(&Embedding(ids, width), &[5 * width], outputs)?;
    }

    #[test]
    fn linear_cross_entropy_is_right(rows in 1usize..14, inputs in 1usize..7, vocabulary in 2usize..30) {
        let op = CrossEntropy(linear_cross_entropy::Shape { rows, inputs, vocabulary, precision: Precision::F32 }, targets(rows, vocabulary));
        check(&op, &[rows * inputs, vocabulary * inputs], 1)?;
    }
}

#[test]
fn attention_is_right_across_tiles() {
    // 150 positions are three blocks of queries and two of keys; every gradient against a direct formula.
    let shape = attention::Shape { batch: 1, time: 150, heads: 2, kv_heads: 1, head_dim: 3 };
    let op = Attention(shape);
    let inputs: Vec<Vec<f64>> = op.sizes().iter().enumerate().map(|(i, n)| random(&format!("tile {i}"), *n)).collect();
    let direct = |inputs: &[Vec<f64>]| -> Vec<f64> {
        let row = |x: &[f64], t: usize, width: usize, head: usize| x[t * width + head * 3..][..3].to_vec();
        (0..150usize)
            .flat_map(|t| (0..2).map(move |head| (t, head)))
            .flat_map(|(t, head)| {
                let q = row(&inputs[0], t, 6, head);
                let score =
                    |s: usize| row(&inputs[1], s, 3, 0).iter().zip(&q).map(|(k, q)| k * q).sum::<f64>() / 3f64.sqrt();
                let weights: Vec<f64> = (0..=t).map(|s| score(s).exp()).collect();
                let total: f64 = weights.iter().sum();
                let value = |j: usize| weights.iter().enumerate().map(|(s, p)| p * inputs[2][s * 3 + j]).sum::<f64>();
                (0..3).map(|j| value(j) / total).collect::<Vec<_>>()
            })
            .collect()
    };
    let cotangent = random("tile cotangent", op.sizes()[0]);
    let run = op.run(&inputs, &cotangent);
    assert!(distance(&run.out, &direct(&inputs)) < 1e-12);
    for (which, gradient) in run.gradients.iter().enumerate() {
        // One random direction per input: its derivative involves every element.
        let direction = random(&format!("direction {which}"), inputs[which].len());
        let at = |step: f64| -> f64 {
            let mut moved = inputs.clone();
            moved[which].iter_mut().zip(&direction).for_each(|(x, d)| *x += step * d);
            direct(&moved).iter().zip(&cotangent).map(|(y, c)| y * c).sum()
        };
        let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
        let found: f64 = gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        assert!((found - expected).abs() < 1e-6 * expected.abs(), "input {which}: {found} for {expected}");
    }
}

#[test]
fn bits_are_the_same_for_any_number_of_threads() {
    same_bits(&RmsNorm(131, 65), &[131 * 65, 65], 131 * 65);
    same_bits(
        &Linear(linear::Shape { rows: 131, inputs: 130, outputs: 67, precision: Precision::F32 }),
        &[131 * 130, 67 * 130],
        131 * 67,
    );
    same_bits(&Swiglu, &[40_001, 40_001], 40_001);
    same_bits(&Rope { heads: 3, head_dim: 8, time: 70, start: 2 }, &[140 * 24], 140 * 24);
    let op = Attention(attention::Shape { batch: 3, time: 150, heads: 4, kv_heads: 2, head_dim: 16 });
    same_bits(&op, &op.sizes(), op.sizes()[0]);
    let ids = (0..5000).map(|i| (i * i % 97) as u32).collect();
    same_bits(&Embedding(ids, 9), &[97 * 9], 5000 * 9);
    let shape = linear_cross_entropy::Shape { rows: 600, inputs: 24, vocabulary: 333, precision: Precision::F32 };
    same_bits(&CrossEntropy(shape, targets(600, 333)), &[600 * 24, 333 * 24], 1);
}

#[test]
fn ignored_rows_add_nothing() {
    let shape = linear_cross_entropy::Shape { rows: 2, inputs: 3, vocabulary: 4, precision: Precision::F32 };
    let (x, w) = (random("x", 6), random("w", 12));
    let (mut dx, mut dw) = (vec![7.0; 6], vec![0.5; 12]);
    let ignored = [IGNORE, IGNORE];
    let (nats, counted) = linear_cross_entropy::forward_backward(&x, &w, &ignored, shape, 1.0, &mut dx, &mut dw);
    assert_eq!((nats, counted), (0.0, 0));
    assert_eq!((dx, dw), (vec![0.0; 6], vec![0.5; 12]));
    assert_eq!(linear_cross_entropy::per_row(&x, &w, &ignored, shape), [0.0, 0.0]);
}

#[test]
fn adamw_walks_with_candle() {
    use candle_core::{Device, Tensor, Var};
    use candle_nn::{AdamW, Optimizer, ParamsAdamW};
    let start = random("weights", 101);
    let var = Var::from_tensor(&Tensor::from_vec(start.clone(), 101, &Device::Cpu).unwrap()).unwrap();
    let params = ParamsAdamW { lr: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1 };
    let mut candle = AdamW::new(vec![var.clone()], params).unwrap();
    let (mut weights, mut first, mut second) = (start.clone(), vec![0.0; 101], vec![0.0; 101]);
    for step in 1..=50u64 {
        // The loss Σ (w − c)² has the gradient 2(w − c).
        let centre = Tensor::from_vec(random(&format!("centre {step}"), 101), 101, &Device::Cpu).unwrap();
        let loss = (var.as_tensor() - &centre).unwrap().sqr().unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        let gradient: Vec<f64> = gradients.get(&var).unwrap().to_vec1().unwrap();
        candle.step(&gradients).unwrap();
        // Half the gradient times a scale of two is the same step.
        let half: Vec<f64> = gradient.iter().map(|g| g / 2.0).collect();
        let settings = adamw::Settings {
            learning_rate: 0.01,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            weight_decay: 0.1,
            gradient_scale: 2.0,
            step,
        };
        adamw::step(&mut weights, &half, &mut first, &mut second, &settings);
    }
    let expected: Vec<f64> = var.to_vec1().unwrap();
    assert!(distance(&expected, &start) > 0.1, "the walk must go somewhere");
    assert!(distance(&weights, &expected) < 1e-10, "{}", distance(&weights, &expected));
}

/// Gradients of Σ c·f(inputs) through Candle against a composed twin of plain tensor ops.
fn same_through_candle(
    shapes: &[&[usize]],
    op: impl Fn(&[candle_core::Tensor]) -> candle_core::Result<candle_core::Tensor>,
    twin: impl Fn(&[candle_core::Tensor]) -> candle_core::Result<candle_core::Tensor>,
) {
    use candle_core::{Device, Tensor, Var};
    let vars: Vec<Var> = shapes
        .iter()
        .enumerate()
        .map(|(i, shape)| {
            let values = random(&format!("var {i}"), shape.iter().product());
            Var::from_tensor(&Tensor::from_vec(values, *shape, &Device::Cpu).unwrap()).unwrap()
        })
        .collect();
    let run = |f: &dyn Fn(&[Tensor]) -> candle_core::Result<Tensor>| -> Vec<Vec<f64>> {
        // The last two dimensions are swapped, so the op meets inputs that are not contiguous.
        let inputs: Vec<Tensor> = vars
            .iter()
            .map(
                |v| if v.rank() > 1 { v.transpose(v.rank() - 2, v.rank() - 1).unwrap() } else { v.as_tensor().clone() },
            )
            .collect();
        let out = f(&inputs).unwrap();
        let weights = Tensor::from_vec(random("c", out.elem_count()), out.shape(), &Device::Cpu).unwrap();
        let gradients = (&out * weights).unwrap().sum_all().unwrap().backward().unwrap();
        let flat = |t: &Tensor| t.flatten_all().unwrap().to_vec1().unwrap();
        [flat(&out)].into_iter().chain(vars.iter().map(|v| flat(gradients.get(v).expect("a gradient")))).collect()
    };
    for (ours, twin) in run(&op).iter().zip(&run(&twin)) {
        assert!(distance(ours, twin) < 1e-10, "{}", distance(ours, twin));
    }
}

#[test]
fn candle_ops_agree_with_plain_tensor_ops() {
    use candle_core::{D, Device, Tensor};
    use shikha::ops::candle;
    same_through_candle(
        &[&[2, 7, 3], &[7]],
        |x| candle::rms_norm(&x[0], &x[1], 1e-5),
        |x| {
            let mean = (x[0].sqr()?.mean_keepdim(D::Minus1)? + 1e-5)?;
            x[0].broadcast_div(&mean.sqrt()?)?.broadcast_mul(&x[1])
        },
    );
    same_through_candle(
        &[&[5, 3], &[5, 3]],
        |x| candle::swiglu(&x[0], &x[1]),
        |x| candle_nn::ops::silu(&x[0])? * &x[1],
    );
    let (q, kv): (&[usize], &[usize]) = (&[2, 4, 3, 5], &[2, 2, 3, 5]);
    same_through_candle(
        &[q, kv, kv],
        |x| candle::causal_attention(&x[0], &x[1], &x[2]),
        |x| {
            let spread = |t: &Tensor| t.unsqueeze(2)?.broadcast_as((2, 2, 2, 5, 3))?.reshape((2, 4, 5, 3));
            let scores = (x[0].contiguous()?.matmul(&spread(&x[1])?.t()?.contiguous()?)? / 3f64.sqrt())?;
            let mask: Vec<f64> = (0..25).map(|i| if i % 5 > i / 5 { f64::NEG_INFINITY } else { 0.0 }).collect();
            let scores = scores.broadcast_add(&Tensor::from_vec(mask, (5, 5), &Device::Cpu)?)?;
            candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&spread(&x[2])?)
        },
    );
}

#[test]
fn candle_ops_refuse_what_does_not_fit() {
    use candle_core::{DType, Device, Tensor};
    use shikha::ops::candle;
    let zeros = |shape: &[usize], dtype| Tensor::zeros(shape, dtype, &Device::Cpu).unwrap();
    let message = |result: candle_core::Result<Tensor>| result.unwrap_err().to_string();
    let x = zeros(&[2, 3], DType::F32);
    assert!(message(candle::rms_norm(&x, &zeros(&[4], DType::F32), 1e-5)).contains("last dimension"));
    assert!(message(candle::rms_norm(&x, &zeros(&[3], DType::F64), 1e-5)).contains("differ"));
    assert!(message(candle::swiglu(&x, &zeros(&[3, 2], DType::F32))).contains("same shape"));
    assert!(message(candle::swiglu(&zeros(&[2], DType::BF16), &zeros(&[2], DType::BF16))).contains("to_dtype"));
    let heads = |n| zeros(&[1, n, 2, 4], DType::F32);
    assert!(message(candle::causal_attention(&heads(3), &heads(2), &heads(2))).contains("divide"));
}
