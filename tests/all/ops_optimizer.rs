//! Tests of `ops::candle::optimizer`: the same walk as Candle's AdamW, masters, state and clipping.

use super::ops_candle::{assert_close, flat, length, random, tensor};
use candle_core::{DType, Device, Tensor, Var};
use candle_nn::Optimizer;
use shikha::ops::candle::optimizer::{AdamW, Settings, clip_by_global_norm, matrices_decay};

fn variable(dtype: DType) -> Var {
    Var::from_tensor(&tensor(random("weights", 77), &[7, 11]).to_dtype(dtype).unwrap()).unwrap()
}

/// Gradients of Σ (w − c)² with a centre of its own for every step.
fn gradients(variables: &[&Var], step: usize) -> candle_core::backprop::GradStore {
    let mut loss = Tensor::zeros((), variables[0].dtype(), &Device::Cpu).unwrap();
    for variable in variables {
        let centre = tensor(random(&format!("centre {step}"), variable.elem_count()), variable.dims());
        let apart = (variable.as_tensor() - centre.to_dtype(variable.dtype()).unwrap()).unwrap();
        loss = (loss + apart.sqr().unwrap().sum_all().unwrap()).unwrap();
    }
    loss.backward().unwrap()
}

fn named(variable: &Var) -> Vec<(String, Var)> {
    vec![("weight".to_owned(), variable.clone())]
}

#[test]
fn it_walks_with_candle() {
    for dtype in [DType::F32, DType::F64] {
        let (ours, theirs) = (variable(dtype), variable(dtype));
        let start = flat(&ours);
        let mut optimizer = AdamW::new(named(&ours), Settings::default(), matrices_decay).unwrap();
        let params = candle_nn::ParamsAdamW { lr: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1 };
        let mut candle = candle_nn::AdamW::new(vec![theirs.clone()], params).unwrap();
        for step in 0..50 {
            optimizer.step(&gradients(&[&ours], step), 0.01).unwrap();
            candle.step(&gradients(&[&theirs], step)).unwrap();
        }
        assert_eq!(optimizer.steps(), 50);
        assert_close(&flat(&ours), &flat(&theirs), 1e-5, 0.0);
        let moved: Vec<f64> = start.iter().zip(flat(&ours)).map(|(a, b)| a - b).collect();
        assert!(length(&moved) > 0.1 * length(&start));
    }
}

#[test]
fn only_the_decay_group_decays() {
    let zeros = |variable: &Var| (variable.as_tensor() * 0.0).unwrap().sum_all().unwrap();
    let (matrix, gain) = (variable(DType::F64), Var::from_tensor(&tensor(random("gain", 5), &[5])).unwrap());
    let before = [flat(&matrix), flat(&gain)];
    let variables = vec![("matrix".to_owned(), matrix.clone()), ("gain".to_owned(), gain.clone())];
    let mut optimizer = AdamW::new(variables, Settings::default(), matrices_decay).unwrap();
    let mut store = zeros(&matrix).backward().unwrap();
    store.insert(&matrix, matrix.zeros_like().unwrap());
    store.insert(&gain, gain.zeros_like().unwrap());
    optimizer.step(&store, 0.5).unwrap();
    assert_close(&flat(&matrix), &before[0].iter().map(|x| x * 0.95).collect::<Vec<_>>(), 1e-14, 0.0);
    assert_eq!(flat(&gain), before[1]);
}

#[test]
fn small_steps_move_the_master_of_a_bf16_variable() {
    let variable = variable(DType::BF16);
    let start = flat(&variable);
    let settings = Settings { weight_decay: 0.0, ..Settings::default() };
    let mut optimizer = AdamW::new(named(&variable), settings, matrices_decay).unwrap();
    for step in 0..3 {
        optimizer.step(&gradients(&[&variable], step), 1e-4).unwrap();
    }
    let state = optimizer.state().unwrap();
    let master = flat(&state["weight.master"]);
    assert_eq!(state["weight.master"].dtype(), DType::F32);
    let moved: Vec<f64> = start.iter().zip(&master).map(|(a, b)| (a - b).abs()).collect();
    assert!(moved.iter().all(|step| *step > 0.0 && *step < 4e-4), "{moved:?}");
    // The variable is the master, rounded.
    let rounded = state["weight.master"].to_dtype(DType::BF16).unwrap();
    assert_eq!(flat(&variable), flat(&rounded));
}

