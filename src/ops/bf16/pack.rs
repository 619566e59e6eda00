//! Rounding to bf16 and the order in which the innermost product reads.
//!
//! A panel holds a few lines (rows of a, or columns of b) over a stretch of k, as pairs of neighbours
//! in k: for each pair of k, the pairs of all lines. What lies outside the matrix is 0.

use crate::ops::matmul::View;
use crate::ops::parallel::vectorised;

/// Rows of a panel of a.
pub(super) const ROWS: usize = 12;
/// Columns of a panel of b.
pub(super) const COLUMNS: usize = 32;

/// The bf16 nearest to `x`, ties to even; NaN stays NaN.
#[inline(always)]
pub(super) fn round(x: f32) -> u32 {
    let bits = x.to_bits();
    let rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    if x.is_nan() { 0x7fc0 } else { rounded }
}

#[inline(always)]
fn pair(low: f32, high: f32) -> u32 {
    round(low) | (round(high) << 16)
}

/// Packs `LINES` lines from `first` over `k` into `panel`, which holds ⌈k.len()/2⌉ pairs a line.
/// `lines` is a matrix of lines × k.
pub(super) fn panel<const LINES: usize>(
    lines: View<f32>,
    first: usize,
    k: std::ops::Range<usize>,
    panel: &mut [u32],
) {
    let count = LINES.min(lines.shape()[0] - first);
    let [across, along] = lines.strides();
    let data = &lines.data()[first * across + k.start * along..];
    if along == 1 {
        along_k::<LINES>(data, across, count, k.len(), panel);
    } else {
        across_k::<LINES>(data, along, count, k.len(), panel);
    }
}

/// Neighbours in k lie side by side in memory: round each line, then transpose.
fn along_k<const LINES: usize>(data: &[f32], stride: usize, count: usize, length: usize, panel: &mut [u32]) {
    const STRETCH: usize = 64;
    let mut rounded = [[0u32; STRETCH]; LINES];
    let pairs = length.div_ceil(2);
    for start in (0..pairs).step_by(STRETCH) {
        let here = STRETCH.min(pairs - start);
        for (line, rounded) in rounded.iter_mut().enumerate().take(count) {
            let source = &data[line * stride + 2 * start..line * stride + length.min(2 * (start + here))];
            vectorised!(|| {
                let (whole, rest) = source.as_chunks::<2>();
                for (to, [low, high]) in rounded.iter_mut().zip(whole) {
                    *to = pair(*low, *high);
                }
                if let [last] = rest {
                    rounded[whole.len()] = pair(*last, 0.0);
                }
            });
        }
        let target = panel.as_chunks_mut::<LINES>().0[start..start + here].iter_mut().enumerate();
        for (i, to) in target {
            for (to, rounded) in to.iter_mut().zip(&rounded) {
                *to = rounded[i];
            }
        }
    }
}

/// Neighbours among the lines lie side by side: two stretches of them make the pairs.
fn across_k<const LINES: usize>(data: &[f32], stride: usize, count: usize, length: usize, panel: &mut [u32]) {
    let row = |k: usize| {
        let mut row = [0f32; LINES];
        if k < length {
            row[..count].copy_from_slice(&data[k * stride..][..count]);
        }
        row
    };
    let full = |k: usize| -> &[f32; LINES] { data[k * stride..].first_chunk().expect("a whole line") };
    vectorised!(|| {
        for (i, to) in panel.as_chunks_mut::<LINES>().0.iter_mut().enumerate() {
            if count == LINES && 2 * i + 1 < length {
                let (low, high) = (full(2 * i), full(2 * i + 1));
                for j in 0..LINES {
                    to[j] = pair(low[j], high[j]);
                }
            } else {
                let (low, high) = (row(2 * i), row(2 * i + 1));
                for j in 0..LINES {
                    to[j] = pair(low[j], high[j]);
                }
            }
        }
    });
}
