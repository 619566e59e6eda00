//! AdamW's moments and step counter are private, so a run that is resumed is another run.

use crate::arbiter::Rule;
use crate::arbiter::candle::Model;
use crate::defects::training::{Decoder, STEPS, adamw, scalar};
use crate::defects::{Check, Entry, Kind, STATE, Training};
use crate::ops::adamw::{Settings, step};
use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-adamw-state",
    title: "AdamW cannot be saved: a resumed run forgets its moments",
    kind: Kind::State,
    report: Some("#3819"),
    reading: Some(STATE),
    check: Check::Shown { defect, control, model },
    training: Training::Runs(train),
    workaround: "an optimizer whose moments are plain tensors: ops::adamw",
    source: include_str!("adamw_state.rs"),
};

// reproducer {
const SIZE: usize = 8;
const UPDATES: usize = 60;

fn gradient(n: usize) -> Result<Tensor> {
    Tensor::from_iter((0..SIZE).map(|i| ((3 * n + i) as f64).sin()), &Device::Cpu)
}

fn optimizer(w: &Var) -> Result<AdamW> {
    AdamW::new(vec![w.clone()], ParamsAdamW { lr: 0.05, ..ParamsAdamW::default() })
}

/// Weights after all updates, rebuilding the optimizer half way when `rebuild`: it has no other way back.
fn candle(rebuild: bool) -> Result<Vec<f64>> {
    let w = Var::from_vec(vec![1f64; SIZE], SIZE, &Device::Cpu)?;
    let mut current = optimizer(&w)?;
    for n in 0..UPDATES {
        if rebuild && n == UPDATES / 2 {
            current = optimizer(&w)?;
        }
        current.backward_step(&(w.as_tensor() * gradient(n)?)?.sum_all()?)?;
    }
    w.to_vec1()
}

fn judge(whole: &[f64], resumed: &[f64]) -> (bool, String) {
    let worst = whole.iter().zip(resumed).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    (worst > 0.0, format!("after {UPDATES} steps a weight differs by {worst:.2e} from the uninterrupted run"))
}

fn defect() -> Result<(bool, String)> {
    Ok(judge(&candle(false)?, &candle(true)?))
}
// }

/// The same with our step, its moments kept over the break as plain numbers.
fn ours(rebuild: bool) -> Result<Vec<f64>> {
    let [mut w, mut first, mut second] = [vec![1f64; SIZE], vec![0.0; SIZE], vec![0.0; SIZE]];
    for n in 0..UPDATES {
        if rebuild && n == UPDATES / 2 {
            let saved = [&w, &first, &second].map(|v| v.iter().map(|x| x.to_le_bytes()).collect::<Vec<_>>());
            [w, first, second] = saved.map(|v| v.into_iter().map(f64::from_le_bytes).collect());
        }
        let settings = Settings {
            learning_rate: 0.05,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            gradient_scale: 1.0,
            step: n as u64 + 1,
        };
        step(&mut w, &gradient(n)?.to_vec1::<f64>()?, &mut first, &mut second, &settings);
    }
    Ok(w)
}

fn control() -> Result<(bool, String)> {
    Ok(judge(&ours(false)?, &ours(true)?))
}

/// A model whose optimizer is rebuilt before every step, or kept, held to the rule of AdamW.
fn model(defective: bool) -> Result<Model<'static>> {
    let w = Var::from_vec(vec![1f64; SIZE], SIZE, &Device::Cpu)?;
    let (var, used) = (w.clone(), w.clone());
    let mut current = optimizer(&w)?;
    let step = move |gradients: &candle_core::backprop::GradStore| {
        if defective {
            current = optimizer(&var)?;
        }
        current.step(gradients)
    };
    let rule = Rule::AdamW { learning_rate: 0.05, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };
    let loss = move |inputs: &[Tensor]| (used.as_tensor() * &inputs[0])?.sum_all();
    let batches = (0..4).map(|n| Ok(vec![gradient(n)?])).collect::<Result<_>>()?;
    let model = Model::from_vars(vec![("w".to_owned(), w)], vec![gradient(0)?], loss);
    Ok(model.optimizer(step).batches(batches).rule(rule))
}

/// A decoder that is stopped and resumed half way.
fn train(defective: bool, seed: u64) -> Result<Vec<f64>> {
    let vars = Decoder::HEALTHY.vars(seed)?;
    let mut optimizer = adamw(&vars)?;
    let step = |step: usize| {
        if defective && step == STEPS / 2 {
            optimizer = adamw(&vars)?;
        }
        let loss = Decoder::HEALTHY.loss_of(&vars, seed, step)?;
        optimizer.backward_step(&loss)?;
        scalar(&loss)
    };
    (0..STEPS).map(step).collect()
}
