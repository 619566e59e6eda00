//! Matrix products of numbers rounded to bf16, summed in f32, through `AVX512-BF16` where the CPU has it.
//!
//! The second matrix is rounded and packed into panels first; then each thread takes some rows of the
//! first, packs them, and multiplies them with all panels, in stretches of k that stay in the caches
//! (K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34, 2008).
//! Every element is one sum over k in a fixed order, so the bits do not depend on the threads. The
//! instruction takes subnormal numbers as 0. Without it, the rounded numbers are multiplied in f32: the
//! same up to the rounding of the sums.

mod kernel;
mod pack;

use super::matmul::{Threads, View, ViewMut, matmul};
use super::shared::Shared;
use kernel::Target;
use pack::{COLUMNS, ROWS};
use rayon::prelude::*;
use std::cell::Cell;
use std::ops::Range;

/// Numbers of k in a stretch: a panel of columns then fills the first cache. Even, for pairs.
const DEPTH: usize = 512;
/// Numbers of the second matrix that are packed at a time: 16 MiB of bf16.
const PACKED: usize = 1 << 23;
/// Rows that a thread takes at a time.
const TAKEN: usize = 4 * ROWS;

/// Whether this machine multiplies bf16 numbers itself.
pub fn available() -> bool {
    kernel::available()
}

/// 16 pairs that lie in one cache line, so that no register is loaded from two.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct CacheLine([u32; 16]);

/// Room for packed panels.
type Room = Cell<Vec<CacheLine>>;

thread_local! {
    /// For the columns of the product that this thread asked for.
    static COLUMN_ROOM: Room = const { Cell::new(Vec::new()) };
    /// For the rows that this thread took.
    static ROW_ROOM: Room = const { Cell::new(Vec::new()) };
}

/// `c = a·b`, or `c += a·b` when `accumulate`, with `a` and `b` rounded to bf16 and summed in f32.
///
/// # Panics
/// When the shapes do not fit together.
pub fn product(c: ViewMut<f32>, a: View<f32>, b: View<f32>, accumulate: bool) {
    let ([m, n], k) = (c.shape(), a.shape()[1]);
    assert_eq!((a.shape()[0], b.shape()), (m, [k, n]), "shapes of a product");
    if !available() || m * n * k == 0 {
        return rounded(c, a, b, accumulate);
    }
    let out = Out::new(c);
    let wide = (PACKED / k / COLUMNS * COLUMNS).max(COLUMNS);
    for start in (0..n).step_by(wide) {
        let columns = start..n.min(start + wide);
        with_room(&COLUMN_ROOM, columns.len().div_ceil(COLUMNS) * k.div_ceil(2) * COLUMNS, |room| {
            let size = k.div_ceil(2) * COLUMNS;
            room.par_chunks_exact_mut(size).enumerate().for_each(|(i, panel)| {
                // SAFETY: the features are there, as was asked above.
                unsafe { pack::panels::<COLUMNS>(b.transposed(), start + i * COLUMNS, &(0..k), panel) };
            });
            let room = &*room;
            (0..m.div_ceil(TAKEN)).into_par_iter().for_each(|i| {
                let rows = i * TAKEN..m.min((i + 1) * TAKEN);
                multiply(&out, a, rows, room, columns.clone(), accumulate);
            });
        });
    }
}

/// The same without the instruction.
fn rounded(c: ViewMut<f32>, a: View<f32>, b: View<f32>, accumulate: bool) {
    let round =
        |view: View<f32>| -> Vec<f32> { view.data().par_iter().map(|x| half::bf16::from_f32(*x).to_f32()).collect() };
    let (a_rounded, b_rounded) = (round(a), round(b));
    matmul(c, a.of(&a_rounded), b.of(&b_rounded), 1.0, accumulate, Threads::All);
}

/// Calls `work` with `count` pairs of a thread's room.
fn with_room(room: &'static std::thread::LocalKey<Room>, count: usize, work: impl FnOnce(&mut [u32])) {
    // Taken out while in use: a thread that waits for others may be given another product's work.
    let mut lines = room.take();
    if lines.len() < count.div_ceil(16) {
        lines.resize(count.div_ceil(16), CacheLine([0; 16]));
    }
    work(&mut bytemuck::cast_slice_mut(&mut lines)[..count]);
    room.set(lines);
}

