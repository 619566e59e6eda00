//! A whole model of kernels: right, counted, and of the size that is planned.

use super::cpu::{Cpu, Hosts};
use super::host::compiler;
use half::bf16;
use shikha::model::device::{Comparison, DeviceDecoder, Optimizer, Step, compare, device_memory};
use shikha::model::{Config, Parameters, Window, initialise};
use shikha::ops::cuda::Tally;
use shikha::recipe::{ModelRecipe, Precision};
use shikha::train::bench::{Preset, Sizes};
use shikha::train::cost::Child;

fn config(tied: bool) -> Config {
    let recipe = ModelRecipe {
        layers: 2,
        hidden: 40,
        intermediate: 56,
        heads: 4,
        kv_heads: 2,
        context: 11,
        rope_theta: 1e4,
        norm_epsilon: 1e-5,
        tie_embeddings: tied,
    };
    Config::from_recipe(&recipe, 61, 0).unwrap()
}

#[test]
fn a_model_of_kernels_has_the_gradients_of_f64() {
    if !compiler() {
        return;
    }
    let hosts = Hosts::new();
    for (tied, recompute, order) in [(false, false, 0), (true, true, 1), (false, true, 7)] {
        let step = |width| Step { batch: 3, time: 11, recompute, width };
        let full = compare::<Cpu, f32>(Cpu::new(&hosts, order), &config(tied), step(4)).unwrap();
        let half = compare::<Cpu, bf16>(Cpu::new(&hosts, order), &config(tied), step(2)).unwrap();
        println!("tied {tied}, recompute {recompute}: f32 {:.1e}, bf16 {:.1e}", full.worst().1, half.worst().1);
        right(&full, 1e-5);
        right(&half, 3e-2);
    }
}

fn right(c: &Comparison, tolerance: f64) {
    assert!(c.loss < tolerance, "loss {c:?}");
    assert!(c.worst().1 < tolerance, "{:?}", c.worst());
    assert!(c.update < 3.0 * tolerance, "update {:.1e}", c.update);
}

/// On a GPU, where there is one: the same model there.
#[cfg(feature = "cuda")]
#[test]
fn a_model_of_kernels_has_the_gradients_of_f64_on_a_gpu() {
    use shikha::ops::cuda::Device;
    let open = || Device::open(0);
    if let Err(error) = open() {
        return eprintln!("not measured: {error}");
    }
    for (tied, recompute) in [(false, false), (true, true)] {
        let step = |width| Step { batch: 3, time: 11, recompute, width };
        right(&compare::<Device, f32>(open().unwrap(), &config(tied), step(4)).unwrap(), 1e-5);
        right(&compare::<Device, bf16>(open().unwrap(), &config(tied), step(2)).unwrap(), 3e-2);
    }
}

/// What a step of the bench model asks of a device.
fn counted(preset: &Preset, recompute: bool) -> Tally {
    let step = Step { batch: preset.batch, time: preset.time, recompute, width: 2 };
    let parameters: Parameters<f32> = initialise(&preset.config, 1);
    let mut device = DeviceDecoder::<Tally, bf16>::new(Tally::default(), &preset.config, &parameters, step).unwrap();
    let (inputs, targets) = preset.tokens(1);
    device.begin().unwrap();
    let window = Window { inputs: &inputs, targets: &targets, time: preset.time };
    device.forward_backward(window, 1.0 / inputs.len() as f32).unwrap();
    let optimizer =
        Optimizer { learning_rate: 1e-3, weight_decay: 0.1, betas: [0.9, 0.95], epsilon: 1e-8, clip_norm: 1.0 };
    device.measure(&optimizer, 0).unwrap();
    device.apply(&optimizer).unwrap();
    device.backend().clone()
}

#[test]
fn the_plan_counts_what_kernels_are_asked_for() {
    let preset = Preset::named("bench-17m").unwrap();
    let (config, tokens) = (&preset.config, (preset.batch * preset.time) as f64);
    for recompute in [false, true] {
        let tally = counted(&preset, recompute);
        let planned = tokens * (config.train_flops_per_token() + config.repeated_flops_per_token(recompute));
        let share = tally.flops() / planned;
        assert!((share - 1.0).abs() < 1e-3, "{share}: {:.4e} counted, {planned:.4e} planned", tally.flops());
        let step = Step { batch: preset.batch, time: preset.time, recompute, width: 2 };
        let share = tally.bytes as f64 / device_memory(config, &step).total() as f64;
        assert!((share - 1.0).abs() < 0.01, "{share} of the planned bytes");
        assert_eq!(tally.waits, 0, "the host waits for nothing in a step");
    }
}

#[test]
fn the_planned_memory_is_what_the_processor_takes() {
    let preset = Preset::named("bench-17m").unwrap();
    for recompute in [false, true] {
        let child =
            Child { program: env!("CARGO_BIN_EXE_shikha").into(), precision: Precision::F32, recompute, steps: 1 };
        let result = child.run("bench-17m", &Sizes::default()).unwrap();
        let (Some(peak), Some(before)) = (result.memory_bytes, result.program_bytes) else { return };
        let planned =
            shikha::model::training_memory(&preset.config, preset.batch, preset.time, recompute).total() as f64;
        let share = (peak - before) as f64 / planned;
        let megabytes = [(peak - before) as f64, planned].map(|bytes| bytes / 1e6);
        println!("recompute {recompute}: {:.1} MB measured, {:.1} MB planned", megabytes[0], megabytes[1]);
        assert!((share - 1.0).abs() < 0.05, "recompute {recompute}: {share}: {peak} at the peak, {before} before");
    }
}
