//! What a GPU reaches: every kernel checked, a small model compared with f64, whole steps of a recipe's model timed.
//! The result is a record, one file, that the report draws beside the reported speed.

use super::TrainError;
use super::bench::Preset;
use super::plan::Plan;
use super::record::{Checked, Timed};
use crate::model::device::{Comparison, DeviceDecoder, Optimizer, Step, compare};
use crate::model::{Config, Parameters, Window, initialise};
use crate::ops::cuda::{Backend, Element, check};
use crate::recipe::{ModelRecipe, Precision, Recipe};
use half::bf16;
use std::collections::BTreeMap;
use std::time::Instant;

/// Steps before the clock starts: the first ones compile kernels and choose ways to multiply.
const WARM_UP: usize = 2;

/// Runs every case of every kernel and compares a small model with f64; `open` gives the machine anew.
pub fn check_all<B: Backend + 'static>(open: impl Fn() -> Result<B, B::Error>, log: &mut dyn FnMut(String)) -> Checked {
    let mut checked = Checked { kernels: BTreeMap::new(), gradients: BTreeMap::new(), wrong: Vec::new() };
    match open() {
        Ok(mut backend) => {
            for case in check::all::<B>() {
                let twice = case.run(&mut backend).and_then(|first| Ok((first, case.run(&mut backend)?)));
                match twice {
                    Ok((first, again)) if first == again => drop(checked.kernels.insert(case.name, first.error)),
                    Ok(_) => checked.wrong.push(format!("{}: other bits the second time", case.name)),
                    Err(message) => checked.wrong.push(message),
                }
            }
        }
        Err(error) => checked.wrong.push(error.to_string()),
    }
    log(format!("{} cases of kernels right, {} wrong", checked.kernels.len(), checked.wrong.len()));
    small::<B, f32>(&open, 4, 1e-5, &mut checked);
    small::<B, bf16>(&open, 2, 3e-2, &mut checked);
    for (name, error) in &checked.gradients {
        log(format!("a small model with {name}: gradients off by at most {error:.1e} of f64's"));
    }
    checked.wrong.iter().for_each(|message| log(format!("wrong: {message}")));
    checked
}

fn small<B: Backend, T: Element>(
    open: &impl Fn() -> Result<B, B::Error>,
    width: usize,
    tolerance: f64,
    checked: &mut Checked,
) {
    let recipe = ModelRecipe {
        layers: 2,
        hidden: 128,
        intermediate: 352,
        heads: 2,
        kv_heads: 1,
        context: 130,
        rope_theta: 1e4,
        norm_epsilon: 1e-5,
        tie_embeddings: true,
    };
    let compared = Config::from_recipe(&recipe, 1000, 0).map_err(|e| e.to_string()).and_then(|config| {
        let backend = open().map_err(|e| e.to_string())?;
        compare::<B, T>(backend, &config, Step { batch: 2, time: 130, recompute: true, width })
    });
    match compared {
        Ok(found) => {
            let Comparison { loss, update, .. } = found;
            let (name, worst) = found.worst();
            if worst.max(loss) > tolerance || update > 3.0 * tolerance {
                let message = format!("a small model with {}: {name} is off by {worst:.1e}", T::NAME);
                checked.wrong.push(format!("{message}, the loss by {loss:.1e}, a step by {update:.1e}"));
            }
            checked.gradients.insert(T::NAME.to_owned(), worst);
        }
        Err(message) => checked.wrong.push(message),
    }
}

/// Times `steps` whole steps of a recipe's model in its precision; `memory` tells what is in use.
///
/// # Errors
/// [`TrainError`] when the recipe's sizes do not fit together or the machine refuses.
pub fn time<B: Backend>(
    backend: B,
    recipe: &Recipe,
    steps: usize,
    memory: impl Fn(&mut B) -> Result<u64, B::Error>,
    log: &mut dyn FnMut(String),
) -> Result<Timed, TrainError> {
    match recipe.train.precision {
        Precision::F32 => timed::<B, f32>(backend, recipe, steps, memory, log),
        Precision::Bf16 => timed::<B, bf16>(backend, recipe, steps, memory, log),
    }
}

