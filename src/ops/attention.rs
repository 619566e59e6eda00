//! Causal attention with grouped heads (A. Vaswani et al. 2017; J. Ainslie et al. 2023), in tiles as
//! FlashAttention does (T. Dao et al., arXiv:2205.14135): no matrix of time × time exists.
//!
//! For one head, with scale s = 1/√head_dim and L the log-sum-exp of a row of scores:
//! P = exp(s·QKᵀ − L) on and below the diagonal, O = P·V. Backward, with D = Σ dO∘O per row:
//! dP = dO·Vᵀ, dS = P∘(dP − D)·s, dQ = dS·K, dK = dSᵀ·Q, dV = Pᵀ·dO. The forward pass keeps L only;
//! the backward pass computes each tile of P again.

use super::Real;
use super::matmul::{Threads, View, ViewMut, matmul};
use super::parallel::{lane_sum, vectorised};
use super::shared::Shared;
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
        Head { data: &buffer[self.start(batch, head, width)..], width, head_dim: self.head_dim }
    }

    fn start(&self, batch: usize, head: usize, width: usize) -> usize {
        batch * self.time * width + head * self.head_dim
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
    let out = Shared::new(out);
    log_sum_exp.par_chunks_mut(shape.time).enumerate().for_each_init(Scratch::default, |scratch, (i, sums)| {
        let (batch, head) = (i / shape.heads, i % shape.heads);
        let q = shape.head(q, batch, head, shape.width());
        let k = shape.head(k, batch, head / shape.group(), shape.kv_width());
        let v = shape.head(v, batch, head / shape.group(), shape.kv_width());
        let place = Place { buffer: &out, start: shape.start(batch, head, shape.width()), width: shape.width() };
        forward_head([q, k, v], shape, scratch, sums, &place);
    });
}

/// What a thread computes in, kept from one head to the next.
#[derive(Default)]
struct Scratch<T> {
    /// Scores of a tile, then probabilities.
    p: Vec<T>,
    /// Gradients of the scores of a tile.
    ds: Vec<T>,
    /// The output, or the gradient, of one block of queries.
    queries: Vec<T>,
    /// Running maximum and sum of each of its rows.
    state: Vec<(T, T)>,
    /// Σ dO∘O of each of its rows.
    dots: Vec<T>,
    /// Gradients of all keys and values of a head.
    dk: Vec<T>,
    dv: Vec<T>,
}

/// `count` times `value`.
fn refill<T: Clone>(buffer: &mut Vec<T>, count: usize, value: T) {
    buffer.clear();
    buffer.resize(count, value);
}

/// Where a head's rows go in a buffer that all heads share.
struct Place<'a, T> {
    buffer: &'a Shared<'a, T>,
    start: usize,
    width: usize,
}

impl<T: Real> Place<'_, T> {
    /// Copies rows of the head's width to the rows from `first` on.
    fn write(&self, first: usize, rows: &[T], head_dim: usize) {
        for (i, row) in rows.chunks_exact(head_dim).enumerate() {
            // SAFETY: each head writes its own columns, and one thread has the head.
            let to = unsafe { self.buffer.part(self.start + (first + i) * self.width, head_dim) };
            to.copy_from_slice(row);
        }
    }
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

