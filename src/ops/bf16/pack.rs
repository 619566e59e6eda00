//! The order in which the innermost product reads.
//!
//! A panel holds a few lines (rows of a, or columns of b) over a stretch of k, as pairs of neighbours
//! in k: for each pair of k, the pairs of all lines. What lies outside the matrix is 0.

use crate::ops::matmul::View;
use std::ops::Range;

/// Rows of a panel of a.
pub(super) const ROWS: usize = 12;
/// Columns of a panel of b.
pub(super) const COLUMNS: usize = 32;

/// Lines of a matrix of lines × k, from `first` on, over `k`.
#[derive(Clone, Copy)]
struct Lines<'a> {
    data: &'a [f32],
    /// How far lines, and neighbours in k, lie apart.
    strides: [usize; 2],
    count: usize,
    length: usize,
}

/// Rounds lines from `first` on over `k` to bf16 and packs them into `panels` of `LINES` lines each, with
/// ⌈k.len()/2⌉ pairs a line. `lines` is a matrix of lines × k.
///
/// # Safety
/// The features of [`super::kernel::available`] must be there.
///
/// # Panics
/// When neither the lines nor their neighbours in k lie side by side in memory.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn panels<const LINES: usize>(matrix: View<f32>, first: usize, k: &Range<usize>, panels: &mut [u32]) {
    let size = k.len().div_ceil(2) * LINES;
    let strides = matrix.strides();
    let data = &matrix.data()[first * strides[0] + k.start * strides[1]..];
    let count = (matrix.shape()[0] - first).min(panels.len() / size * LINES);
    let lines = Lines { data, strides, count, length: k.len() };
    let last = (count - 1) * strides[0] + (k.len() - 1) * strides[1];
    assert!(last < data.len() && panels.len().is_multiple_of(size), "lines and panels lie inside their buffers");
    // SAFETY: as the caller promises; every line's and panel's end was checked.
    unsafe {
        match strides {
            [_, 1] => x86::along_k::<LINES>(lines, panels),
            [1, _] => x86::across_k::<LINES>(lines, panels),
            _ => panic!("a matrix has rows or columns without gaps"),
        }
    }
}

