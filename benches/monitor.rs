//! What the arbiter's monitor costs at its usual interval: `cargo bench --bench monitor`.

use shikha::arbiter::Numbers;
use shikha::arbiter::monitor::{EVERY, Monitor};
use shikha::model::{Parameters, initialise};
use shikha::recipe::Precision;
use shikha::train::bench::{Preset, bench};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    for name in ["bench-1m", "bench-17m"] {
        let preset = Preset::named(name)?;
        let gradients: Parameters<f32> = initialise(&preset.config, 1);
        let tensors = gradients.tensors();
        let mut monitor = Monitor::new(tensors.iter().map(|t| t.name.clone()).collect(), 1);
        let mut looks = Vec::new();
        for step in 1..=11 {
            let started = Instant::now();
            monitor.look(step, |i| Some(Numbers::F32(gradients.values(&tensors[i]))))?;
            looks.push(started.elapsed().as_secs_f64());
        }
        let mut steps = bench(&preset, Precision::F32, 7)?.seconds;
        let (look, step) = (median(&mut looks), median(&mut steps));
        println!(
            "{name}: a look takes {:.2} ms, a training step {:.0} ms; every {EVERY} steps that is {:.4} % of the time",
            1e3 * look,
            1e3 * step,
            100.0 * look / (EVERY as f64 * step)
        );
    }
    Ok(())
}

fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
