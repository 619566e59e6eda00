//! Matrix products of numbers rounded to bf16, summed in f32, through `AVX512-BF16` where the CPU has it.
//!
//! Blocks of both matrices are rounded and packed into panels that stay in the caches (K. Goto,
//! R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34, 2008); tiles of
//! the result are shared out to the threads. Every element is one sum over k in a fixed order, so the
//! bits do not depend on the threads. The instruction takes subnormal numbers as 0. Without it, the
//! rounded numbers are multiplied in f32: the same up to the rounding of the sums.

mod kernel;
mod pack;

use super::shared::Shared;
use super::matmul::{Threads, View, ViewMut, matmul};
use kernel::Target;
use pack::{COLUMNS, ROWS};
use rayon::prelude::*;
use std::cell::Cell;

/// Numbers of k in a block.
const DEPTH: usize = 512;
/// Rows of a, or columns of b, that are packed at a time.
const EXTENT: usize = 2304;
/// Panels of rows and of columns in one thread's piece of work.
const PIECE: [usize; 2] = [8, 8];

/// Whether this machine multiplies bf16 numbers itself.
pub fn available() -> bool {
    kernel::available()
}

/// 16 pairs that lie in one cache line, so that no register is loaded from two.
#[derive(Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
struct CacheLine([u32; 16]);

thread_local! {
    /// Room for the packed blocks, kept from one product to the next.
    static ROOM: Cell<[Vec<CacheLine>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
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
    let mut room = ROOM.take();
    let [row_room, column_room] = &mut room;
    let out = Out::new(c);
    let columns = b.transposed();
    for depth in (0..k).step_by(DEPTH) {
        let stretch = depth..k.min(depth + DEPTH);
        for row in (0..m).step_by(EXTENT) {
            let rows = Packed::<ROWS>::new(a, row..m.min(row + EXTENT), &stretch, row_room);
            for column in (0..n).step_by(EXTENT) {
                let columns = Packed::<COLUMNS>::new(columns, column..n.min(column + EXTENT), &stretch, column_room);
                block(&out, &rows, &columns, accumulate || depth > 0);
            }
        }
    }
    ROOM.set(room);
}

/// The same without the instruction.
fn rounded(c: ViewMut<f32>, a: View<f32>, b: View<f32>, accumulate: bool) {
    let round = |view: View<f32>| -> Vec<f32> {
        view.data().par_iter().map(|x| f32::from_bits(pack::round(*x) << 16)).collect()
    };
    let (a_rounded, b_rounded) = (round(a), round(b));
    matmul(c, a.of(&a_rounded), b.of(&b_rounded), 1.0, accumulate, Threads::All);
}

/// Lines of a matrix, packed into panels.
struct Packed<'a, const LINES: usize> {
    panels: &'a [u32],
    /// Numbers of a panel.
    size: usize,
    lines: std::ops::Range<usize>,
}

impl<'a, const LINES: usize> Packed<'a, LINES> {
    fn new(
        matrix: View<f32>,
        lines: std::ops::Range<usize>,
        k: &std::ops::Range<usize>,
        room: &'a mut Vec<CacheLine>,
    ) -> Self {
        let size = k.len().div_ceil(2) * LINES;
        let panels = lines.len().div_ceil(LINES);
        let lines_of_room = (panels * size).div_ceil(16);
        if room.len() < lines_of_room {
            room.resize(lines_of_room, CacheLine([0; 16]));
        }
        let room = &mut bytemuck::cast_slice_mut(room)[..panels * size];
        room.par_chunks_exact_mut(size).enumerate().with_min_len(4).for_each(|(i, panel)| {
            pack::panel::<LINES>(matrix, lines.start + i * LINES, k.clone(), panel);
        });
        Packed { panels: room, size, lines }
    }

    fn count(&self) -> usize {
        self.lines.len().div_ceil(LINES)
    }

    /// A panel, its first line and how many of its lines are the matrix's.
    fn panel(&self, i: usize) -> (&[u32], usize, usize) {
        let panel = &self.panels[i * self.size..][..self.size];
        (panel, self.lines.start + i * LINES, LINES.min(self.lines.len() - i * LINES))
    }
}

/// The product of a packed block of rows and one of columns.
fn block(out: &Out, rows: &Packed<ROWS>, columns: &Packed<COLUMNS>, accumulate: bool) {
    let pieces = [rows.count().div_ceil(PIECE[0]), columns.count().div_ceil(PIECE[1])];
    (0..pieces[0] * pieces[1]).into_par_iter().for_each(|piece| {
        let (down, across) = (piece % pieces[0] * PIECE[0], piece / pieces[0] * PIECE[1]);
        for j in across..columns.count().min(across + PIECE[1]) {
            let (b, column, width) = columns.panel(j);
            for i in down..rows.count().min(down + PIECE[0]) {
                let (a, row, height) = rows.panel(i);
                let target = out.target([row, height], [column, width], accumulate);
                // SAFETY: `product` asked whether the instruction is there, and no other piece has this tile.
                unsafe { kernel::tile(a, b, target) };
            }
        }
    });
}

/// The result, whose tiles the threads write side by side.
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

    /// The place of a tile, each side given by its start and length.
    fn target(&self, [row, rows]: [usize; 2], [column, columns]: [usize; 2], accumulate: bool) -> Target {
        assert!(row + rows <= self.shape[0] && column + columns <= self.shape[1], "a tile lies inside the result");
        let data = self.data.place(row * self.stride + column);
        Target { data, stride: self.stride, rows, columns, accumulate }
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
    fn blocks_of_both_matrices_meet() {
        let (m, n, k) = (EXTENT + 13, EXTENT + 33, 3);
        let (a, b) = (whole("a", m * k), whole("b", k * n));
        let mut c = vec![f32::NAN; m * n];
        product(ViewMut::new(&mut c, m, n, n), View::new(&a, m, k, k), View::new(&b, k, n, n), false);
        let expected = |i: usize, j: usize| -> f32 { (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum() };
        assert!((0..m * n).all(|at| c[at] == expected(at / n, at % n)));
    }

    #[test]
    fn factors_are_rounded_to_nearest_even_and_nothing_else_is() {
        let by = |x: f32, y: f32| {
            let mut c = [0f32];
            product(ViewMut::new(&mut c, 1, 1, 1), View::new(&[x], 1, 1, 1), View::new(&[y], 1, 1, 1), false);
            c[0]
        };
        let half = half::bf16::from_f32;
        for x in [1.0, 1.003_906_3, 1.011_718_8, -3.141_592_7, 1e-30, 65_537.0, 3.4e38] {
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
        let draw = |n: usize, from: u64| -> Vec<f32> { (0..n as u64).map(|i| stream.normal(from + i) as f32).collect() };
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
        let draw = |n: usize, from: u64| -> Vec<f32> { (0..n as u64).map(|i| stream.normal(from + i) as f32).collect() };
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
