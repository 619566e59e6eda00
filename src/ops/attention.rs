//! Causal attention with grouped heads (A. Vaswani et al. 2017; J. Ainslie et al. 2023), in tiles as
//! FlashAttention does (T. Dao et al., arXiv:2205.14135): no matrix of time × time exists.
//!
//! For one head, with scale s = 1/√head_dim and L the log-sum-exp of a row of scores:
//! P = exp(s·QKᵀ − L) on and below the diagonal, O = P·V. Backward, with D = Σ dO∘O per row:
//! dP = dO·Vᵀ, dS = P∘(dP − D)·s, dQ = dS·K, dK = dSᵀ·Q, dV = Pᵀ·dO. The forward pass keeps L only;
//! the backward pass computes each tile of P again.

use super::Real;
use super::matmul::{Threads, View, ViewMut, matmul};
use super::parallel::{ROWS, lane_sum, vectorised};
use rayon::prelude::*;

/// Queries of a tile.
const QUERIES: usize = 64;
/// Keys of a tile.
const KEYS: usize = 128;

/// Shape of the heads on a batch. Queries and outputs are `[batch·time, heads·head_dim]`, keys and
/// values `[batch·time, kv_heads·head_dim]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Windows.
    pub batch: usize,
    /// Positions in a window.
    pub time: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
}

impl Shape {
    fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    fn width(&self) -> usize {
        self.heads * self.head_dim
    }

    fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    fn check<T>(&self, q: &[T], k: &[T], v: &[T]) {
        let rows = self.batch * self.time;
        let expected = (rows * self.width(), rows * self.kv_width(), rows * self.kv_width());
        assert_eq!((q.len(), k.len(), v.len()), expected, "lengths of an attention");
        assert!(self.kv_heads > 0 && self.heads.is_multiple_of(self.kv_heads), "kv_heads divides heads");
    }

    /// The rows of one head of one window inside a buffer with rows of `width`.
    fn head<'a, T>(&self, buffer: &'a [T], batch: usize, head: usize, width: usize) -> Head<'a, T> {
        Head { data: &buffer[batch * self.time * width + head * self.head_dim..], width, head_dim: self.head_dim }
    }
}

/// One head's `[time, head_dim]` inside a wider buffer.
#[derive(Clone, Copy)]
struct Head<'a, T> {
    data: &'a [T],
    width: usize,
    head_dim: usize,
}

impl<'a, T> Head<'a, T> {
    fn rows(&self, start: usize, count: usize) -> View<'a, T> {
        View::new(&self.data[start * self.width..], count, self.head_dim, self.width)
    }

    fn row(&self, i: usize) -> &'a [T] {
        &self.data[i * self.width..][..self.head_dim]
    }
}

/// Overwrites `out` and `log_sum_exp` `[batch, heads, time]`.
///
/// # Panics
/// When the lengths do not fit the shape.
pub fn forward<T: Real>(q: &[T], k: &[T], v: &[T], shape: &Shape, out: &mut [T], log_sum_exp: &mut [T]) {
    shape.check(q, k, v);
    assert_eq!(
        (out.len(), log_sum_exp.len()),
        (q.len(), shape.batch * shape.heads * shape.time),
        "lengths of an output"
    );
    let heads: Vec<Vec<T>> = log_sum_exp
        .par_chunks_mut(shape.time)
        .enumerate()
        .map(|(i, sums)| {
            let (batch, head) = (i / shape.heads, i % shape.heads);
            let q = shape.head(q, batch, head, shape.width());
            let k = shape.head(k, batch, head / shape.group(), shape.kv_width());
            let v = shape.head(v, batch, head / shape.group(), shape.kv_width());
            forward_head(q, k, v, shape, sums)
        })
        .collect();
    gather(&heads, out, shape, shape.heads);
}

/// Writes heads [batch·heads][time·head_dim] into rows `[batch·time, heads·head_dim]`.
fn gather<T: Real>(parts: &[Vec<T>], out: &mut [T], shape: &Shape, heads: usize) {
    let (time, dim) = (shape.time, shape.head_dim);
    out.par_chunks_mut(ROWS * heads * dim).enumerate().for_each(|(piece, rows)| {
        for (i, row) in rows.chunks_exact_mut(heads * dim).enumerate() {
            let (batch, t) = ((piece * ROWS + i) / time, (piece * ROWS + i) % time);
            for (head, to) in row.chunks_exact_mut(dim).enumerate() {
                to.copy_from_slice(&parts[batch * heads + head][t * dim..][..dim]);
            }
        }
    });
}

