//! Work in fixed pieces: how a kernel is cut never depends on the number of threads, so neither do
//! its bits. Inside a piece the code is compiled for the best vector unit the machine has.

/// Rows of one piece of a row-wise kernel.
pub(crate) const ROWS: usize = 32;
/// Numbers of one piece of an element-wise kernel.
pub(crate) const ELEMENTS: usize = 1 << 14;
/// Partial sums kept side by side, so that a sum vectorises without changing its order.
pub(crate) const LANES: usize = 16;

/// Runs `work` compiled for the vector unit found at run time (AVX-512, AVX2 … or the baseline).
#[inline(always)]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
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

/// Σ f(i) over `0..count` in [`LANES`] interleaved partial sums, added in a fixed order.
#[inline(always)]
pub(crate) fn lane_sum<T: super::Real>(count: usize, f: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let whole = count / LANES * LANES;
    let mut start = 0;
    while start < whole {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(start + lane);
        }
        start += LANES;
    }
    for i in whole..count {
        lanes[i - whole] += f(i);
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
