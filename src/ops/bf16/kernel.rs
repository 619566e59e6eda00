//! The innermost product: a tile of 12 × 32 numbers that stay in registers, for `AVX512-BF16`.

use super::pack::{COLUMNS, ROWS};

/// Whether this machine has the instruction.
pub(super) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Where the tile's numbers go: `rows` × `columns` of them from `data` on, the rows `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) data: *mut f32,
    pub(super) stride: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Whether to add to what is there.
    pub(super) accumulate: bool,
}

/// The product of a packed panel of rows and one of columns, both of the same number of pairs.
///
/// # Safety
/// [`available`] must hold, and the target's numbers must be the caller's alone.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn tile(_: &[u32], _: &[u32], _: Target) {
    unreachable!("`available` is false on this architecture");
}

/// The product of a packed panel of rows and one of columns, both of the same number of pairs: each
/// `dpbf16` multiplies the pairs of 16 columns by one row's pair and adds both products.
///
/// # Safety
/// [`available`] must hold, and the target's numbers must be the caller's alone.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) unsafe fn tile(a: &[u32], b: &[u32], to: Target) {
    use std::arch::x86_64::*;
    use std::mem::transmute;
    const LANES: usize = 16;
    const WIDE: usize = COLUMNS / LANES;
    let mut sums = [[_mm512_setzero_ps(); WIDE]; ROWS];
    for (a, b) in a.as_chunks::<ROWS>().0.iter().zip(b.as_chunks::<COLUMNS>().0) {
        // SAFETY: 32 numbers of 32 bits are as large as two registers, and any bits are a value.
        let columns: [__m512bh; WIDE] = unsafe { transmute(*b) };
        for (sums, pair) in sums.iter_mut().zip(a) {
            // SAFETY: both are 512 bits, and any bits are a value.
            let pair: __m512bh = unsafe { transmute(_mm512_set1_epi32(*pair as i32)) };
            for (sum, columns) in sums.iter_mut().zip(columns) {
                *sum = _mm512_dpbf16_ps(*sum, pair, columns);
            }
        }
    }
    let mask = |wide: usize| ((1u32 << to.columns.saturating_sub(wide * LANES).min(LANES)) - 1) as __mmask16;
    let masks: [__mmask16; WIDE] = std::array::from_fn(mask);
    for (row, sums) in sums.iter().enumerate().take(to.rows) {
        for (wide, (sum, mask)) in sums.iter().zip(masks).enumerate() {
            // SAFETY: the caller's alone; the mask keeps to its columns.
            unsafe {
                let place = to.data.add(row * to.stride + wide * LANES);
                let old = if to.accumulate { _mm512_maskz_loadu_ps(mask, place) } else { _mm512_setzero_ps() };
                _mm512_mask_storeu_ps(place, mask, _mm512_add_ps(old, *sum));
            }
        }
    }
}
