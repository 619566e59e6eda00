//! Training steps of the 16.9 M parameter model: ours, with products of f32 and of bf16 numbers, beside
//! the decoder composed from Candle ops, in one process, on the same weights and tokens.
//! `cargo bench --bench training -- [steps] [directory for speed.csv]`.

#[path = "composed/mod.rs"]
mod composed;

use composed::Composed;
use shikha::artifact::write_atomic;
use shikha::model::initialise;
use shikha::recipe::Precision;
use shikha::train::bench::{BenchResult, LEARNING_RATE, Preset, bench};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// Losses and seconds of every step of the yardstick.
fn yardstick(preset: &Preset, steps: usize) -> Result<(Vec<f64>, Vec<f64>), Box<dyn Error>> {
    let mut candle = Composed::new(&preset.config, &initialise(&preset.config, 1), LEARNING_RATE)?;
    let (mut losses, mut seconds) = (Vec::new(), Vec::new());
    for step in 1..=steps as u64 {
        let (inputs, targets) = preset.tokens(step);
        let started = Instant::now();
        losses.push(f64::from(candle.step(&inputs, &targets, preset.time)?));
        seconds.push(started.elapsed().as_secs_f64());
    }
    Ok((losses, seconds))
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn report(name: &str, result: &BenchResult) {
    println!(
        "{name}: {:.0} tokens/s, {:.0} % of the f32 matrix-product peak of {:.0} GFLOP/s",
        result.tokens_per_second,
        100.0 * result.gemm_peak_share,
        result.gemm_peak / 1e9
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let steps = arguments.iter().filter_map(|a| a.parse().ok()).next().unwrap_or(10usize).max(1);
    let preset = Preset::named("bench-17m")?;
    let ours = bench(&preset, Precision::F32, steps)?;
    let half = bench(&preset, Precision::Bf16, steps)?;
    let (losses, seconds) = yardstick(&preset, steps)?;
    let mut csv = "step,way,loss,seconds\n".to_owned();
    let ways = [("f32", &ours.losses, &ours.seconds), ("bf16", &half.losses, &half.seconds)];
    for (way, losses, seconds) in ways.into_iter().chain([("composed", &losses, &seconds)]) {
        for (step, (loss, seconds)) in losses.iter().zip(seconds).enumerate() {
            csv += &format!("{},{way},{loss},{seconds}\n", step + 1);
        }
    }
    let composed = (preset.batch * preset.time) as f64 / median(&seconds);
    report("ours, f32 products", &ours);
    report("ours, bf16 products", &half);
    println!("composed from Candle ops: {composed:.0} tokens/s");
    println!(
        "largest difference of a loss over {steps} steps, f32 beside composed: {:.1e}",
        worst(&ours.losses, &losses)
    );
    println!(
        "ours {:.2} times composed, bf16 {:.2} times f32",
        ours.tokens_per_second / composed,
        half.tokens_per_second / ours.tokens_per_second
    );
    if let Some(directory) = arguments.iter().find(|a| a.parse::<usize>().is_err()) {
        write_atomic(&Path::new(directory).join("speed.csv"), csv.as_bytes())?;
    }
    Ok(())
}