/// Never called: there is no kernel on this architecture.
///
/// # Safety
/// Does nothing unsafe; it has the signature of the one above.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn panels<const LINES: usize>(_: View<f32>, _: usize, _: &Range<usize>, _: &mut [u32]) {
    unreachable!("`available` is false on this architecture");
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lines;
    use std::arch::x86_64::*;
    use std::mem::transmute;

    /// Pairs of a register.
    const LANES: usize = 16;

    /// The first `count` lanes, at most all.
    fn mask(count: usize) -> __mmask16 {
        ((1u32 << count.min(LANES)) - 1) as __mmask16
    }

    /// Neighbours in k lie side by side in memory: rounds 16 lines at a time and transposes their pairs.
    ///
    /// # Safety
    /// The features named below must be there, and `lines` and `panels` as [`super::panels`] checks them.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) unsafe fn along_k<const LINES: usize>(lines: Lines, panels: &mut [u32]) {
        let size = lines.length.div_ceil(2) * LINES;
        for (panel, to) in panels.chunks_exact_mut(size).enumerate() {
            for start in (0..lines.length).step_by(2 * LANES) {
                let left = lines.length - start;
                let masks = [mask(left), mask(left.saturating_sub(LANES))];
                for group in (0..LINES).step_by(LANES) {
                    let first = panel * LINES + group;
                    let have = lines.count.saturating_sub(first).min(LINES - group);
                    let mut block = [_mm512_setzero_si512(); LANES];
                    for (line, to) in block.iter_mut().enumerate().take(have) {
                        // SAFETY: the line exists, and the masks end with it.
                        unsafe {
                            let from = lines.data.as_ptr().add((first + line) * lines.strides[0] + start);
                            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(64).cast());
                            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(80).cast());
                            let low = _mm512_maskz_loadu_ps(masks[0], from);
                            let high = _mm512_maskz_loadu_ps(masks[1], from.wrapping_add(LANES));
                            *to = transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low));
                        }
                    }
                    transpose(&mut block);
                    let wide = mask(LINES - group);
                    for (i, pairs) in block.iter().enumerate().take(left.div_ceil(2)) {
                        // SAFETY: the pair is one of the panel's, and the mask ends with its lines.
                        unsafe {
                            let place = to.as_mut_ptr().add((start / 2 + i) * LINES + group);
                            _mm512_mask_storeu_epi32(place.cast(), wide, *pairs);
                        }
                    }
                }
            }
        }
    }

    /// Neighbours among the lines lie side by side: two stretches of them make the pairs of all panels, so
    /// that whole cache lines are read once.
    ///
    /// # Safety
    /// As for [`along_k`].
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) unsafe fn across_k<const LINES: usize>(lines: Lines, panels: &mut [u32]) {
        let pairs = lines.length.div_ceil(2);
        // The numbers of the one stretch between those of the other.
        let order: [u16; 2 * LANES] = std::array::from_fn(|i| (i / 2 + i % 2 * LANES) as u16);
        // SAFETY: both are 512 bits, and any bits are a value.
        let order: __m512i = unsafe { transmute(order) };
        for pair in 0..pairs {
            let both = 2 * pair + 1 < lines.length;
            for (panel, to) in panels.chunks_exact_mut(pairs * LINES).enumerate() {
                for group in (0..LINES).step_by(LANES) {
                    let first = panel * LINES + group;
                    let wide = mask(LINES - group);
                    let have = mask(lines.count.saturating_sub(first)) & wide;
                    // SAFETY: the masks end with the lines and with the panel's lines.
                    unsafe {
                        let from = lines.data.as_ptr().wrapping_add(2 * pair * lines.strides[1] + first);
                        let low = _mm512_maskz_loadu_ps(have, from);
                        let next = from.wrapping_add(lines.strides[1]);
                        let high = _mm512_maskz_loadu_ps(if both { have } else { 0 }, next);
                        let rounded = transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low));
                        let place = to.as_mut_ptr().add(pair * LINES + group);
                        _mm512_mask_storeu_epi32(place.cast(), wide, _mm512_permutexvar_epi16(order, rounded));
                    }
                }
            }
        }
    }

    /// Transposes 16 × 16 numbers of 32 bits: in pairs, in fours, then by quarters of a register.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transpose(block: &mut [__m512i; LANES]) {
        let mut a = *block;
        for i in (0..LANES).step_by(2) {
            a[i] = _mm512_unpacklo_epi32(block[i], block[i + 1]);
            a[i + 1] = _mm512_unpackhi_epi32(block[i], block[i + 1]);
        }
        let mut b = a;
        for i in (0..LANES).step_by(4) {
            b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
            b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
            b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
            b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
        }
        // b[4q + c] has column c of each quarter, for rows 4q to 4q + 3.
        for c in 0..4 {
            let even = [0, 8].map(|q| _mm512_shuffle_i32x4::<0b10_00_10_00>(b[q + c], b[q + 4 + c]));
            let odd = [0, 8].map(|q| _mm512_shuffle_i32x4::<0b11_01_11_01>(b[q + c], b[q + 4 + c]));
            block[c] = _mm512_shuffle_i32x4::<0b10_00_10_00>(even[0], even[1]);
            block[8 + c] = _mm512_shuffle_i32x4::<0b11_01_11_01>(even[0], even[1]);
            block[4 + c] = _mm512_shuffle_i32x4::<0b10_00_10_00>(odd[0], odd[1]);
            block[12 + c] = _mm512_shuffle_i32x4::<0b11_01_11_01>(odd[0], odd[1]);
        }
    }
}
