//! Matrix products through the `gemm` crate, behind views that check their bounds once.

use super::{Precision, Real, bf16};
use gemm::Parallelism;

/// A matrix inside a slice: element (i, j) is at `offset + i·row_stride + j·column_stride`.
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    data: &'a [T],
    shape: [usize; 2],
    strides: [usize; 2],
}

impl<'a, T> View<'a, T> {
    /// A row-major matrix whose rows lie `row_stride` apart, starting at `data[0]`.
    ///
    /// # Panics
    /// When the last element lies outside `data`.
    pub fn new(data: &'a [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert_inside(data.len(), rows, columns, row_stride);
        View { data, shape: [rows, columns], strides: [row_stride, 1] }
    }

    pub(super) fn data(&self) -> &'a [T] {
        self.data
    }

    pub(super) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    pub(super) fn strides(&self) -> [usize; 2] {
        self.strides
    }

    /// The same matrix inside other data of the same length.
    pub(super) fn of<'b>(&self, data: &'b [T]) -> View<'b, T> {
        assert_eq!(data.len(), self.data.len(), "length of a view");
        View { data, shape: self.shape, strides: self.strides }
    }

    /// The transpose of the same data.
    pub fn transposed(self) -> Self {
        let [rows, columns] = self.shape;
        let [row, column] = self.strides;
        View { data: self.data, shape: [columns, rows], strides: [column, row] }
    }
}

impl<'a, T: Real> View<'a, T> {
    fn as_f32(self) -> Option<View<'a, f32>> {
        Some(View { data: T::as_f32(self.data)?, shape: self.shape, strides: self.strides })
    }
}

/// A row-major matrix that is written to.
pub struct ViewMut<'a, T> {
    data: &'a mut [T],
    shape: [usize; 2],
    row_stride: usize,
}

impl<'a, T> ViewMut<'a, T> {
    pub(super) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    pub(super) fn row_stride(&self) -> usize {
        self.row_stride
    }

    pub(super) fn into_data(self) -> &'a mut [T] {
        self.data
    }

    /// A row-major matrix whose rows lie `row_stride` apart, starting at `data[0]`.
    ///
    /// # Panics
    /// When the last element lies outside `data`.
    pub fn new(data: &'a mut [T], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert_inside(data.len(), rows, columns, row_stride);
        ViewMut { data, shape: [rows, columns], row_stride }
    }
}

fn assert_inside(length: usize, rows: usize, columns: usize, row_stride: usize) {
    assert!(rows == 0 || columns == 0 || (columns <= row_stride && (rows - 1) * row_stride + columns <= length));
}

/// Whether a product may use all threads or is part of work that is already parallel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// All threads of the pool.
    All,
    /// This thread only.
    One,
}

/// `c = a·b`, or `c += a·b` when `accumulate`, on all threads, with `a` and `b` in the given precision.
/// A product of `f64` numbers checks gradients and is always exact.
///
/// # Panics
/// When the shapes do not fit together.
pub fn product<T: Real>(c: ViewMut<T>, a: View<T>, b: View<T>, accumulate: bool, precision: Precision) {
    let ViewMut { data, shape, row_stride } = c;
    if precision == Precision::Bf16
        && let (Some(data), Some(a), Some(b)) = (T::as_f32_mut(data), a.as_f32(), b.as_f32())
    {
        return bf16::product(ViewMut { data, shape, row_stride }, a, b, accumulate);
    }
    matmul(ViewMut { data, shape, row_stride }, a, b, T::ONE, accumulate, Threads::All);
}

/// Products below this many multiply-adds are not worth waking other threads for.
const SMALL: usize = 1 << 17;

