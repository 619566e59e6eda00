//! Training at growing sizes on a GPU, for the defects that only fusion and autotune have.
//!
//! Fusion and autotune are chosen when Burn is built, so the check and its control are two builds.

use crate::catalogue::{CheckError, Verdict};
#[cfg(any(test, feature = "cuda"))]
use crate::decoder::Shape;

/// Which build an attempt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// CUDA with fusion and autotune: `--features cuda-fusion`.
    Fusion,
    /// CUDA alone: `--features cuda`.
    Plain,
}

/// Which models are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// A small model for thousands of steps.
    Long,
    /// A few steps each of models up to 1.2 thousand million parameters.
    Growing,
    /// Small models whose sizes are no multiples of 8.
    Uneven,
}

impl Sizes {
    /// The models, in the order in which they are trained.
    #[cfg(any(test, feature = "cuda"))]
    fn shapes(self) -> Vec<Shape> {
        let shape = |width, depth, steps| Shape { width, depth, vocabulary: 1024, batch: [4, 128], steps };
        match self {
            Sizes::Long => vec![shape(256, 4, 3000)],
            Sizes::Growing => vec![shape(256, 2, 20), shape(512, 8, 20), shape(1024, 16, 20), shape(2048, 24, 20)],
            Sizes::Uneven => [97, 131, 255, 391]
                .map(|width| Shape { vocabulary: 1021, batch: [3, 67], ..shape(width, 3, 50) })
                .into(),
        }
    }

    /// GPU memory that the largest of these models takes, in GiB, with room to spare.
    fn memory(self) -> u32 {
        if self == Sizes::Growing { 40 } else { 8 }
    }
}

/// Trains at `sizes` on the first GPU and compares every loss with a CPU's as far as that is affordable.
///
/// Present on a value that is not finite or a loss off the CPU's; a crash ends the process and speaks for
/// itself. Needs hardware unless this program is the right build.
pub fn attempt(id: &str, build: Build, sizes: Sizes) -> Result<Verdict, CheckError> {
    let built = match (cfg!(feature = "cuda"), cfg!(feature = "cuda-fusion")) {
        (_, true) => Some(Build::Fusion),
        (true, false) => Some(Build::Plain),
        (false, false) => None,
    };
    #[cfg(feature = "cuda")]
    if built == Some(build) {
        return Ok(train(sizes));
    }
    let (feature, control) = match build {
        Build::Fusion => ("cuda-fusion", ""),
        Build::Plain => ("cuda", " --control"),
    };
    let here =
        if built.is_some() { "this build has the other set of features" } else { "this build has no GPU backend" };
    Ok(Verdict::NeedsHardware(format!(
        "an NVIDIA GPU with {} GiB of memory and CUDA; {here}; there: cargo run --release --manifest-path \
         burn/Cargo.toml -p shikha-burn-defects --features {feature} -- --child {id}{control}",
        sizes.memory()
    )))
}

/// Trains every model; stops at the first that shows something.
#[cfg(feature = "cuda")]
fn train(sizes: Sizes) -> Verdict {
    use crate::decoder::{judge_losses, losses};
    use burn::tensor::Device;
    let mut evidence = Vec::new();
    for shape in sizes.shapes() {
        // The host compares the first steps, and only where it can do them in seconds.
        let compared = if shape.width > 512 { 0 } else { shape.steps.min(5) };
        let expected = losses(&Shape { steps: compared, ..shape }, &Device::flex().autodiff());
        match judge_losses(&shape, &losses(&shape, &Device::cuda(0).autodiff()), &expected) {
            Verdict::Absent(words) => evidence.push(words),
            other => return other,
        }
    }
    Verdict::Absent(evidence.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_grow_past_a_thousand_million_parameters() {
        let count = |s: &Shape| 12 * s.width * s.width * s.depth + 2 * s.vocabulary * s.width;
        let counts: Vec<usize> = Sizes::Growing.shapes().iter().map(count).collect();
        assert!(counts.windows(2).all(|pair| pair[0] < pair[1]), "{counts:?}");
        assert!(counts.last().is_some_and(|&c| c > 1_000_000_000), "{counts:?}");
        assert!(Sizes::Uneven.shapes().iter().all(|s| s.width % 8 != 0 && s.vocabulary % 8 != 0));
        assert_eq!(Sizes::Long.shapes()[0].steps, 3000);
    }
}