/// Some rows of `a` with all packed columns.
fn multiply(out: &Out, a: View<f32>, rows: Range<usize>, panels: &[u32], columns: Range<usize>, accumulate: bool) {
    let k = a.shape()[1];
    let size = k.div_ceil(2) * COLUMNS;
    let row_panels = rows.len().div_ceil(ROWS);
    with_room(&ROW_ROOM, row_panels * DEPTH / 2 * ROWS, |room| {
        for depth in (0..k).step_by(DEPTH) {
            let stretch = depth..k.min(depth + DEPTH);
            let pairs = stretch.len().div_ceil(2);
            let room = &mut room[..row_panels * pairs * ROWS];
            // SAFETY: `product` asked whether the features are there.
            unsafe { pack::panels::<ROWS>(a, rows.start, &stretch, room) };
            for (j, panel) in panels.chunks_exact(size).enumerate() {
                let b = &panel[depth / 2 * COLUMNS..][..pairs * COLUMNS];
                let column = columns.start + j * COLUMNS;
                let across = column..columns.end.min(column + COLUMNS);
                for (i, a) in room.chunks_exact(pairs * ROWS).enumerate() {
                    let row = rows.start + i * ROWS;
                    let target = out.target(row..rows.end.min(row + ROWS), across.clone(), accumulate || depth > 0);
                    // SAFETY: as above, and these rows are this thread's alone.
                    unsafe { kernel::tile(a, b, target) };
                }
            }
        }
    });
}

/// The result, whose rows the threads write side by side.
struct Out<'a> {
    data: Shared<'a, f32>,
    shape: [usize; 2],
    stride: usize,
}

impl<'a> Out<'a> {
    fn new(c: ViewMut<'a, f32>) -> Self {
        let (shape, stride) = (c.shape(), c.row_stride());
        Out { data: Shared::new(c.into_data()), shape, stride }
    }

