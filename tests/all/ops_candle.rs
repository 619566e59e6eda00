//! Tests of `ops::candle`: every op's gradient in f64 against central differences, in f32 against the
//! composed twin in f64, for inputs in any memory order; properties; AdamW against Candle's.

use candle_core::{DType, Device, Result, Tensor, Var};
use proptest::prelude::*;

use shikha::ops::{IGNORE, candle, composed};
use shikha::rng::Stream;

pub fn random(name: &str, count: usize) -> Vec<f64> {
    let stream = Stream::new(17, name);
    (0..count as u64).map(|i| stream.normal(i)).collect()
}

pub fn tensor(values: Vec<f64>, shape: &[usize]) -> Tensor {
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

pub fn flat(x: &Tensor) -> Vec<f64> {
    x.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap()
}

pub fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[track_caller]
pub fn assert_close(found: &[f64], expected: &[f64], relative: f64, absolute: f64) {
    assert_eq!(found.len(), expected.len());
    let error = length(&found.iter().zip(expected).map(|(a, b)| a - b).collect::<Vec<_>>());
    assert!(error <= (relative * length(expected)).max(absolute), "{error}: {found:?} for {expected:?}");
}

type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;

/// Inputs, and whether each lies in memory with its last two dimensions swapped.
struct Case<'a> {
    shapes: &'a [&'a [usize]],
    swapped: bool,
}

impl Case<'_> {
    fn values(&self) -> Vec<Vec<f64>> {
        let one = |(i, shape): (usize, &&[usize])| random(&format!("input {i}"), shape.iter().product());
        self.shapes.iter().enumerate().map(one).collect()
    }

    /// Σ c·f(inputs), the output and every input's gradient.
    fn run(&self, f: Function, values: &[Vec<f64>], dtype: DType) -> (f64, Vec<f64>, Vec<Vec<f64>>) {
        let swap = |x: &Tensor| {
            if self.swapped && x.rank() > 1 { x.transpose(x.rank() - 2, x.rank() - 1).unwrap() } else { x.clone() }
        };
        let var = |(values, shape): (&Vec<f64>, &&[usize])| {
            let values = tensor(values.clone(), shape).to_dtype(dtype).unwrap();
            Var::from_tensor(&swap(&values).contiguous().unwrap()).unwrap()
        };
        let vars: Vec<Var> = values.iter().zip(self.shapes).map(var).collect();
        let out = f(&vars.iter().map(|v| swap(v)).collect::<Vec<_>>()).unwrap();
        let weights = tensor(random("cotangent", out.elem_count()), out.dims()).to_dtype(dtype).unwrap();
        let loss = (&out * weights).unwrap().sum_all().unwrap();
        let store = loss.backward().unwrap();
        let gradients = vars.iter().map(|v| flat(&swap(store.get(v).expect("a gradient")))).collect();
        (flat(&loss)[0], flat(&out), gradients)
    }

    fn check(&self, f: Function, twin: Function) {
        let mut values = self.values();
        let (_, out, exact) = self.run(twin, &values, DType::F64);
        let (_, ours, gradients) = self.run(f, &values, DType::F64);
        assert_close(&ours, &out, 1e-12, 1e-14);
        for (which, gradient) in gradients.iter().enumerate() {
            let count = values[which].len();
            let difference: Vec<f64> = (0..count)
                .map(|i| {
                    let x = values[which][i];
                    let mut at = |step: f64| {
                        values[which][i] = x + step;
                        self.run(f, &values, DType::F64).0
                    };
                    let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                    values[which][i] = x;
                    difference
                })
                .collect();
            // Where terms cancel the difference is noise of about 1e-16 / step.
            assert_close(gradient, &difference, 1e-6, 1e-9);
        }
        let (_, single, gradients) = self.run(f, &values, DType::F32);
        assert_close(&single, &out, 2e-3, 1e-6);
        for (single, exact) in gradients.iter().zip(&exact) {
            assert_close(single, exact, 2e-3, 1e-4);
        }
    }
}

fn check(shapes: &[&[usize]], f: Function, twin: Function) {
    for swapped in [false, true] {
        Case { shapes, swapped }.check(f, twin);
    }
}

#[test]
fn rms_norm_has_the_right_gradients() {
    for shape in [&[3, 7][..], &[1, 1, 5], &[2, 3, 16], &[35, 2], &[9]] {
        let gain = &shape[shape.len() - 1..];
        check(&[shape, gain], &|x| candle::rms_norm(&x[0], &x[1], 1e-5), &|x| composed::rms_norm(&x[0], &x[1], 1e-5));
    }
}

