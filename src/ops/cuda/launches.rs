//! Launches of the row-wise and element-wise kernels. A wrong length is a mistake in the caller.

use super::{Element, Launch, Place, THREADS, WARP, launch};
use bytemuck::{Pod, Zeroable};

/// Most blocks that share the rows of a norm's backward pass.
const PARTS: usize = 1024;
/// Shared memory of a sum over a block: a number of 8 bytes a warp.
const ROOM: u32 = 8 * WARP;
/// Numbers of a stretch of the global norm; `STRETCH` of `norm.cu`.
const STRETCH: usize = 1 << 16;

/// A launch with shared memory for the sums of a block.
fn with_room(launch: Launch) -> Launch {
    Launch { shared: ROOM, ..launch }
}

/// `y` = RMSNorm(`x`) and the inverse root mean square of each row.
pub fn rms_norm_forward<T: Element>(
    x: Place<T>,
    gain: Place<T>,
    epsilon: f32,
    y: Place<T>,
    inverse: Place<f32>,
) -> Launch {
    let (rows, width) = (inverse.length, gain.length);
    assert_eq!((x.length, y.length), (rows * width, rows * width), "lengths of a norm");
    let kernel = format!("rms_norm_forward_{}", T::NAME);
    let blocks = rows.div_ceil((THREADS / WARP) as usize);
    launch!("rms_norm", kernel, blocks, x, gain, y, inverse, rows as u32, width as u32, epsilon)
}

/// Numbers of room that [`rms_norm_backward`] needs for its shares.
pub fn rms_norm_shares(rows: usize, width: usize) -> usize {
    rows.min(PARTS) * width
}

/// Adds the gradients to `dx` and `dgain`; two launches, to run in order.
pub fn rms_norm_backward<T: Element>(
    [x, gain, dy, dx]: [Place<T>; 4],
    [inverse, shares, dgain]: [Place<f32>; 3],
) -> [Launch; 2] {
    let (rows, width) = (inverse.length, gain.length);
    assert_eq!((x.length, dy.length, dx.length), (rows * width, rows * width, rows * width), "lengths of a norm");
    assert_eq!((shares.length, dgain.length), (rms_norm_shares(rows, width), width), "lengths of gradients");
    let parts = rows.min(PARTS);
    let kernel = format!("rms_norm_backward_{}", T::NAME);
    let (rows, columns) = (rows as u32, width as u32);
    let mut first = launch!("rms_norm", kernel, parts, x, gain, inverse, dy, dx, shares, rows, columns);
    first.shared = 4 * (WARP + columns);
    let first = first.changing(dx);
    let blocks = width.div_ceil(THREADS as usize);
    let gain = launch!("rms_norm", "rms_norm_gain".to_owned(), blocks, shares, dgain, parts as u32, columns);
    [first, gain.changing(dgain)]
}

/// Turns `x` `[rows, heads·2·half]` in place by tables `[positions, half]`, or back.
pub fn rope<T: Element>(x: Place<T>, tables: [Place<f32>; 2], at: Positions, half: usize, back: bool) -> Launch {
    let Positions { start, time, heads } = at;
    assert!(x.length.is_multiple_of(heads * 2 * half), "length of a rotation");
    assert!(tables.iter().all(|table| table.length >= (start + time) * half), "positions of a rotation");
    let pairs = x.length / 2;
    assert!(u32::try_from(pairs).is_ok(), "pairs of a rotation fit 32 bits");
    let blocks = pairs.div_ceil(THREADS as usize);
    let [cosines, sines] = tables;
    let sign = if back { -1.0f32 } else { 1.0 };
    let kernel = format!("rope_{}", T::NAME);
    let (pairs, start, time) = (pairs as u32, start as u32, time as u32);
    launch!("rope", kernel, blocks, x, cosines, sines, pairs, start, time, heads as u32, half as u32, sign).changing(x)
}

/// Where rows stand: row i at `start + i % time`, with so many heads.
#[derive(Debug, Clone, Copy)]
pub struct Positions {
    /// The first position.
    pub start: usize,
    /// Positions of a window.
    pub time: usize,
    /// Heads of a row.
    pub heads: usize,
}

fn packets<T>(count: usize) -> usize {
    count.div_ceil(THREADS as usize * 16 / size_of::<T>())
}

/// `out` = silu(`gate`)·`up`.
pub fn swiglu_forward<T: Element>(gate: Place<T>, up: Place<T>, out: Place<T>) -> Launch {
    let count = out.length;
    assert_eq!((gate.length, up.length), (count, count), "lengths of a gate");
    launch!("swiglu", format!("swiglu_forward_{}", T::NAME), packets::<T>(count), gate, up, out, count as u64)
}