#[test]
fn a_restored_state_continues_to_the_bit() {
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let straight = variable(dtype);
        let mut optimizer = AdamW::new(named(&straight), Settings::default(), matrices_decay).unwrap();
        (0..3).for_each(|step| optimizer.step(&gradients(&[&straight], step), 0.01).unwrap());
        let resumed = Var::from_tensor(&straight.copy().unwrap()).unwrap();
        let mut second = AdamW::new(named(&resumed), Settings::default(), matrices_decay).unwrap();
        second.load_state(&optimizer.state().unwrap()).unwrap();
        for step in 3..6 {
            optimizer.step(&gradients(&[&straight], step), 0.01).unwrap();
            second.step(&gradients(&[&resumed], step), 0.01).unwrap();
        }
        assert_eq!(flat(&straight), flat(&resumed));
        assert_eq!(second.steps(), 6);
        let mut state = optimizer.state().unwrap();
        state.remove("weight.second");
        assert!(second.load_state(&state).unwrap_err().to_string().contains("no weight.second"));
    }
}

#[test]
fn clipping_bounds_the_global_norm() {
    let (a, b) = (variable(DType::F64), Var::from_tensor(&tensor(random("b", 5), &[5])).unwrap());
    let mut store = gradients(&[&a, &b], 0);
    let all = |store: &candle_core::backprop::GradStore| [flat(store.get(&a).unwrap()), flat(store.get(&b).unwrap())];
    let before = length(&all(&store).concat());
    let norm = clip_by_global_norm(&mut store, &[a.clone(), b.clone()], 0.5).unwrap();
    assert!((norm - before).abs() < 1e-12 * before);
    assert!((length(&all(&store).concat()) - 0.5).abs() < 1e-12);
    // Clipping inside the step is the same step.
    let (inside, outside) = (variable(DType::F64), variable(DType::F64));
    let settings = Settings { epsilon: 1.0, ..Settings::default() };
    let mut first = AdamW::new(named(&inside), settings, matrices_decay).unwrap();
    let mut second = AdamW::new(named(&outside), settings, matrices_decay).unwrap();
    let found = first.step_clipped(&gradients(&[&inside], 0), 0.1, 0.5).unwrap();
    let mut store = gradients(&[&outside], 0);
    assert_eq!(clip_by_global_norm(&mut store, std::slice::from_ref(&outside), 0.5).unwrap(), found);
    second.step(&store, 0.1).unwrap();
    assert_close(&flat(&inside), &flat(&outside), 1e-14, 0.0);
}

#[test]
fn a_missing_gradient_is_an_error_that_names_the_variable_and_moves_nothing() {
    let (used, forgotten) = (variable(DType::F32), variable(DType::F32));
    let before = flat(&used);
    let variables = vec![("used".to_owned(), used.clone()), ("layers.0.gain".to_owned(), forgotten)];
    let mut optimizer = AdamW::new(variables, Settings::default(), matrices_decay).unwrap();
    let message = optimizer.step(&gradients(&[&used], 0), 0.1).unwrap_err().to_string();
    assert!(message.contains("layers.0.gain has no gradient"), "{message}");
    assert_eq!((flat(&used), optimizer.steps()), (before, 0));
    let twice = vec![("a".to_owned(), used.clone()), ("a".to_owned(), used)];
    assert!(AdamW::new(twice, Settings::default(), matrices_decay).unwrap_err().to_string().contains("two variables"));
}