/// `c = scale·a·b`, or `c += scale·a·b` when `accumulate`.
///
/// Every element is one sum over k in a fixed order, so the bits do not depend on the threads.
///
/// # Panics
/// When the shapes do not fit together.
pub fn matmul<T: Real>(c: ViewMut<T>, a: View<T>, b: View<T>, scale: T, accumulate: bool, threads: Threads) {
    let [m, n] = c.shape;
    let k = a.shape[1];
    assert_eq!((a.shape[0], b.shape[0], b.shape[1]), (m, k, n), "shapes of a product");
    let parallel = threads == Threads::All && m * n * k > SMALL && rayon::current_num_threads() > 1;
    let parallelism = if parallel { Parallelism::Rayon(rayon::current_num_threads()) } else { Parallelism::None };
    // SAFETY: the views were checked to lie inside their slices when they were made, `c` is borrowed
    // mutably so it overlaps neither input, and T is f32 or f64, which `gemm` knows.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.data.as_mut_ptr(),
            1,
            c.row_stride as isize,
            accumulate,
            a.data.as_ptr(),
            a.strides[1] as isize,
            a.strides[0] as isize,
            b.data.as_ptr(),
            b.strides[1] as isize,
            b.strides[0] as isize,
            T::ONE,
            scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    fn random(name: &str, n: usize) -> Vec<f64> {
        let stream = Stream::new(1, name);
        (0..n as u64).map(|i| stream.normal(i)).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(m in 1usize..20, n in 1usize..20, k in 1usize..20, pad in 0usize..3, flip: bool) {
            let (a, b) = (random("a", m * (k + pad)), random("b", (k.max(n)) * (k.max(n) + pad)));
            let mut c = random("c", m * (n + pad));
            let old = c.clone();
            let bv = if flip { View::new(&b, n, k, k + pad).transposed() } else { View::new(&b, k, n, n + pad) };
            matmul(ViewMut::new(&mut c, m, n, n + pad), View::new(&a, m, k, k + pad), bv, 0.5, true, Threads::All);
            for i in 0..m {
                for j in 0..n {
                    let at = |l: usize| if flip { b[j * (k + pad) + l] } else { b[l * (n + pad) + j] };
                    let sum: f64 = (0..k).map(|l| a[i * (k + pad) + l] * at(l)).sum();
                    let expected = old[i * (n + pad) + j] + 0.5 * sum;
                    prop_assert!((c[i * (n + pad) + j] - expected).abs() < 1e-12);
                }
            }
        }
    }

    /// The first number lies between two of bf16; whole numbers are exact there.
    const BETWEEN: f64 = 1.0 + 1.0 / 512.0;

    fn in_precision<T: Real>(precision: Precision) -> Vec<f64> {
        let (a, b) = ([BETWEEN, 3.0].map(T::from_f64), [2.0, 5.0, -1.0, 4.0].map(T::from_f64));
        let mut c = [T::ONE; 2];
        product(ViewMut::new(&mut c, 1, 2, 2), View::new(&a, 1, 2, 2), View::new(&b, 2, 2, 2), true, precision);
        c.iter().map(|x| x.to_f64()).collect()
    }

    #[test]
    fn the_precision_rounds_the_factors_of_f32_and_none_of_f64() {
        let of = |x: f64| vec![1.0 + 2.0 * x - 3.0, 1.0 + 5.0 * x + 12.0];
        assert_eq!(in_precision::<f32>(Precision::Bf16), of(1.0));
        assert_eq!(in_precision::<f32>(Precision::F32), of(BETWEEN));
        assert_eq!(in_precision::<f64>(Precision::Bf16), of(BETWEEN));
        assert_eq!(in_precision::<f64>(Precision::F32), of(BETWEEN));
    }

    #[test]
    fn bits_do_not_depend_on_threads() {
        let (m, n, k) = (130, 257, 300);
        let to = |v: Vec<f64>| -> Vec<f32> { v.into_iter().map(|x| x as f32).collect() };
        let (a, b) = (to(random("a", m * k)), to(random("b", k * n)));
        let run = |threads| {
            let mut c = vec![0f32; m * n];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                matmul(
                    ViewMut::new(&mut c, m, n, n),
                    View::new(&a, m, k, k),
                    View::new(&b, k, n, n),
                    1.0,
                    false,
                    Threads::All,
                );
            });
            c
        };
        let one = run(1);
        assert!(one.iter().any(|x| *x != 0.0));
        for threads in [2, 3, 4] {
            assert_eq!(one, run(threads), "{threads} threads");
        }
    }
}