    /// The place of a tile.
    fn target(&self, rows: Range<usize>, columns: Range<usize>, accumulate: bool) -> Target {
        assert!(rows.end <= self.shape[0] && columns.end <= self.shape[1], "a tile lies inside the result");
        let data = self.data.place(rows.start * self.stride + columns.start);
        Target { data, stride: self.stride, rows: rows.len(), columns: columns.len(), accumulate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    /// Whole numbers from −8 to 8: exact in bf16, and so is every sum of their products.
    fn whole(name: &str, n: usize) -> Vec<f32> {
        let stream = Stream::new(1, name);
        (0..n as u64).map(|i| stream.below(i, 17) as f32 - 8.0).collect()
    }

    fn view(data: &[f32], rows: usize, columns: usize, transposed: bool) -> View<'_, f32> {
        if transposed {
            View::new(data, columns, rows, rows).transposed()
        } else {
            View::new(data, rows, columns, columns)
        }
    }

    fn at(data: &[f32], [rows, columns]: [usize; 2], i: usize, j: usize, transposed: bool) -> f32 {
        if transposed { data[j * rows + i] } else { data[i * columns + j] }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whole_numbers_give_exact_products(
            m in 1usize..70, n in 1usize..90, k in 1usize..1100, a_t: bool, b_t: bool, accumulate: bool, pad in 0usize..3
        ) {
            let (a, b) = (whole("a", m * k), whole("b", k * n));
            let old = whole("c", m * (n + pad));
            let mut c = old.clone();
            product(ViewMut::new(&mut c, m, n, n + pad), view(&a, m, k, a_t), view(&b, k, n, b_t), accumulate);
            for i in 0..m {
                for j in 0..n {
                    let sum: f32 = (0..k).map(|l| at(&a, [m, k], i, l, a_t) * at(&b, [k, n], l, j, b_t)).sum();
                    let expected = sum + if accumulate { old[i * (n + pad) + j] } else { 0.0 };
                    prop_assert_eq!(c[i * (n + pad) + j], expected, "element {}, {}", i, j);
                }
                prop_assert_eq!(&c[(i * (n + pad) + n)..(i + 1) * (n + pad)], &old[(i * (n + pad) + n)..(i + 1) * (n + pad)]);
            }
        }
    }

    #[test]
    fn no_rows_no_columns_and_no_terms_are_products_too() {
        for [m, n, k] in [[0, 3, 2], [3, 0, 2], [2, 3, 0], [0, 0, 0]] {
            for accumulate in [false, true] {
                let (a, b, mut c) = (whole("a", m * k), whole("b", k * n), vec![7f32; m * n]);
                product(ViewMut::new(&mut c, m, n, n), View::new(&a, m, k, k), View::new(&b, k, n, n), accumulate);
                assert_eq!(c, vec![if accumulate { 7.0 } else { 0.0 }; m * n], "{m} × {k} × {n}");
            }
        }
    }

    #[test]
    fn blocks_of_columns_and_of_depth_meet() {
        let (m, n, k) = (50, 600, PACKED / 400);
        let (a, b) = (whole("a", m * k), whole("b", k * n));
        let mut c = vec![f32::NAN; m * n];
        product(ViewMut::new(&mut c, m, n, n), View::new(&a, m, k, k), View::new(&b, k, n, n), false);
        let mut expected = vec![0f32; m * n];
        matmul(
            ViewMut::new(&mut expected, m, n, n),
            View::new(&a, m, k, k),
            View::new(&b, k, n, n),
            1.0,
            false,
            Threads::All,
        );
        assert_eq!(c, expected);
    }

    #[test]
    fn factors_are_rounded_to_nearest_even_and_nothing_else_is() {
        let by = |x: f32, y: f32| {
            let mut c = [0f32];
            product(ViewMut::new(&mut c, 1, 1, 1), View::new(&[x], 1, 1, 1), View::new(&[y], 1, 1, 1), false);
            c[0]
        };
        let half = half::bf16::from_f32;
        for x in [1.0, 1.003_906_3, 1.011_718_8, -3.017_592_7, 1e-30, 65_537.0, 3.4e38] {
            assert_eq!(by(x, 1.0), half(x).to_f32(), "{x}");
            assert_eq!(by(x, x), half(x).to_f32() * half(x).to_f32(), "{x}");
        }
        assert!(by(f32::NAN, 1.0).is_nan() && by(f32::from_bits(0x7fff_ffff), 1.0).is_nan());
        assert_eq!(by(f32::INFINITY, -2.0), f32::NEG_INFINITY);
    }

    #[test]
    fn the_way_without_the_instruction_agrees() {
        let (m, n, k) = (37, 41, 700);
        let stream = Stream::new(5, "bf16");
        let draw =
            |n: usize, from: u64| -> Vec<f32> { (0..n as u64).map(|i| stream.normal(from + i) as f32).collect() };
        let (a, b) = (draw(m * k, 0), draw(k * n, 1 << 20));
        let (a, b) = (View::new(&a, m, k, k), View::new(&b, k, n, n));
        let [mut one, mut other] = [(); 2].map(|()| vec![0f32; m * n]);
        product(ViewMut::new(&mut one, m, n, n), a, b, false);
        rounded(ViewMut::new(&mut other, m, n, n), a, b, false);
        let worst = one.iter().zip(&other).map(|(x, y)| (x - y).abs()).fold(0f32, f32::max);
        assert!(worst < 1e-3, "sums of {k} products differ by {worst}");
    }

    #[test]
    fn bits_do_not_depend_on_threads() {
        let (m, n, k) = (301, 515, 1030);
        let stream = Stream::new(6, "bf16");
        let draw =
            |n: usize, from: u64| -> Vec<f32> { (0..n as u64).map(|i| stream.normal(from + i) as f32).collect() };
        let (a, b) = (draw(m * k, 0), draw(k * n, 1 << 20));
        let run = |threads: usize| {
            let mut c = vec![0f32; m * n];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                product(ViewMut::new(&mut c, m, n, n), View::new(&a, m, k, k), View::new(&b, k, n, n), false);
            });
            c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let one = run(1);
        assert!((2..=4).all(|threads| run(threads) == one));
    }
}
