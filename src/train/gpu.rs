//! What a GPU reaches: every kernel checked, a small model compared with f64, whole steps of a recipe's model timed.
//! The result is a record, one file, that the report draws beside the reported speed.

use super::TrainError;
use super::bench::Preset;
use super::plan::{DEVICES, Plan};
use crate::artifact::{Hash, hash_bytes};
use crate::model::device::{Comparison, DeviceDecoder, Optimizer, Step, compare};
use crate::model::{Config, Parameters, Window, initialise};
use crate::ops::cuda::{Backend, Element, check};
use crate::recipe::{ModelRecipe, Precision, Recipe};
use half::bf16;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Version of the record's layout.
pub const FORMAT: u32 = 1;
/// Steps before the clock starts: the first ones compile kernels and choose ways to multiply.
const WARM_UP: usize = 2;

/// A price, and who states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// US$ for an hour of the machine.
    pub dollars_an_hour: f64,
    /// Whose price, and of what date.
    pub stated_by: String,
}

/// The machine of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The GPU as its driver names it.
    pub gpu: String,
    /// Compute capability.
    pub capability: String,
    /// Bytes of its memory.
    pub memory: u64,
    /// CUDA version of the driver.
    pub cuda: String,
    /// Version of the driver, where the system tells.
    pub driver: Option<String>,
    /// The processor, where the system tells.
    pub processor: Option<String>,
    /// Threads of the host.
    pub threads: usize,
}

/// How right the kernels are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// Largest relative error of each case: op, number type and sizes.
    pub kernels: BTreeMap<String, f64>,
    /// Largest relative error of a gradient of a small model, by number type.
    pub gradients: BTreeMap<String, f64>,
    /// What was wrong; empty when everything is right.
    pub wrong: Vec<String>,
}

/// What was measured of whole training steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timed {
    /// Name of the recipe.
    pub recipe: String,
    /// Parameters of its model.
    pub parameters: u64,
    /// Tokens of a step.
    pub tokens_per_step: u64,
    /// Seconds of each step, the loss read at its end.
    pub seconds: Vec<f64>,
    /// Loss of each step, nats per token.
    pub losses: Vec<f64>,
    /// Training tokens a second in the median step.
    pub tokens_per_second: f64,
    /// Operations of a token, by the plan.
    pub flops_per_token: f64,
    /// The GPU's bf16 peak from its data sheet; absent for one that is not known here.
    pub peak: Option<f64>,
    /// Share of the peak in the median step.
    pub peak_share: Option<f64>,
    /// Bytes of GPU memory in use.
    pub memory: u64,
    /// Bytes that were planned.
    pub planned_memory: u64,
}

/// One visit to a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of this layout.
    pub format: u32,
    /// Day, as 2026-12-31 (UTC).
    pub date: String,
    /// Hash of the program's source.
    pub source: Hash,
    /// The machine.
    pub hardware: Hardware,
    /// What it costs.
    pub price: Option<Price>,
    /// How right the kernels are.
    pub checked: Checked,
    /// How fast training is; absent when something was wrong.
    pub timed: Option<Timed>,
    /// What the command printed, line by line.
    pub log: Vec<String>,
}

impl Record {
    /// The name of its file: date, GPU and what it says.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let gpu: String = self.hardware.gpu.chars().map(plain).collect();
        let text = serde_json::to_vec(self).unwrap_or_else(|e| unreachable!("plain data: {e}"));
        format!("{}-{gpu}-{}.json", self.date, &hash_bytes(&text).short()[..6])
    }
}

/// Hash of the source that this program was made from.
pub fn source() -> Hash {
    env!("SHIKHA_SOURCE").parse().unwrap_or_default()
}

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

/// Times `steps` whole steps of a recipe's model in its precision; `peak` is the device's, `memory` what is in use.
///
/// # Errors
/// [`TrainError`] when the recipe's sizes do not fit together or the machine refuses.
pub fn time<B: Backend>(
    backend: B,
    recipe: &Recipe,
    steps: usize,
    peak: Option<f64>,
    memory: impl Fn(&mut B) -> Result<u64, B::Error>,
    log: &mut dyn FnMut(String),
) -> Result<Timed, TrainError> {
    match recipe.train.precision {
        Precision::F32 => timed::<B, f32>(backend, recipe, steps, peak, memory, log),
        Precision::Bf16 => timed::<B, bf16>(backend, recipe, steps, peak, memory, log),
    }
}