fn forward_head<T: Real>([q, k, v]: [Head<T>; 3], shape: &Shape, s: &mut Scratch<T>, sums: &mut [T], out: &Place<T>) {
    let dim = shape.head_dim;
    s.p.resize(QUERIES * KEYS, T::ZERO);
    for query in (0..shape.time).step_by(QUERIES) {
        let rows = QUERIES.min(shape.time - query);
        refill(&mut s.queries, rows * dim, T::ZERO);
        refill(&mut s.state, rows, (T::from_f64(f64::NEG_INFINITY), T::ZERO));
        for at in tiles(query, shape.time) {
            scores(&mut s.p, q.rows(query, rows), k.rows(at.key, at.keys), at, dim);
            vectorised!(|| {
                for (i, (state, out)) in s.state.iter_mut().zip(s.queries.chunks_exact_mut(dim)).enumerate() {
                    online_softmax(&mut s.p[i * KEYS..i * KEYS + at.keys], state, out);
                }
            });
            let (p, values) = (View::new(&s.p, rows, at.keys, KEYS), v.rows(at.key, at.keys));
            matmul(ViewMut::new(&mut s.queries, rows, dim, dim), p, values, T::ONE, true, Threads::One);
        }
        for ((i, (max, sum)), out) in s.state.iter().enumerate().zip(s.queries.chunks_exact_mut(dim)) {
            sums[query + i] = *max + sum.ln();
            let share = T::ONE / *sum;
            out.iter_mut().for_each(|x| *x *= share);
        }
        out.write(query, &s.queries, dim);
    }
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
    let rows = shape.batch * shape.heads * shape.time;
    assert_eq!(
        (saved.out.len(), saved.log_sum_exp.len(), dout.len()),
        (q.len(), rows, q.len()),
        "lengths of an output"
    );
    let (width, kv_width, group) = (shape.width(), shape.kv_width(), shape.group());
    let (dq, dk, dv) = (Shared::new(dq), Shared::new(dk), Shared::new(dv));
    (0..shape.batch * shape.kv_heads).into_par_iter().for_each_init(Scratch::default, |scratch, i| {
        let (batch, kv_head) = (i / shape.kv_heads, i % shape.kv_heads);
        let keys = [k, v].map(|buffer| shape.head(buffer, batch, kv_head, kv_width));
        refill(&mut scratch.dk, shape.time * shape.head_dim, T::ZERO);
        refill(&mut scratch.dv, shape.time * shape.head_dim, T::ZERO);
        for head in kv_head * group..(kv_head + 1) * group {
            let query = [q, saved.out, dout].map(|buffer| shape.head(buffer, batch, head, width));
            let sums = &saved.log_sum_exp[(batch * shape.heads + head) * shape.time..][..shape.time];
            let place = Place { buffer: &dq, start: shape.start(batch, head, width), width };
            backward_head(query, keys, sums, shape, scratch, &place);
        }
        let start = shape.start(batch, kv_head, kv_width);
        Place { buffer: &dk, start, width: kv_width }.write(0, &scratch.dk, shape.head_dim);
        Place { buffer: &dv, start, width: kv_width }.write(0, &scratch.dv, shape.head_dim);
    });
}

