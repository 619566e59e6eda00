//! `shikha plan`: what a recipe takes, before it is started.

use clap::Args;
use shikha::model::Memory;
use shikha::ops::gemm_peak;
use shikha::recipe::Recipe;
use shikha::train::bench::{Preset, bench};
use shikha::train::plan::{DEVICES, GOAL_HOURS, Plan, REPORTED_SHARE};
use std::error::Error;

/// Which recipe, on what.
#[derive(Args)]
pub struct PlanArgs {
    /// `pocket`, `small`, `bn-0.4b-h100`, or the path of a recipe file
    #[arg(default_value = "pocket")]
    recipe: String,
    /// `this` machine (its peak is measured), `h100`, `h200`, `a100` or `rtx4090`
    #[arg(long, default_value = "this")]
    device: String,
    /// Share of the device's peak that training reaches, from 0 to 1
    #[arg(long, default_value_t = 0.4)]
    utilisation: f64,
    /// Run a few training steps of this model here, and say what they reached
    #[arg(long)]
    measure: bool,
    /// Hours that the training is to take
    #[arg(long, default_value_t = GOAL_HOURS)]
    hours: f64,
    /// Price of the device in US$ an hour
    #[arg(long)]
    price: Option<f64>,
}

impl PlanArgs {
    /// Prints the plan.
    pub fn run(&self) -> Result<(), Box<dyn Error>> {
        if !(self.utilisation > 0.0 && self.utilisation <= 1.0) {
            return Err(format!("--utilisation is {}, expected above 0, at most 1", self.utilisation).into());
        }
        if self.price.is_some_and(|price| !(price.is_finite() && price >= 0.0))
            || self.hours.is_nan()
            || self.hours <= 0.0
        {
            return Err("--price must be a number from 0 up, --hours a number above 0".into());
        }
        let recipe = Recipe::load(&self.recipe)?;
        let plan = Plan::of(&recipe)?;
        let (peak, source) = self.peak()?;
        println!("parameters          {}", plan.parameters);
        println!("training tokens     {}", plan.tokens);
        println!("operations          {:.3e} a token, {:.3e} in all", plan.flops_per_token, plan.flops());
        if plan.repeated_flops > 0.0 {
            println!("  computed again    {:.3e} a token, not counted as work done", plan.repeated_flops);
        }
        memory("memory, f32", &plan.memory);
        let (kept, again) = ("kept", "computed again");
        let names = if recipe.train.recompute { [again, kept] } else { [kept, again] };
        let precision = recipe.train.precision.name();
        for (memory, name) in plan.device_memory.iter().zip(names) {
            self::memory(&format!("memory on a GPU, {precision}, activations {name}"), memory);
        }
        println!("device              {}: {:.1} TFLOP/s ({source})", self.device, peak / 1e12);
        let needed = plan.needed(self.hours);
        let share = 100.0 * plan.share(peak, needed);
        println!("for {} hours       {needed:.0} tokens/s, {share:.1} % of the peak", self.hours);
        for share in [self.utilisation, REPORTED_SHARE] {
            let (speed, hours) = (plan.tokens_per_second(peak, share), plan.hours(peak, share));
            let cost = self.price.map_or(String::new(), |price| format!(", {:.2} US$", hours * price));
            println!(
                "at {:4.1} % of it      {speed:.0} tokens/s, {hours:.3} hours = {:.2} days{cost}",
                100.0 * share,
                hours / 24.0
            );
        }
        println!("  {:.1} % is what the abstract's numbers come to", 100.0 * REPORTED_SHARE);
        match self.price {
            Some(price) => println!("price               {price} US$ an hour, as given"),
            None => println!("cost                not computed: give --price"),
        }
        if self.measure {
            return measure(&recipe, &plan);
        }
        println!("measured here       not measured: give --measure");
        Ok(())
    }

    fn peak(&self) -> Result<(f64, &'static str), String> {
        if self.device == "this" {
            return Ok((gemm_peak(), "f32, measured now"));
        }
        let known = DEVICES.iter().find(|device| device.name == self.device);
        let names = || DEVICES.map(|device| device.name).join(", ");
        let device =
            known.ok_or_else(|| format!("there is no device called `{}`: use this, {}", self.device, names()))?;
        Ok((device.peak, device.source))
    }
}

/// Prints a memory by kind.
fn memory(title: &str, memory: &Memory) {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    println!("{title:19} {}", megabytes(memory.total()));
    for (name, bytes) in [
        ("weights", memory.weights),
        ("gradients", memory.gradients),
        ("moments", memory.moments),
        ("activations", memory.activations),
        ("logits", memory.logits),
    ] {
        println!("  {name:17} {}", megabytes(bytes));
    }
}

/// Steps that are measured; the median counts.
const STEPS: usize = 5;

/// Prints what a few steps of the recipe's model reach on this machine.
fn measure(recipe: &Recipe, plan: &Plan) -> Result<(), Box<dyn Error>> {
    let result = bench(&Preset::of(recipe)?, recipe.train.precision, STEPS)?;
    let hours = plan.tokens as f64 / result.tokens_per_second / 3600.0;
    println!(
        "measured here       {:.0} tokens/s with {} products, {:.0} % of the f32 peak, {hours:.3} hours",
        result.tokens_per_second,
        recipe.train.precision.name(),
        100.0 * result.gemm_peak_share
    );
    let memory = result.memory_bytes.map_or("not measured".to_owned(), |b| format!("{:.1} MB", b as f64 / 1e6));
    println!("  peak memory       {memory}");
    Ok(())
}
