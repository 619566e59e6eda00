//! What a run takes: operations, memory, hours and cost, before it is started.

use super::TrainError;
use crate::model::device::{Step, device_memory};
use crate::model::{Config, Memory, Parameters, training_memory};
use crate::recipe::{Precision, Recipe};

/// A device with its dense matrix-product peak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// Name on the command line.
    pub name: &'static str,
    /// Floating-point operations a second.
    pub peak: f64,
    /// What the peak is of, and where it is stated.
    pub source: &'static str,
}

/// Devices known by name; `this` is the machine the program runs on, its peak measured.
pub const DEVICES: [Device; 4] = [
    Device { name: "h100", peak: 989e12, source: "bf16 dense, NVIDIA H100 SXM data sheet" },
    Device { name: "h200", peak: 989e12, source: "bf16 dense, NVIDIA H200 SXM data sheet" },
    Device { name: "a100", peak: 312e12, source: "bf16 dense, NVIDIA A100 data sheet" },
    Device { name: "rtx4090", peak: 165e12, source: "bf16 dense with f32 accumulation, NVIDIA Ada white paper" },
];

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

/// What a recipe takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Parameters, embedding included.
    pub parameters: u64,
    /// Training tokens.
    pub tokens: u64,
    /// Operations to train on one token.
    pub flops_per_token: f64,
    /// Operations that a device does again for one token: because activations are not kept, and in attention's
    /// backward pass.
    pub repeated_flops: f64,
    /// Bytes by kind for one micro-batch on the processor, in f32.
    pub memory: Memory,
    /// Bytes by kind on a GPU, in the recipe's precision: as the recipe says about recomputation, and otherwise.
    pub device_memory: [Memory; 2],
}

/// Hours that training the abstract's size is to take at most on one device.
pub const GOAL_HOURS: f64 = 3.5;

/// Share of the peak that the abstract's numbers come to; see `shikha claims`.
pub const REPORTED_SHARE: f64 = 0.025;

impl Plan {
    /// The plan of a recipe, with its whole vocabulary.
    ///
    /// # Errors
    /// [`TrainError`] when the model's sizes do not fit together.
    pub fn of(recipe: &Recipe) -> Result<Self, TrainError> {
        let config = Config::from_recipe(&recipe.model, recipe.tokenizer.vocabulary, 0)?;
        let (batch, time, recompute) = (recipe.train.batch, recipe.model.context, recipe.train.recompute);
        let width = if recipe.train.precision == Precision::Bf16 { 2 } else { 4 };
        let on_device = |recompute| device_memory(&config, &Step { batch, time, recompute, width });
        Ok(Plan {
            repeated_flops: config.repeated_flops_per_token(recompute),
            device_memory: [on_device(recompute), on_device(!recompute)],
            parameters: Parameters::<f32>::count(&config) as u64,
            tokens: recipe.tokens_per_step() * recipe.train.steps,
            flops_per_token: config.train_flops_per_token(),
            memory: training_memory(&config, batch, time, recompute),
        })
    }

    /// Operations of the whole training.
    pub fn flops(&self) -> f64 {
        self.flops_per_token * self.tokens as f64
    }

    /// Hours at a share of a peak.
    pub fn hours(&self, peak: f64, utilisation: f64) -> f64 {
        self.flops() / (peak * utilisation) / 3600.0
    }

    /// Tokens a second that finish in so many hours.
    pub fn needed(&self, hours: f64) -> f64 {
        self.tokens as f64 / (3600.0 * hours)
    }

    /// Share of a peak at a speed in tokens a second; what is computed again counts for nothing.
    pub fn share(&self, peak: f64, tokens_per_second: f64) -> f64 {
        tokens_per_second * self.flops_per_token / peak
    }

    /// Tokens a second at a share of a peak.
    pub fn tokens_per_second(&self, peak: f64, utilisation: f64) -> f64 {
        peak * utilisation / self.flops_per_token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_found_by_the_name_a_driver_gives() {
        assert_eq!(peak_of("NVIDIA H100 80GB HBM3"), Some(989e12));
        assert_eq!(peak_of("NVIDIA GeForce RTX 4090"), Some(165e12));
        for other in ["Tesla T4", "NVIDIA RTX A1000", "NVIDIA H100 PCIe", "NVIDIA H200 NVL"] {
            assert_eq!(peak_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_plan_of_the_pocket_recipe_by_hand() {
        let plan = Plan::of(&Recipe::load("pocket").unwrap()).unwrap();
        // 8192·96 embedding, 2·(96·96·2 + 96·48·2 + 3·96·256 + 2·96) blocks, 96 final gain.
        assert_eq!(plan.parameters, 786_432 + 2 * (18_432 + 9_216 + 73_728 + 192) + 96);
        assert_eq!(plan.tokens, 160 * 16 * 128);
        // 6·(matrices of the blocks + output) + 12·96·129/2 a block.
        let expected = 6.0 * (2.0 * 101_376.0 + 786_432.0) + 2.0 * 12.0 * 96.0 * 64.5;
        assert_eq!(plan.flops_per_token, expected);
        let hours = plan.hours(1e12, 0.5);
        assert!((hours * 3600.0 * plan.tokens_per_second(1e12, 0.5) - plan.tokens as f64).abs() < 1e-3);
        assert_eq!(plan.memory.moments, 8 * plan.parameters);
    }

    #[test]
    fn the_large_recipe_is_the_abstract_s_run_and_fits() {
        let plan = Plan::of(&Recipe::load("bn-0.4b-h100").unwrap()).unwrap();
        assert!((0.35e9..0.45e9).contains(&(plan.parameters as f64)), "{}", plan.parameters);
        assert!((1.95e9..2.05e9).contains(&(plan.tokens as f64)), "{}", plan.tokens);
        // 65536·1024 embedding, 26·(4·1024² + 3·1024·2816 + 2·1024) blocks, 1024 final gain.
        assert_eq!(plan.parameters, 67_108_864 + 26 * (4_194_304 + 8_650_752 + 2048) + 1024);
        let peak = DEVICES[0].peak;
        let share = plan.share(peak, plan.needed(GOAL_HOURS));
        assert!(share < 0.5, "half of the peak is enough: {share}");
        let [kept, recomputed] = plan.device_memory.map(|memory| memory.total());
        assert!(recomputed < kept && kept < 70_000_000_000, "{recomputed} {kept}");
        // The abstract's hours: 54.6 at its share of the peak, with 6 operations a parameter and token.
        assert!((plan.hours(peak, REPORTED_SHARE) - 61.0).abs() < 7.0, "{}", plan.hours(peak, REPORTED_SHARE));
    }
}
