//! Launches of attention.

use super::{Argument, Element, Launch, Place, THREADS, WARP, launch};
use crate::ops::attention::Shape;
use bytemuck::{Pod, Zeroable};

/// Rows of a tile and threads of a block; as in `tile.cuh`.
const TILE: usize = 64;
const TILE_THREADS: u32 = 128;
/// Widths of a head that kernels are made for; a narrower head is filled up with zeros.
const WIDTHS: [usize; 3] = [32, 64, WIDEST_HEAD];
/// The widest of them.
pub const WIDEST_HEAD: usize = 128;

/// The shape as the backward kernels take it; `Shape` of `attention_backward.cu`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Heads {
    time: u32,
    heads: u32,
    kv_heads: u32,
    width: u32,
}

/// What both passes read.
#[derive(Debug, Clone, Copy)]
pub struct Attention<T> {
    /// Queries `[windows·time, heads·width]`.
    pub q: Place<T>,
    /// Keys `[windows·time, kv_heads·width]`.
    pub k: Place<T>,
    /// Values, as the keys.
    pub v: Place<T>,
    /// Windows, positions, heads.
    pub shape: Shape,
}

impl<T: Element> Attention<T> {
    fn check(&self) {
        let Shape { batch, time, heads, kv_heads, head_dim } = self.shape;
        let (q, kv) = (batch * time * heads * head_dim, batch * time * kv_heads * head_dim);
        assert_eq!((self.q.length, self.k.length, self.v.length), (q, kv, kv), "lengths of an attention");
        assert!(head_dim <= WIDEST_HEAD, "a head is at most {WIDEST_HEAD} wide");
    }

    fn scale(&self) -> f32 {
        (1.0 / (self.shape.head_dim as f64).sqrt()) as f32
    }

    /// Pairs of a query and a key that it sees, over all windows and heads.
    fn pairs(&self) -> u64 {
        let Shape { batch, time, heads, .. } = self.shape;
        (batch * heads * time * (time + 1) / 2) as u64
    }

    fn heads(&self) -> Heads {
        let Shape { time, heads, kv_heads, head_dim, .. } = self.shape;
        Heads { time: time as u32, heads: heads as u32, kv_heads: kv_heads as u32, width: head_dim as u32 }
    }

    /// A launch with a block for every tile of 64 rows of `heads` heads, and two tiles shared.
    fn tiled(&self, file: &'static str, kernel: &str, heads: usize, arguments: &[Argument]) -> Launch {
        let width = WIDTHS.into_iter().find(|w| self.shape.head_dim <= *w).unwrap_or(WIDTHS[2]);
        let blocks = self.shape.batch * heads * self.shape.time.div_ceil(TILE);
        let launch = Launch::new(file, format!("attention_{kernel}_{}_{width}", T::NAME), blocks, arguments);
        let tile = TILE * (width * size_of::<T>() + 16);
        let flops = self.pairs() * 2 * self.shape.head_dim as u64;
        Launch { threads: TILE_THREADS, flops, shared: (2 * tile + 2 * TILE * size_of::<f32>()) as u32, ..launch }
    }
}

/// A launch with so many products of every pair.
fn times(products: u64, launch: Launch) -> Launch {
    Launch { flops: products * launch.flops, ..launch }
}

/// Overwrites `out` and `log_sum_exp` `[windows, heads, time]`.
///
/// # Panics
/// When the lengths do not fit the shape.
pub fn forward<T: Element>(a: Attention<T>, out: Place<T>, log_sum_exp: Place<f32>) -> Launch {
    a.check();
    let Heads { time, heads, kv_heads, width } = a.heads();
    let sums = a.shape.batch * a.shape.heads * a.shape.time;
    assert_eq!((out.length, log_sum_exp.length), (a.q.length, sums), "lengths of an output");
    let arguments = [
        a.q.into(),
        a.k.into(),
        a.v.into(),
        out.into(),
        log_sum_exp.into(),
        time.into(),
        heads.into(),
        kv_heads.into(),
        width.into(),
        a.scale().into(),
    ];
    times(2, a.tiled("attention_forward", "forward", a.shape.heads, &arguments))
}

/// Overwrites `[dq, dk, dv]`, given what the forward pass left and the gradient of its output; `delta` is
/// room for a number each row of a head. Three launches, to run in order.
///
/// # Panics
/// When the lengths do not fit the shape.
pub fn backward<T: Element>(
    a: Attention<T>,
    [out, dout]: [Place<T>; 2],
    [log_sum_exp, delta]: [Place<f32>; 2],
    [dq, dk, dv]: [Place<T>; 3],
) -> [Launch; 3] {
    a.check();
    let sums = a.shape.batch * a.shape.heads * a.shape.time;
    assert_eq!((out.length, dout.length, dq.length), (a.q.length, a.q.length, a.q.length), "lengths of an output");
    assert_eq!((dk.length, dv.length), (a.k.length, a.k.length), "lengths of gradients");
    assert_eq!((log_sum_exp.length, delta.length), (sums, sums), "lengths of what is kept");
    let Heads { time, heads, width, .. } = a.heads();
    let rows = (a.shape.batch * a.shape.time) as u32;
    let blocks = sums.div_ceil((THREADS / WARP) as usize);
    let kernel = format!("attention_dots_{}", T::NAME);
    let dots = launch!("attention_backward", kernel, blocks, out, dout, delta, rows, time, heads, width);
    let read: [Argument; 6] = [a.q.into(), a.k.into(), a.v.into(), dout.into(), log_sum_exp.into(), delta.into()];
    let end: [Argument; 2] = [a.heads().into(), a.scale().into()];
    let queries = [&read[..], &[dq.into()], &end].concat();
    let keys = [&read[..], &[dk.into(), dv.into()], &end].concat();
    [
        dots,
        times(3, a.tiled("attention_backward", "queries", a.shape.heads, &queries)),
        times(4, a.tiled("attention_backward", "keys", a.shape.kv_heads, &keys)),
    ]
}