/// Overwrites `dgate` and `dup`.
pub fn swiglu_backward<T: Element>(
    gate: Place<T>,
    up: Place<T>,
    dout: Place<T>,
    [dgate, dup]: [Place<T>; 2],
) -> Launch {
    let count = dout.length;
    assert!([gate, up, dgate, dup].iter().all(|x| x.length == count), "lengths of a gate");
    let kernel = format!("swiglu_backward_{}", T::NAME);
    launch!("swiglu", kernel, packets::<T>(count), gate, up, dout, dgate, dup, count as u64)
}

/// Loss of each row of logits in nats; `scale` times its gradient to `gradient`, which may be the logits'
/// own place, or [`Place::none`].
pub fn cross_entropy<L: Element, G: Element>(
    logits: Place<L>,
    targets: Place<u32>,
    losses: Place<f32>,
    gradient: Place<G>,
    scale: f32,
) -> Launch {
    let (rows, vocabulary) = (targets.length, logits.length / targets.length.max(1));
    assert_eq!((logits.length, losses.length), (rows * vocabulary, rows), "lengths of a loss");
    assert!(gradient.is_none_or(logits.length), "length of a loss' gradient");
    let name = if L::NAME == G::NAME { L::NAME.to_owned() } else { format!("{}_{}", L::NAME, G::NAME) };
    let kernel = format!("cross_entropy_{name}");
    with_room(launch!("cross_entropy", kernel, rows, logits, targets, losses, gradient, vocabulary as u32, scale))
}

/// Adds Σ `losses` to the one number at `total`.
pub fn cross_entropy_total(losses: Place<f32>, total: Place<f64>) -> Launch {
    let kernel = "cross_entropy_total".to_owned();
    with_room(launch!("cross_entropy", kernel, 1, losses, total, losses.length as u32).changing(total))
}

/// Sums of squares that [`norm`] needs room for.
pub fn norm_stretches(count: usize) -> usize {
    count.div_ceil(STRETCH)
}

/// The global norm of `gradient` and what follows from it, to `step`; two launches, to run in order.
pub fn norm<G: Element>(
    gradient: Place<G>,
    partial: Place<f64>,
    step: Place<Step>,
    limit: f64,
    [beta1, beta2]: [f64; 2],
) -> [Launch; 2] {
    let stretches = norm_stretches(gradient.length);
    assert_eq!(partial.length, stretches, "length of the sums of a norm");
    let kernel = format!("norm_partial_{}", G::NAME);
    let first = launch!("norm", kernel, stretches, gradient, partial, gradient.length as u64);
    let finish = launch!("norm", "norm_finish".to_owned(), 1, partial, stretches as u32, step, limit, beta1, beta2);
    // Of the step only the steps taken are read before they are written.
    let finish = Launch { bytes: finish.bytes + size_of::<u64>() as u64, ..finish };
    [with_room(first), with_room(finish)]
}

/// What the optimizer must know of a step; `Step` of `step.cuh`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Step {
    /// Global norm of the gradient, before clipping.
    pub norm: f64,
    /// Steps taken, this one included when it moves.
    pub taken: u64,
    /// Factor on the gradient.
    pub gradient_scale: f32,
    /// 1/(1 − β₁ᵗ).
    pub first_correction: f32,
    /// 1/(1 − β₂ᵗ).
    pub second_correction: f32,
    /// 1, or 0 when the gradient is not finite and nothing moves.
    pub moves: f32,
}

/// Constants of the optimizer; `Settings` of `adamw.cu`.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Settings {
    /// η.
    pub rate: f32,
    /// 1 − η·λ.
    pub keep: f32,
    /// β₁ and 1 − β₁.
    pub beta1: [f32; 2],
    /// β₂ and 1 − β₂.
    pub beta2: [f32; 2],
    /// ε.
    pub epsilon: f32,
}

/// Moves `parameter` by one step; `copy` gets it in bf16, unless it is [`Place::none`].
pub fn adamw<G: Element>(
    [parameter, first, second]: [Place<f32>; 3],
    gradient: Place<G>,
    copy: Place<half::bf16>,
    step: Place<Step>,
    settings: Settings,
) -> Launch {
    let count = parameter.length;
    let lengths = (gradient.length, first.length, second.length);
    assert_eq!(lengths, (count, count, count), "lengths of an optimizer step");
    assert!(copy.is_none_or(count), "length of a copy");
    let (kernel, blocks) = (format!("adamw_{}", G::NAME), packets::<f32>(count));
    let launch =
        launch!("adamw", kernel, blocks, parameter, gradient, first, second, copy, count as u64, step, settings);
    // Norm and steps taken are not read.
    let launch = Launch { bytes: launch.bytes - (size_of::<f64>() + size_of::<u64>()) as u64, ..launch };
    launch.changing(parameter).changing(first).changing(second)
}