/// Scores of queries `start..start + queries` against keys `first..first + keys`, times the scale,
/// −∞ above the diagonal.
fn scores<T: Real>(tile: &mut [T], q: View<T>, k: View<T>, at: Tile, head_dim: usize) {
    let scale = T::from_f64(1.0 / (head_dim as f64).sqrt());
    matmul(ViewMut::new(tile, at.queries, at.keys, KEYS), q, k.transposed(), scale, false, Threads::One);
    let minus_infinity = T::from_f64(f64::NEG_INFINITY);
    for i in 0..at.queries {
        let visible = (at.query + i + 1).saturating_sub(at.key).min(at.keys);
        tile[i * KEYS + visible..i * KEYS + at.keys].fill(minus_infinity);
    }
}

/// Where a tile lies: its first query and key, and how many of each.
#[derive(Clone, Copy)]
struct Tile {
    query: usize,
    key: usize,
    queries: usize,
    keys: usize,
}

/// The tiles on and below the diagonal, for one block of queries.
fn tiles(query: usize, time: usize) -> impl Iterator<Item = Tile> {
    let queries = QUERIES.min(time - query);
    let end = query + queries;
    (0..end).step_by(KEYS).map(move |key| Tile { query, key, queries, keys: KEYS.min(end - key) })
}

fn forward_head<T: Real>(q: Head<T>, k: Head<T>, v: Head<T>, shape: &Shape, sums: &mut [T]) -> Vec<T> {
    let dim = shape.head_dim;
    let mut out = vec![T::ZERO; shape.time * dim];
    let mut tile = vec![T::ZERO; QUERIES * KEYS];
    for (block, out) in out.chunks_mut(QUERIES * dim).enumerate() {
        let query = block * QUERIES;
        let mut state = vec![(T::from_f64(f64::NEG_INFINITY), T::ZERO); out.len() / dim]; // running maximum and sum
        for at in tiles(query, shape.time) {
            scores(&mut tile, q.rows(at.query, at.queries), k.rows(at.key, at.keys), at, dim);
            vectorised!(|| {
                for (i, (state, out)) in state.iter_mut().zip(out.chunks_exact_mut(dim)).enumerate() {
                    online_softmax(&mut tile[i * KEYS..i * KEYS + at.keys], state, out);
                }
            });
            let probabilities = View::new(&tile, at.queries, at.keys, KEYS);
            let values = v.rows(at.key, at.keys);
            matmul(ViewMut::new(out, at.queries, dim, dim), probabilities, values, T::ONE, true, Threads::One);
        }
        for ((i, (max, sum)), out) in state.iter().enumerate().zip(out.chunks_exact_mut(dim)) {
            sums[query + i] = *max + sum.ln();
            let share = T::ONE / *sum;
            out.iter_mut().for_each(|x| *x *= share);
        }
    }
    out
}

/// Turns a row of scores into exp(score − new maximum), and rescales what was summed before.
#[inline(always)]
fn online_softmax<T: Real>(row: &mut [T], state: &mut (T, T), out: &mut [T]) {
    let (old, sum) = *state;
    let max = row.iter().fold(old, |best, x| best.larger(*x));
    row.iter_mut().for_each(|x| *x = (*x - max).exp());
    let shrink = (old - max).exp();
    if shrink != T::ONE {
        out.iter_mut().for_each(|x| *x *= shrink);
    }
    *state = (max, sum * shrink + lane_sum([row], |[x]| x));
}

/// What the forward pass left for the backward pass.
#[derive(Clone, Copy)]
pub struct Saved<'a, T> {
    /// The output, `[batch·time, heads·head_dim]`.
    pub out: &'a [T],
    /// Log-sum-exp of the scores, `[batch, heads, time]`.
    pub log_sum_exp: &'a [T],
}

/// Overwrites `dq`, `dk` and `dv` with the gradients, given `dout` of the shape of the output.
///
/// # Panics
/// When the lengths do not fit the shape.
#[allow(clippy::too_many_arguments, reason = "three inputs and their three gradients are the operation")]
pub fn backward<T: Real>(
    q: &[T],
    k: &[T],
    v: &[T],
    saved: Saved<T>,
    dout: &[T],
    shape: &Shape,
    dq: &mut [T],
    dk: &mut [T],
    dv: &mut [T],
) {
    shape.check(q, k, v);
    shape.check(dq, dk, dv);
    assert_eq!((saved.out.len(), dout.len()), (q.len(), q.len()), "lengths of an output");
    let (width, kv_width, group) = (shape.width(), shape.kv_width(), shape.group());
    let parts: Vec<[Vec<T>; 3]> = (0..shape.batch * shape.kv_heads)
        .into_par_iter()
        .map(|i| {
            let (batch, kv_head) = (i / shape.kv_heads, i % shape.kv_heads);
            let keys = [shape.head(k, batch, kv_head, kv_width), shape.head(v, batch, kv_head, kv_width)];
            let mut gradients = [group, 1, 1].map(|heads| vec![T::ZERO; heads * shape.time * shape.head_dim]);
            for member in 0..group {
                let head = kv_head * group + member;
                let query = [q, saved.out, dout].map(|buffer| shape.head(buffer, batch, head, width));
                let sums = &saved.log_sum_exp[(batch * shape.heads + head) * shape.time..][..shape.time];
                backward_head(query, keys, sums, shape, member, &mut gradients);
            }
            gradients
        })
        .collect();
    let mut split = [Vec::with_capacity(shape.batch * shape.heads), Vec::new(), Vec::new()];
    for [query, key, value] in parts {
        split[0].extend(query.chunks_exact(shape.time * shape.head_dim).map(<[T]>::to_vec));
        split[1].push(key);
        split[2].push(value);
    }
    gather(&split[0], dq, shape, shape.heads);
    gather(&split[1], dk, shape, shape.kv_heads);
    gather(&split[2], dv, shape, shape.kv_heads);
}

