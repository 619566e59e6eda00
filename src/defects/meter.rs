//! The backward-efficiency meter: how fast a linear layer goes forward and backward, as a share of the fastest GEMM
//! measured in the same process. It knows no framework: a layer is two functions to be timed.

use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A layer's size, the same for every way of computing it: `[batch, time, width]` times `[width, width]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerShape {
    /// Sequences.
    pub batch: usize,
    /// Tokens in each.
    pub time: usize,
    /// Inputs and outputs.
    pub width: usize,
}

impl LayerShape {
    /// The shapes that are swept: the same 1024 tokens in 1 to 256 sequences, width 512.
    pub const SWEPT: [LayerShape; 5] = [
        LayerShape { batch: 1, time: 1024, width: 512 },
        LayerShape { batch: 4, time: 256, width: 512 },
        LayerShape { batch: 16, time: 64, width: 512 },
        LayerShape { batch: 64, time: 16, width: 512 },
        LayerShape { batch: 256, time: 4, width: 512 },
    ];

    /// Floating-point operations of a forward pass: two per multiplication. A backward pass for both gradients has
    /// two such products.
    pub fn operations(&self) -> f64 {
        2.0 * (self.batch * self.time * self.width * self.width) as f64
    }
}

/// One way of computing the layer, at one shape.
pub struct Timed<'a> {
    /// Who computes it: `Burn`, `Candle`, `ours`.
    pub framework: &'static str,
    /// How.
    pub way: &'static str,
    /// Runs a forward pass and gives its seconds.
    pub forward: Box<dyn FnMut() -> f64 + 'a>,
    /// Runs a backward pass for both gradients and gives its seconds.
    pub backward: Box<dyn FnMut() -> f64 + 'a>,
}

/// What was measured of one way at one shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Who computes it.
    pub framework: String,
    /// How.
    pub way: String,
    /// The layer's size.
    pub shape: LayerShape,
    /// Forward pass, GFLOP/s.
    pub forward: f64,
    /// Backward pass for both gradients, GFLOP/s.
    pub backward: f64,
}

/// One run of the meter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Efficiency {
    /// Version of Burn.
    pub burn: String,
    /// Version of Candle.
    pub candle: String,
    /// Threads that products may use.
    pub threads: usize,
    /// Timings of each, of which the best counts.
    pub rounds: usize,
    /// Side of the square matrices of the GEMM.
    pub gemm_side: usize,
    /// The fastest GEMM of any framework in this process, GFLOP/s: what shares are of.
    pub gemm_peak: f64,
    /// Whose it was.
    pub gemm_of: String,
    /// Every way at every shape.
    pub speeds: Vec<Speed>,
}

impl Efficiency {
    /// A speed as a share of the GEMM peak.
    pub fn share(&self, speed: f64) -> f64 {
        speed / self.gemm_peak
    }

    /// The slowest backward pass of `framework`.
    pub fn slowest(&self, framework: &str) -> Option<&Speed> {
        let of = self.speeds.iter().filter(|speed| speed.framework == framework);
        of.min_by(|a, b| a.backward.total_cmp(&b.backward))
    }
}

/// Times every way in turns, so that a change of the machine's speed meets all of them; the best of `rounds` counts.
pub fn measure(shape: LayerShape, ways: &mut [Timed], rounds: usize) -> Vec<Speed> {
    let mut best = vec![[f64::INFINITY; 2]; ways.len()];
    for _ in 0..rounds {
        for (way, best) in ways.iter_mut().zip(&mut best) {
            best[0] = best[0].min((way.forward)());
            best[1] = best[1].min((way.backward)());
        }
    }
    let speed = |(way, [forward, backward]): (&Timed, [f64; 2])| Speed {
        framework: way.framework.to_owned(),
        way: way.way.to_owned(),
        shape,
        forward: rounded(shape.operations() / forward / 1e9),
        backward: rounded(2.0 * shape.operations() / backward / 1e9),
    };
    ways.iter().zip(best).map(speed).collect()
}

/// GFLOP/s of the best of the products of two square matrices that `product` computes within `budget`.
pub fn gemm(side: usize, budget: Duration, mut product: impl FnMut()) -> f64 {
    let (started, mut best) = (Instant::now(), f64::INFINITY);
    while best.is_infinite() || started.elapsed() < budget {
        best = best.min(seconds(&mut product));
    }
    rounded(2.0 * (side as f64).powi(3) / best / 1e9)
}

/// Seconds that `run` takes; what it gives is dropped afterwards.
pub fn seconds<T>(run: impl FnOnce() -> T) -> f64 {
    let started = Instant::now();
    let _result = run();
    started.elapsed().as_secs_f64()
}

/// A tenth of a GFLOP/s is more than a machine repeats.
fn rounded(speed: f64) -> f64 {
    (speed * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_round_counts_and_a_backward_pass_is_two_products() {
        let shape = LayerShape { batch: 2, time: 500, width: 1000 };
        let mut slower = [3.0, 2.0, 4.0].into_iter().cycle();
        let (forward, backward) = (Box::new(move || slower.next().unwrap_or(9.0)), Box::new(|| 8.0));
        let mut ways = [Timed { framework: "a", way: "b", forward, backward }];
        let speeds = measure(shape, &mut ways, 3);
        assert_eq!(shape.operations(), 2e9);
        assert_eq!((speeds[0].forward, speeds[0].backward), (1.0, 0.5));
    }

    #[test]
    fn the_swept_shapes_have_the_same_tokens_and_the_slowest_is_found() {
        assert!(LayerShape::SWEPT.iter().all(|s| (s.batch * s.time, s.width) == (1024, 512)));
        let speed = |way: &str, backward| Speed {
            framework: "Burn".to_owned(),
            way: way.to_owned(),
            shape: LayerShape::SWEPT[0],
            forward: 50.0,
            backward,
        };
        let run = Efficiency {
            burn: String::new(),
            candle: String::new(),
            threads: 1,
            rounds: 1,
            gemm_side: 1,
            gemm_peak: 80.0,
            gemm_of: String::new(),
            speeds: vec![speed("fast", 60.0), speed("slow", 4.0)],
        };
        let slowest = run.slowest("Burn").unwrap();
        assert_eq!((slowest.way.as_str(), run.share(slowest.backward)), ("slow", 0.05));
        assert_eq!(run.slowest("ours"), None);
    }
}
