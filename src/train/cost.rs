//! How time and memory grow with each size of a model: a cost curve, one process a point, since the
//! peak of a process' memory only ever rises.

use super::TrainError;
use super::bench::{BenchResult, Preset, Sizes};
use crate::progress::Progress;
use crate::recipe::Precision;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// One model of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostPoint {
    /// The size that differs from the preset: `length`, `width`, `vocabulary` or `batch`.
    pub dimension: String,
    /// Its value.
    pub size: usize,
    /// Tokens of a step.
    pub tokens: usize,
    /// What was measured.
    pub result: BenchResult,
}

impl CostPoint {
    /// Seconds of the median step.
    pub fn seconds(&self) -> f64 {
        self.tokens as f64 / self.result.tokens_per_second
    }
}

/// The process that measures one point.
#[derive(Debug, Clone)]
pub struct Child {
    /// The `shikha` command.
    pub program: PathBuf,
    /// Precision of matrix products.
    pub precision: Precision,
    /// Whether activations are computed again in the backward pass instead of kept.
    pub recompute: bool,
    /// Steps.
    pub steps: usize,
}

/// Dimensions with the sizes measured, each doubling.
const DIMENSIONS: [(&str, &[usize]); 4] = [
    ("length", &[256, 512, 1024, 2048]),
    ("width", &[192, 384, 768]),
    ("vocabulary", &[8192, 16_384, 32_768, 65_536]),
    ("batch", &[2, 4, 8, 16]),
];

fn sizes(dimension: &str, size: usize) -> Sizes {
    let only = |name: &str| (name == dimension).then_some(size);
    Sizes { time: only("length"), width: only("width"), vocabulary: only("vocabulary"), batch: only("batch") }
}

/// Measures every point of every curve of `preset`.
///
/// # Errors
/// [`TrainError`] when a process cannot be started, fails, or does not answer as expected.
pub fn measure(preset: &Preset, child: &Child) -> Result<Vec<CostPoint>, TrainError> {
    let count = DIMENSIONS.iter().map(|(_, sizes)| sizes.len() as u64).sum();
    let mut progress = Progress::new("cost", count, "models");
    let mut points = Vec::new();
    for (dimension, values) in DIMENSIONS {
        for &size in values {
            let sizes = sizes(dimension, size);
            let resized = preset.clone().resized(&sizes)?;
            let result = child.run(preset.name, &sizes)?;
            points.push(CostPoint {
                dimension: dimension.to_owned(),
                size,
                tokens: resized.batch * resized.time,
                result,
            });
            progress.advance(1, &format!("{dimension} {size}"));
        }
    }
    progress.finish(&format!("{count} models measured"));
    Ok(points)
}

impl Child {
    /// Measures a preset with some sizes changed.
    ///
    /// # Errors
    /// [`TrainError::Child`] with what the process said.
    pub fn run(&self, preset: &str, sizes: &Sizes) -> Result<BenchResult, TrainError> {
        let mut command = Command::new(&self.program);
        command.args(["bench", "train", "--json", "--preset", preset, "--dtype", self.precision.name()]);
        command.args(["--steps", &self.steps.to_string()]);
        command.args(self.recompute.then_some("--recompute"));
        let options = [
            ("--time", sizes.time),
            ("--batch", sizes.batch),
            ("--width", sizes.width),
            ("--vocabulary", sizes.vocabulary),
        ];
        for (name, value) in options {
            if let Some(value) = value {
                command.args([name, &value.to_string()]);
            }
        }
        let output = Command::output(command.stdin(Stdio::null())).map_err(|e| e.to_string());
        let command = format!("{command:?}");
        let failed = |message: String| TrainError::Child { command: command.clone(), message };
        let output = output.map_err(failed)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{}: {}", output.status, said.trim())));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))
    }
}