#[test]
fn layer_norm_has_the_right_gradients() {
    for shape in [&[3, 7][..], &[1, 1, 5], &[2, 3, 17], &[35, 3], &[9]] {
        let last = &shape[shape.len() - 1..];
        check(&[shape, last, last], &|x| candle::layer_norm(&x[0], &x[1], &x[2], 1e-5), &|x| {
            composed::layer_norm(&x[0], &x[1], &x[2], 1e-5)
        });
    }
}

#[test]
fn swiglu_and_softmax_have_the_right_gradients() {
    for shape in [&[3, 7][..], &[1, 1, 5], &[2, 3, 17], &[35, 1], &[9]] {
        check(&[shape, shape], &|x| candle::swiglu(&x[0], &x[1]), &|x| composed::swiglu(&x[0], &x[1]));
        check(&[shape], &|x| candle::softmax_last_dim(&x[0]), &|x| composed::softmax_last_dim(&x[0]));
    }
}

#[test]
fn rope_has_the_right_gradients_for_x_and_the_tables() {
    // [batch, heads, time, head_dim]; the tables cover two positions more than there are.
    for [batch, heads, time, half] in [[2, 3, 5, 3], [1, 1, 1, 1], [1, 2, 1, 4], [3, 1, 7, 1]] {
        let (x, table): (&[usize], &[usize]) = (&[batch, heads, time, 2 * half], &[time + 2, half]);
        check(&[x, table, table], &|x| candle::rope(&x[0], &x[1], &x[2]), &|x| composed::rope(&x[0], &x[1], &x[2]));
        check(&[x, table, table], &|x| candle::rope_interleaved(&x[0], &x[1], &x[2]), &|x| {
            composed::rope_interleaved(&x[0], &x[1], &x[2])
        });
        let x: &[usize] = &[batch, time, heads, 2 * half];
        check(&[x, table, table], &|x| candle::rope_thd(&x[0], &x[1], &x[2]), &|x| {
            composed::rope_thd(&x[0], &x[1], &x[2])
        });
    }
}

#[test]
fn rope_gives_what_candle_gives() {
    use candle_nn::rotary_emb;
    let x = tensor(random("x", 2 * 3 * 5 * 6), &[2, 3, 5, 6]);
    // Where a table of its own per window is longer than time, Candle's ops read the wrong rows.
    for table in [&[6, 3][..], &[2, 5, 3]] {
        let count = table.iter().product();
        let (cos, sin) = (tensor(random("cos", count), table), tensor(random("sin", count), table));
        let same = |ours: Result<Tensor>, theirs: Result<Tensor>| {
            assert_close(&flat(&ours.unwrap()), &flat(&theirs.unwrap()), 1e-14, 0.0);
        };
        same(candle::rope_interleaved(&x, &cos, &sin), rotary_emb::rope_i(&x, &cos, &sin));
        same(candle::rope(&x, &cos, &sin), rotary_emb::rope(&x, &cos, &sin));
        let thd = x.transpose(1, 2).unwrap().contiguous().unwrap();
        same(candle::rope_thd(&thd, &cos, &sin), rotary_emb::rope_thd(&thd, &cos, &sin));
    }
}

#[test]
fn causal_attention_has_the_right_gradients() {
    for [batch, heads, kv_heads, time, head_dim] in [[2, 4, 2, 5, 3], [1, 1, 1, 1, 1], [1, 3, 1, 7, 2], [2, 2, 2, 3, 5]]
    {
        let (q, kv): (&[usize], &[usize]) = (&[batch, heads, time, head_dim], &[batch, kv_heads, time, head_dim]);
        check(&[q, kv, kv], &|x| candle::causal_attention(&x[0], &x[1], &x[2]), &|x| {
            composed::causal_attention(&x[0], &x[1], &x[2])
        });
    }
}

#[test]
fn embedding_has_the_right_gradients_where_ids_repeat() {
    for shape in [&[6][..], &[1], &[2, 3], &[1, 2, 3]] {
        let count: usize = shape.iter().product();
        let ids: Vec<u32> = (0..count).map(|i| (i * 3 % 4) as u32).collect();
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu).unwrap();
        check(&[&[5, 3]], &|x| candle::embedding(&ids, &x[0]), &|x| composed::embedding(&ids, &x[0]));
    }
}