fn timed<B: Backend, T: Element>(
    backend: B,
    recipe: &Recipe,
    steps: usize,
    memory: impl Fn(&mut B) -> Result<u64, B::Error>,
    log: &mut dyn FnMut(String),
) -> Result<Timed, TrainError> {
    let said = |e: B::Error| TrainError::Device(e.to_string());
    let (plan, preset, train) = (Plan::of(recipe)?, Preset::of(recipe)?, &recipe.train);
    let step = Step { batch: preset.batch, time: preset.time, recompute: train.recompute, width: size_of::<T>() };
    let parameters: Parameters<f32> = initialise(&preset.config, recipe.seed);
    let mut device = DeviceDecoder::<B, T>::new(backend, &preset.config, &parameters, step).map_err(said)?;
    let tokens = recipe.tokens_per_step();
    let optimizer = Optimizer::of(train, train.learning_rate);
    let (mut seconds, mut losses) = (Vec::new(), Vec::new());
    for n in 0..WARM_UP + steps.max(1) {
        let started = Instant::now();
        device.begin().map_err(said)?;
        for micro in 0..train.accumulate as u64 {
            let (inputs, targets) = preset.tokens(n as u64 * train.accumulate as u64 + micro);
            let window = Window { inputs: &inputs, targets: &targets, time: preset.time };
            device.forward_backward(window, (1.0 / tokens as f64) as f32).map_err(said)?;
        }
        device.measure(&optimizer, n as u64).and_then(|()| device.apply(&optimizer)).map_err(said)?;
        let loss = device.loss().map_err(said)? / tokens as f64;
        if !loss.is_finite() {
            return Err(TrainError::Device(format!("step {}: the loss is {loss}", n + 1)));
        }
        if n >= WARM_UP {
            seconds.push(started.elapsed().as_secs_f64());
            losses.push(loss);
            log(format!("step {:3}  loss {loss:.4}  {:.1} ms", n + 1, 1e3 * started.elapsed().as_secs_f64()));
        }
    }
    let mut sorted = seconds.clone();
    sorted.sort_by(f64::total_cmp);
    let tokens_per_second = tokens as f64 / sorted[sorted.len() / 2];
    Ok(Timed {
        recipe: recipe.name.clone(),
        parameters: plan.parameters,
        tokens_per_step: tokens,
        seconds,
        losses,
        tokens_per_second,
        flops_per_token: plan.flops_per_token,
        memory: memory(device.backend()).map_err(said)?,
        planned_memory: plan.device_memory[0].total(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Hardware, clock, day_of, source};
    use crate::ops::cuda::Tally;
    use crate::train::record::{FORMAT, Record};

    #[test]
    fn a_machine_that_computes_nothing_is_found_out_and_still_timed() {
        let mut lines = Vec::new();
        let checked = check_all(|| Ok(Tally::default()), &mut |line| lines.push(line));
        assert!(checked.kernels.is_empty() && checked.wrong.len() > 50, "{lines:?}");
        let recipe = Recipe::load("pocket").unwrap();
        let timed = time(Tally::default(), &recipe, 2, |t| Ok(t.bytes), &mut |_| {}).unwrap();
        assert_eq!((timed.seconds.len(), timed.tokens_per_step), (2, 2048));
        let share = timed.memory as f64 / timed.planned_memory as f64;
        assert!((share - 1.0).abs() < 0.02, "{share}");
        let record = Record {
            format: FORMAT,
            date: day_of(clock()),
            source: source(),
            hardware: Hardware::here(None),
            price: None,
            checked: Some(checked),
            timed: Some(timed),
            run: None,
            log: lines,
        };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
