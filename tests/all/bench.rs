//! The benchmark's promises that do not depend on the machine: the same losses as the yardstick, and
//! memory that grows no faster than the sizes.

use super::composed::Composed;
use shikha::model::{Config, initialise};
use shikha::recipe::{ModelRecipe, Precision};
use shikha::train::bench::{LEARNING_RATE, Preset, Sizes, bench};
use shikha::train::cost::Child;

const STEPS: usize = 50;

fn tiny() -> Preset {
    let recipe = ModelRecipe {
        layers: 2,
        hidden: 32,
        intermediate: 64,
        heads: 2,
        kv_heads: 1,
        context: 24,
        rope_theta: 1e4,
        norm_epsilon: 1e-5,
        tie_embeddings: false,
    };
    Preset { name: "tiny", config: Config::from_recipe(&recipe, 128, 0).unwrap(), batch: 3, time: 24, recompute: false }
}

#[test]
fn fifty_steps_have_the_losses_of_the_composed_decoder() {
    let preset = Preset { config: Config { num_key_value_heads: 2, ..tiny().config }, ..tiny() };
    let ours = bench(&preset, Precision::F32, STEPS).unwrap();
    let mut candle = Composed::new(&preset.config, &initialise(&preset.config, 1), LEARNING_RATE).unwrap();
    for (step, ours) in ours.losses.iter().enumerate() {
        let (inputs, targets) = preset.tokens(step as u64 + 1);
        let composed = f64::from(candle.step(&inputs, &targets, preset.time).unwrap());
        assert!((ours - composed).abs() < 1e-3, "step {step}: {ours} and {composed}");
    }
    assert!(ours.losses[STEPS - 1] < ours.losses[0] - 0.01, "it learns: {:?}", ours.losses);
}

#[test]
fn products_of_bf16_numbers_train_as_those_of_f32() {
    let [full, half] = [Precision::F32, Precision::Bf16].map(|p| bench(&tiny(), p, STEPS).unwrap().losses);
    assert_ne!(full, half, "the precision makes a difference");
    for (step, (full, half)) in full.iter().zip(&half).enumerate() {
        assert!((full - half).abs() < 0.02, "step {step}: {full} and {half}");
    }
}

fn measured(sizes: Sizes) -> Option<(f64, f64)> {
    let program = env!("CARGO_BIN_EXE_shikha").into();
    let result =
        Child { program, precision: Precision::F32, recompute: false, steps: 1 }.run("bench-1m", &sizes).unwrap();
    Some((result.memory_bytes? as f64, result.parameters as f64))
}

#[test]
fn twice_the_length_takes_no_more_than_twice_the_memory() {
    let at = |time| measured(Sizes { time: Some(time), ..Sizes::default() });
    let Some(memory) = [512, 1024, 2048].map(at).into_iter().collect::<Option<Vec<_>>>() else { return };
    for pair in memory.windows(2) {
        assert!(pair[1].0 / pair[0].0 <= 2.2, "{:.0} bytes, then {:.0}", pair[0].0, pair[1].0);
    }
}

#[test]
fn a_larger_vocabulary_takes_its_weights_gradients_and_moments_only() {
    let at = |vocabulary| measured(Sizes { vocabulary: Some(vocabulary), ..Sizes::default() });
    let (Some(small), Some(large)) = (at(8192), at(65_536)) else { return };
    let allowed = 1.1 * 16.0 * (large.1 - small.1);
    assert!(large.0 - small.0 <= allowed, "{:.0} bytes more, {allowed:.0} allowed", large.0 - small.0);
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let wide = Preset::named("bench-1m").unwrap().resized(&Sizes { width: Some(97), ..Sizes::default() });
    assert!(wide.unwrap_err().to_string().contains("97"));
}
