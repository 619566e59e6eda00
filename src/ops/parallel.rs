//! Work in fixed pieces: how a kernel is cut never depends on the number of threads, so neither do
//! its bits. Inside a piece the code is compiled for the best vector unit the machine has.

/// Rows of one piece of a row-wise kernel.
pub(crate) const ROWS: usize = 32;
/// Numbers of one piece of an element-wise kernel.
pub(crate) const ELEMENTS: usize = 1 << 14;
/// Partial sums kept side by side, so that a sum vectorises without changing its order.
pub(crate) const LANES: usize = 16;

/// Runs `work` on a thread of the pool. Work that starts many parallel loops one after the other belongs
/// there: a caller outside is put to sleep and woken again for each of them.
pub(crate) fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| work())
}

/// Runs a piece of work, written as a closure, compiled for the vector unit found at run time.
///
/// A closure keeps the features of the place it is written at: only one that is inlined takes those of
/// the function that calls it. The macro writes the attribute that no call may forget.
macro_rules! vectorised {
    (|| $work:expr) => {
        $crate::ops::parallel::dispatch(
            #[inline(always)]
            || $work,
        )
    };
}
pub(crate) use vectorised;

/// What [`vectorised`] calls: `work` inside a function of AVX-512, AVX2 … or the baseline.
#[inline(always)]
pub(crate) fn dispatch<R>(work: impl FnOnce() -> R) -> R {
    struct Call<F>(F);
    impl<R, F: FnOnce() -> R> pulp::WithSimd for Call<F> {
        type Output = R;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Call(work))
}

/// Σ f(x₀[i], x₁[i], …) over slices of one length in [`LANES`] interleaved partial sums, added in a
/// fixed order.
///
/// # Panics
/// When a slice is shorter than the first.
#[inline(always)]
pub(crate) fn lane_sum<I: Copy, T: super::Real, const N: usize>(slices: [&[I]; N], f: impl Fn([I; N]) -> T) -> T {
    let count = slices[0].len();
    let slices = slices.map(
        #[inline(always)]
        |slice| &slice[..count],
    );
    let mut lanes = [T::ZERO; LANES];
    let whole = count / LANES * LANES;
    let mut start = 0;
    while start < whole {
        // One check of the bounds for all lanes, so that the loop over them becomes vector code.
        let pieces = slices.map(
            #[inline(always)]
            |slice| &slice[start..start + LANES],
        );
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(pieces.map(
                #[inline(always)]
                |piece| piece[lane],
            ));
        }
        start += LANES;
    }
    for i in whole..count {
        lanes[i - whole] += f(slices.map(
            #[inline(always)]
            |slice| slice[i],
        ));
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            let upper = lanes[i + width];
            lanes[i] += upper;
        }
        width /= 2;
    }
    lanes[0]
}
