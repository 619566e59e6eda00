//! Training steps of the 16.9 M parameter model: ours beside the decoder composed from Candle ops, in
//! one process, on the same weights and tokens. `cargo bench --bench training -- [steps]`.

#[path = "composed/mod.rs"]
mod composed;

use composed::Composed;
use shikha::model::initialise;
use shikha::recipe::Precision;
use shikha::train::bench::{LEARNING_RATE, Preset, bench};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let steps = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(10usize);
    let preset = Preset::named("bench-17m")?;
    let ours = bench(&preset, Precision::F32, steps)?;
    let mut candle = Composed::new(&preset.config, &initialise(&preset.config, 1), LEARNING_RATE)?;
    let (mut worst, mut seconds) = (0f64, Vec::new());
    for step in 0..steps {
        let (inputs, targets) = preset.tokens(step as u64 + 1);
        let started = Instant::now();
        let loss = f64::from(candle.step(&inputs, &targets, preset.time)?);
        seconds.push(started.elapsed().as_secs_f64());
        worst = worst.max((loss - ours.losses[step]).abs());
        println!(
            "step {:3}  ours {:.4} {:5.0} ms   composed {loss:.4} {:5.0} ms",
            step + 1,
            ours.losses[step],
            1e3 * ours.seconds[step],
            1e3 * seconds[step]
        );
    }
    seconds.sort_by(f64::total_cmp);
    let composed = (preset.batch * preset.time) as f64 / seconds[seconds.len() / 2];
    println!(
        "matrix-product peak {:.0} GFLOP/s, ours at {:.0} % of it",
        ours.gemm_peak / 1e9,
        100.0 * ours.gemm_peak_share
    );
    println!("largest difference of a loss {worst:.1e}");
    println!(
        "ours {:.0} tokens/s, composed {composed:.0} tokens/s, ratio {:.2}",
        ours.tokens_per_second,
        ours.tokens_per_second / composed
    );
    Ok(())
}