/// Writes one query head's gradient and adds those of its keys and values to `s.dk` and `s.dv`.
fn backward_head<T: Real>(
    [q, out, dout]: [Head<T>; 3],
    [k, v]: [Head<T>; 2],
    sums: &[T],
    shape: &Shape,
    s: &mut Scratch<T>,
    dq: &Place<T>,
) {
    let dim = shape.head_dim;
    let scale = T::from_f64(1.0 / (dim as f64).sqrt());
    s.p.resize(QUERIES * KEYS, T::ZERO);
    s.ds.resize(QUERIES * KEYS, T::ZERO);
    for query in (0..shape.time).step_by(QUERIES) {
        let rows = QUERIES.min(shape.time - query);
        refill(&mut s.queries, rows * dim, T::ZERO);
        refill(&mut s.dots, rows, T::ZERO);
        vectorised!(|| {
            for (i, dot) in s.dots.iter_mut().enumerate() {
                *dot = lane_sum([dout.row(query + i), out.row(query + i)], |[a, b]| a * b);
            }
        });
        let (queries, dout) = (q.rows(query, rows), dout.rows(query, rows));
        for at in tiles(query, shape.time) {
            let (keys, values) = (k.rows(at.key, at.keys), v.rows(at.key, at.keys));
            scores(&mut s.p, queries, keys, at, dim);
            let ds = ViewMut::new(&mut s.ds, rows, at.keys, KEYS);
            matmul(ds, dout, values.transposed(), T::ONE, false, Threads::One);
            vectorised!(|| {
                for (i, dot) in s.dots.iter().enumerate() {
                    let sum = sums[query + i];
                    for (p, ds) in s.p[i * KEYS..][..at.keys].iter_mut().zip(&mut s.ds[i * KEYS..][..at.keys]) {
                        *p = (*p - sum).exp();
                        *ds = *p * (*ds - *dot) * scale;
                    }
                }
            });
            let (p, ds) = (View::new(&s.p, rows, at.keys, KEYS), View::new(&s.ds, rows, at.keys, KEYS));
            let here = at.key * dim..(at.key + at.keys) * dim;
            let add = |to: &mut [T], count, a, b| {
                matmul(ViewMut::new(to, count, dim, dim), a, b, T::ONE, true, Threads::One);
            };
            add(&mut s.dv[here.clone()], at.keys, p.transposed(), dout);
            add(&mut s.dk[here], at.keys, ds.transposed(), queries);
            add(&mut s.queries, rows, ds, keys);
        }
        dq.write(query, &s.queries, dim);
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
    assert_eq!(out.len(), q.len(), "length of an output");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that are all alike make each output the mean of the values so far, whatever the queries are; values that
    /// are all alike leave nothing for queries and keys to learn. Every number of the buffers is overwritten.
    fn means<T: Real>(close: f64) {
        let shape = Shape { batch: 2, time: 2 * QUERIES + 5, heads: 4, kv_heads: 2, head_dim: 3 };
        let rows = shape.batch * shape.time;
        let numbers = |n: usize, of: &dyn Fn(usize) -> f64| -> Vec<T> { (0..n).map(|i| T::from_f64(of(i))).collect() };
        let nothing = |n: usize| numbers(n, &|_| f64::NAN);
        let q = numbers(rows * shape.width(), &|i| (i % 7) as f64 - 3.0);
        let k = numbers(rows * shape.kv_width(), &|_| 0.5);
        let time = |i: usize, width: usize| i / width % shape.time;
        let v = numbers(rows * shape.kv_width(), &|i| (time(i, shape.kv_width()) + i / 3 % 2) as f64);
        let [mut out, mut dq] = [(); 2].map(|()| nothing(q.len()));
        let [mut dk, mut dv] = [(); 2].map(|()| nothing(k.len()));
        let mut log_sum_exp = nothing(shape.batch * shape.heads * shape.time);
        forward(&q, &k, &v, &shape, &mut out, &mut log_sum_exp);
        for (i, x) in out.iter().enumerate() {
            // The mean of 0 … t, and 1 more for the second head of keys and values.
            let expected = time(i, shape.width()) as f64 / 2.0 + (i / 3 % shape.heads / shape.group()) as f64;
            assert!((x.to_f64() - expected).abs() < close * (1.0 + expected), "{i}: {x:?}, {expected}");
        }
        let (ones, dout) = (numbers(v.len(), &|_| 1.0), numbers(q.len(), &|_| 1.0));
        forward(&q, &k, &ones, &shape, &mut out, &mut log_sum_exp);
        let saved = Saved { out: &out, log_sum_exp: &log_sum_exp };
        backward(&q, &k, &ones, saved, &dout, &shape, &mut dq, &mut dk, &mut dv);
        assert!(dq.iter().chain(&dk).all(|x| x.to_f64().abs() < close * 1e2), "nothing to learn");
        for (j, x) in dv.iter().enumerate() {
            let shares = (time(j, shape.kv_width())..shape.time).map(|i| 1.0 / (i + 1) as f64);
            let expected = shape.group() as f64 * shares.sum::<f64>();
            assert!((x.to_f64() - expected).abs() < close * 1e2, "{j}: {x:?}, {expected}");
        }
    }

    #[test]
    fn equal_keys_give_means() {
        means::<f64>(1e-12);
        means::<f32>(1e-5);
    }
}
