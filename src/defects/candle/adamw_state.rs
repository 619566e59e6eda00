//! AdamW's moments and step counter are private, so a run that is resumed is another run.

use crate::defects::probe::numbers;
use crate::defects::{Entry, Kind, Verdict};
use crate::ops::adamw::{Settings, step};
use candle_core::{Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

pub(super) const ENTRY: Entry = Entry {
    id: "candle-adamw-state",
    title: "AdamW cannot be saved: a resumed run forgets its moments",
    kind: Kind::State,
    report: Some("#3819"),
    reading: Some("medium: a run of days on one GPU has to checkpoint"),
    reproduce,
    control,
    workaround: "an optimizer whose moments are plain tensors: ops::adamw",
};

const SIZE: usize = 8;
const STEPS: usize = 60;

fn gradient(n: usize) -> Vec<f64> {
    numbers(SIZE, n as u64)
}

/// Weights after all steps, rebuilding the optimizer half way when `rebuild`.
fn candle(rebuild: bool) -> Result<Vec<f64>> {
    let settings = || ParamsAdamW { lr: 0.05, ..ParamsAdamW::default() };
    let w = Var::from_vec(vec![1f64; SIZE], SIZE, &Device::Cpu)?;
    let mut optimizer = AdamW::new(vec![w.clone()], settings())?;
    for n in 0..STEPS {
        if rebuild && n == STEPS / 2 {
            optimizer = AdamW::new(vec![w.clone()], settings())?;
        }
        let loss = (w.as_tensor() * Tensor::from_vec(gradient(n), SIZE, &Device::Cpu)?)?.sum_all()?;
        optimizer.backward_step(&loss)?;
    }
    w.to_vec1()
}

/// The same with our step, its moments kept over the break.
fn ours(rebuild: bool) -> Vec<f64> {
    let [mut w, mut first, mut second] = [vec![1f64; SIZE], vec![0.0; SIZE], vec![0.0; SIZE]];
    for n in 0..STEPS {
        if rebuild && n == STEPS / 2 {
            (w, first, second) = (w.clone(), first.clone(), second.clone()); // saved and loaded
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
        step(&mut w, &gradient(n), &mut first, &mut second, &settings);
    }
    w
}

fn judge(whole: &[f64], resumed: &[f64]) -> Verdict {
    let worst = whole.iter().zip(resumed).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    Verdict::when(
        worst > 0.0,
        format!("after {STEPS} steps a weight differs by {worst:.2e} from the uninterrupted run"),
    )
}

fn reproduce() -> Result<Verdict> {
    Ok(judge(&candle(false)?, &candle(true)?))
}

fn control() -> Result<Verdict> {
    Ok(judge(&ours(false), &ours(true)))
}
