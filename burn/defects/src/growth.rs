//! Training at growing sizes on a GPU, for the defects that only fusion and autotune have.
//!
//! Fusion and autotune are chosen when Burn is built, so the check and its control are two builds. Where there is no
//! GPU, software Vulkan runs the same kernels as far as the CPU affords.

use crate::catalogue::{CheckError, Verdict};
#[cfg(any(test, feature = "cuda", feature = "wgpu"))]
use crate::decoder::Shape;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn::tensor::Device;

/// Which build an attempt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// A GPU backend with fusion and autotune: `--features cuda-fusion` or `wgpu-fusion`.
    Fusion,
    /// The same backend alone: `--features cuda` or `wgpu`.
    Plain,
}

/// What this program was built for, in words; none without a GPU backend.
pub const BUILT: Option<&str> = match (cfg!(feature = "cuda"), cfg!(feature = "wgpu"), FUSED) {
    (true, _, true) => Some("CUDA with fusion and autotune"),
    (true, _, false) => Some("CUDA"),
    (false, true, true) => Some("software Vulkan with fusion and autotune"),
    (false, true, false) => Some("software Vulkan"),
    (false, false, _) => None,
};
const FUSED: bool = cfg!(any(feature = "cuda-fusion", feature = "wgpu-fusion"));

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
    /// The models, in the order in which they are trained; on software Vulkan those that a CPU trains in minutes.
    #[cfg(any(test, feature = "cuda", feature = "wgpu"))]
    fn shapes(self, on_software: bool) -> Vec<Shape> {
        let shape = |width, depth, steps| Shape { width, depth, vocabulary: 1024, batch: [4, 128], steps };
        let small = |width, depth, steps| Shape { batch: [2, 64], ..shape(width, depth, steps) };
        let uneven = |width, steps| Shape { vocabulary: 1021, batch: [3, 67], ..shape(width, 3, steps) };
        match (self, on_software) {
            (Sizes::Long, false) => vec![shape(256, 4, 3000)],
            (Sizes::Long, true) => vec![Shape { vocabulary: 256, ..small(64, 2, 600) }],
            (Sizes::Growing, false) => {
                vec![shape(256, 2, 20), shape(512, 8, 20), shape(1024, 16, 20), shape(2048, 24, 20)]
            }
            (Sizes::Growing, true) => vec![small(64, 2, 5), small(128, 4, 5), small(256, 8, 5), small(512, 8, 5)],
            (Sizes::Uneven, false) => [97, 131, 255, 391].map(|width| uneven(width, 50)).into(),
            (Sizes::Uneven, true) => [97, 131].map(|width| uneven(width, 10)).into(),
        }
    }

    /// GPU memory that the largest of these models takes, in GiB, with room to spare.
    fn memory(self) -> u32 {
        if self == Sizes::Growing { 40 } else { 8 }
    }
}

/// Trains at `sizes` on the first GPU, or on software Vulkan, and compares every loss with the CPU backend's as far
/// as that is affordable.
///
/// Present on a value that is not finite or a loss off the CPU's; a crash ends the process and speaks for
/// itself. Needs hardware unless this program is the right build.
pub fn attempt(id: &str, build: Build, sizes: Sizes) -> Result<Verdict, CheckError> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if FUSED == (build == Build::Fusion) {
        return Ok(train(sizes));
    }
    let (feature, control) = match build {
        Build::Fusion => ("cuda-fusion", ""),
        Build::Plain => ("cuda", " --control"),
    };
    let here =
        if BUILT.is_some() { "this build has the other set of features" } else { "this build has no GPU backend" };
    Ok(Verdict::NeedsHardware(format!(
        "an NVIDIA GPU with {} GiB of memory and CUDA; {here}; there: cargo run --release --manifest-path \
         burn/Cargo.toml -p shikha-burn-defects --features {feature} -- --child {id}{control}",
        sizes.memory()
    )))
}

/// The device to try, and whether it is a CPU that stands in for a GPU.
#[cfg(feature = "cuda")]
fn device() -> Result<(Device, bool), String> {
    Ok((Device::cuda(0), false))
}

#[cfg(all(feature = "wgpu", not(feature = "cuda")))]
fn device() -> Result<(Device, bool), String> {
    let opened = Device::wgpu_options().device_kind(burn::tensor::DeviceKind::Cpu).init();
    let missing = |e| format!("a software Vulkan driver (Debian's package mesa-vulkan-drivers): {e}");
    Ok((opened.map_err(missing)?, true))
}

/// Trains every model; stops at the first that shows something.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
fn train(sizes: Sizes) -> Verdict {
    use crate::decoder::{judge_losses, losses};
    let (device, on_software) = match device() {
        Ok(found) => found,
        Err(what) => return Verdict::NeedsHardware(what),
    };
    let device = device.autodiff();
    let mut evidence = Vec::new();
    for shape in sizes.shapes(on_software) {
        // The host compares the first steps, and only where it can do them in seconds.
        let compared = if shape.width > 512 { 0 } else { shape.steps.min(5) };
        let found = losses(&shape, &[(&Device::flex().autodiff(), compared), (&device, shape.steps)]);
        let [expected, found] = [0, 1].map(|i| found.get(i).cloned().unwrap_or_default());
        match judge_losses(&shape, &found, &expected) {
            Verdict::Absent(words) => evidence.push(words),
            other => return other,
        }
        // Told as it comes: a crash later on leaves these as the last words.
        eprintln!("{}", evidence[evidence.len() - 1]);
    }
    Verdict::Absent(evidence.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_grow_past_a_thousand_million_parameters() {
        let counts: Vec<usize> = Sizes::Growing.shapes(false).iter().map(Shape::parameters).collect();
        assert!(counts.windows(2).all(|pair| pair[0] < pair[1]), "{counts:?}");
        assert!(counts.last().is_some_and(|&c| c > 1_000_000_000), "{counts:?}");
        assert!(Sizes::Uneven.shapes(false).iter().all(|s| s.width % 8 != 0 && s.vocabulary % 8 != 0));
        assert_eq!(Sizes::Long.shapes(false)[0].steps, 3000);
        for sizes in [Sizes::Long, Sizes::Growing, Sizes::Uneven] {
            assert!(sizes.shapes(true).iter().all(|s| s.parameters() < 30_000_000), "a CPU takes too long: {sizes:?}");
        }
    }
}