fn timed<B: Backend, T: Element>(
    backend: B,
    recipe: &Recipe,
    steps: usize,
    peak: Option<f64>,
    memory: impl Fn(&mut B) -> Result<u64, B::Error>,
    log: &mut dyn FnMut(String),
) -> Result<Timed, TrainError> {
    let said = |e: B::Error| TrainError::Device(e.to_string());
    let (plan, preset, train) = (Plan::of(recipe)?, Preset::of(recipe)?, &recipe.train);
    let step = Step { batch: preset.batch, time: preset.time, recompute: train.recompute, width: size_of::<T>() };
    let parameters: Parameters<f32> = initialise(&preset.config, recipe.seed);
    let mut device = DeviceDecoder::<B, T>::new(backend, &preset.config, &parameters, step).map_err(said)?;
    let tokens = recipe.tokens_per_step();
    let optimizer = Optimizer {
        learning_rate: train.learning_rate,
        weight_decay: train.weight_decay,
        betas: [train.beta1, train.beta2],
        epsilon: train.epsilon,
        clip_norm: train.clip_norm,
    };
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
        peak,
        peak_share: peak.map(|peak| plan.share(peak, tokens_per_second)),
        memory: memory(device.backend()).map_err(said)?,
        planned_memory: plan.device_memory[0].total(),
    })
}

/// The data sheet's peak of a GPU by its name; none for one that is not known, or has another socket.
pub fn peak_of(gpu: &str) -> Option<f64> {
    let gpu = gpu.to_ascii_lowercase();
    let words: Vec<&str> = gpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    // Cards of the same name for other sockets have other peaks.
    if words.iter().any(|word| ["pcie", "nvl"].contains(word)) {
        return None;
    }
    let is_named = |name: &str| words.contains(&name) || words.windows(2).any(|pair| pair.concat() == name);
    DEVICES.iter().find(|device| is_named(device.name)).map(|device| device.peak)
}

/// Today in UTC, as 2026-12-31.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    day(seconds / 86_400)
}

/// The day with this number from 1 January 1970 on, by the Gregorian calendar.
fn day(number: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut rest) = (1970, number);
    while rest >= 365 + u64::from(is_leap(year)) {
        rest -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", rest + 1)
}

/// The processor's name, where the system tells.
pub fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cuda::Tally;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(
            [0, 58, 59, 11_016, 20_788].map(day),
            ["1970-01-01", "1970-02-28", "1970-03-01", "2000-02-29", "2026-12-01"]
        );
    }

    #[test]
    fn peaks_are_found_by_the_name_a_driver_gives() {
        assert_eq!(peak_of("NVIDIA H100 80GB HBM3"), Some(989e12));
        assert_eq!(peak_of("NVIDIA GeForce RTX 4090"), Some(165e12));
        for other in ["Tesla T4", "NVIDIA RTX A1000", "NVIDIA H100 PCIe", "NVIDIA H200 NVL"] {
            assert_eq!(peak_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_machine_that_computes_nothing_is_found_out_and_still_timed() {
        let mut lines = Vec::new();
        let checked = check_all(|| Ok(Tally::default()), &mut |line| lines.push(line));
        assert!(checked.kernels.is_empty() && checked.wrong.len() > 50, "{lines:?}");
        let recipe = Recipe::load("pocket").unwrap();
        let timed = time(Tally::default(), &recipe, 2, Some(1e12), |t| Ok(t.bytes), &mut |_| {}).unwrap();
        assert_eq!((timed.seconds.len(), timed.tokens_per_step), (2, 2048));
        let share = timed.memory as f64 / timed.planned_memory as f64;
        assert!((share - 1.0).abs() < 0.02, "{share}");
        let record = Record {
            format: FORMAT,
            date: today(),
            source: Hash([1; 32]),
            hardware: Hardware {
                gpu: "none".to_owned(),
                capability: "0.0".to_owned(),
                memory: 1,
                cuda: "13.0".to_owned(),
                driver: None,
                processor: processor(),
                threads: 2,
            },
            price: None,
            checked,
            timed: Some(timed),
            log: lines,
        };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