/// Adds one query head's gradients to its own rows of `gradients[0]` and to the shared keys' and values'.
fn backward_head<T: Real>(
    [q, out, dout]: [Head<T>; 3],
    [k, v]: [Head<T>; 2],
    sums: &[T],
    shape: &Shape,
    member: usize,
    [dq, dk, dv]: &mut [Vec<T>; 3],
) {
    let (time, dim) = (shape.time, shape.head_dim);
    let dq = &mut dq[member * time * dim..][..time * dim];
    let scale = T::from_f64(1.0 / (dim as f64).sqrt());
    let (mut p, mut ds) = (vec![T::ZERO; QUERIES * KEYS], vec![T::ZERO; QUERIES * KEYS]);
    let dots: Vec<T> = (0..time).map(|i| lane_sum([dout.row(i), out.row(i)], |[a, b]| a * b)).collect();
    for query in (0..time).step_by(QUERIES) {
        for at in tiles(query, time) {
            let (rows, columns) = (at.queries, at.keys);
            let (queries, keys) = (q.rows(at.query, rows), k.rows(at.key, columns));
            scores(&mut p, queries, keys, at, dim);
            let dout = dout.rows(at.query, rows);
            let values = v.rows(at.key, columns).transposed();
            matmul(ViewMut::new(&mut ds, rows, columns, KEYS), dout, values, T::ONE, false, Threads::One);
            vectorised!(|| {
                for i in 0..rows {
                    let (sum, dot) = (sums[at.query + i], dots[at.query + i]);
                    for (p, ds) in p[i * KEYS..][..columns].iter_mut().zip(&mut ds[i * KEYS..][..columns]) {
                        *p = (*p - sum).exp();
                        *ds = *p * (*ds - dot) * scale;
                    }
                }
            });
            let (p, ds) = (View::new(&p, rows, columns, KEYS), View::new(&ds, rows, columns, KEYS));
            let slot = |start: usize, count: usize| start * dim..(start + count) * dim;
            let add = |to: &mut [T], count, a, b| {
                matmul(ViewMut::new(to, count, dim, dim), a, b, T::ONE, true, Threads::One);
            };
            add(&mut dv[slot(at.key, columns)], columns, p.transposed(), dout);
            add(&mut dk[slot(at.key, columns)], columns, ds.transposed(), queries);
            add(&mut dq[slot(at.query, rows)], rows, ds, keys);
        }
    }
}

/// One new position against everything before it: `q` `[heads·head_dim]` against `k` and `v`
/// `[length, kv_heads·head_dim]` of one window, into `out` `[heads·head_dim]`.
///
/// # Panics
/// When the lengths do not fit the shape (whose `time` is the length of the cache).
pub fn decode<T: Real>(q: &[T], k: &[T], v: &[T], shape: &Shape, out: &mut [T]) {
    let (dim, length) = (shape.head_dim, shape.time);
    assert_eq!((q.len(), k.len(), v.len()), (shape.width(), length * shape.kv_width(), k.len()), "lengths of a cache");
    let scale = T::from_f64(1.0 / (dim as f64).sqrt());
    out.par_chunks_exact_mut(dim).enumerate().for_each(|(head, out)| {
        let q = &q[head * dim..][..dim];
        let k = shape.head(k, 0, head / shape.group(), shape.kv_width());
        let v = shape.head(v, 0, head / shape.group(), shape.kv_width());
        let mut row: Vec<T> = (0..length).map(|i| lane_sum([q, k.row(i)], |[q, k]| q * k) * scale).collect();
        out.fill(T::ZERO);
        let mut state = (T::from_f64(f64::NEG_INFINITY), T::ZERO);
        online_softmax(&mut row, &mut state, out);
        for (i, p) in row.iter().enumerate() {
            out.iter_mut().zip(v.row(i)).for_each(|(sum, x)| *sum += *p * *x);
        }
        out.iter_mut().for_each(|x| *x = *x / state.1);
    });
}