#[test]
fn linear_has_the_right_gradients() {
    for (x, outputs) in [(&[3, 7][..], 4), (&[1, 1], 1), (&[2, 3, 5], 3), (&[35, 2], 3), (&[4], 3)] {
        let (weight, bias): (&[usize], &[usize]) = (&[outputs, x[x.len() - 1]], &[outputs]);
        check(&[x, weight], &|x| candle::linear(&x[0], &x[1], None), &|x| composed::linear(&x[0], &x[1], None));
        check(&[x, weight, bias], &|x| candle::linear(&x[0], &x[1], Some(&x[2])), &|x| {
            composed::linear(&x[0], &x[1], Some(&x[2]))
        });
    }
}

#[test]
fn linear_cross_entropy_has_the_right_gradients() {
    for (x, vocabulary) in [(&[5, 3][..], 7), (&[1, 1], 2), (&[2, 3, 4], 5), (&[13, 2], 3)] {
        let rows = x[..x.len() - 1].iter().product::<usize>();
        let targets = (0..rows).map(|i| if i % 4 == 1 { IGNORE } else { (i * 5 % vocabulary) as u32 }).collect();
        let targets = Tensor::from_vec::<_, u32>(targets, &x[..x.len() - 1], &Device::Cpu).unwrap();
        check(&[x, &[vocabulary, x[x.len() - 1]]], &|x| candle::linear_cross_entropy(&x[0], &x[1], &targets), &|x| {
            composed::linear_cross_entropy(&x[0], &x[1], &targets)
        });
        // Without a variable the loss is the same.
        let [x, w] = [tensor(random("x", rows * 3), &[rows, 3]), tensor(random("w", vocabulary * 3), &[vocabulary, 3])];
        let targets = targets.flatten_all().unwrap();
        let ours = candle::linear_cross_entropy(&x, &w, &targets).unwrap();
        assert_close(&flat(&ours), &flat(&composed::linear_cross_entropy(&x, &w, &targets).unwrap()), 1e-12, 0.0);
    }
}

#[test]
fn a_gradient_keeps_no_graph_and_a_constant_gets_none() {
    let x = Var::from_tensor(&tensor(random("x", 6), &[2, 3])).unwrap();
    let weight = tensor(random("w", 12), &[4, 3]);
    let store = candle::linear(&x, &weight, None).unwrap().sum_all().unwrap().backward().unwrap();
    assert!(!store.get(&x).unwrap().track_op());
    assert!(store.get(&weight).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_of_a_softmax_sum_to_one(rows in 1usize..40, width in 1usize..50, shift in -500.0f64..500.0) {
        let x = (tensor(random("x", rows * width), &[rows, width]) + shift).unwrap();
        let y = candle::softmax_last_dim(&x).unwrap();
        for sum in flat(&y.sum(1).unwrap()) {
            prop_assert!((sum - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_rotation_keeps_norms_and_its_gradient_turns_back(heads in 1usize..4, time in 1usize..40, half in 1usize..6) {
        let angles = tensor(random("angles", time * half), &[time, half]);
        let (cos, sin) = (angles.cos().unwrap(), angles.sin().unwrap());
        let shape = [1, heads, time, 2 * half];
        let x = Var::from_tensor(&tensor(random("x", shape.iter().product()), &shape)).unwrap();
        type Rope = fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>;
        for rope in [candle::rope as Rope, candle::rope_interleaved] {
            let y = rope(&x, &cos, &sin).unwrap();
            prop_assert!((length(&flat(&y)) / length(&flat(&x)) - 1.0).abs() < 1e-12);
            // The gradient of y·y/2 is y turned back: x.
            let store = (y.sqr().unwrap().sum_all().unwrap() / 2.0).unwrap().backward().unwrap();
            assert_close(&flat(store.get(&x).unwrap()), &flat(&x), 1e-12, 0.0);
        }
    }

    #[test]
    fn ignored_rows_change_nothing(rows in 1usize..9, vocabulary in 2usize..30) {
        let (x, w) = (tensor(random("x", rows * 4), &[rows, 4]), tensor(random("w", vocabulary * 4), &[vocabulary, 4]));
        let ids: Vec<u32> = (0..rows).map(|i| (i % vocabulary) as u32).collect();
        let loss = |x: &Tensor, ids: Vec<u32>| {
            let targets = Tensor::new(ids, &Device::Cpu).unwrap();
            flat(&candle::linear_cross_entropy(x, &w, &targets).unwrap())[0]
        };
        let more = Tensor::cat(&[&x, &tensor(random("more", 8), &[2, 4])], 0).unwrap();
        let longer = ids.iter().copied().chain([IGNORE, IGNORE]).collect();
        prop_assert!((loss(&x, ids) - loss(&more, longer)).abs() < 1e-12);
    }
}
