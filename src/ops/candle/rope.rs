use super::super::rope_rows::{Pairs, Tables, turn};
use super::{Fused, Number, Op, check_types};
use candle_core::{Result, Tensor, bail};

/// Where a row of a head stands: row i of x belongs to window i / `window` and position
/// i / `heads` % `time`, with `heads` 1 where time is the last dimension but one.
struct Rope {
    pairs: Pairs,
    half: usize,
    time: usize,
    heads: usize,
    /// Rows of x in a window.
    window: usize,
    /// Positions in the tables from one window to the next; 0 where all windows share them.
    stride: usize,
}

impl Rope {
    fn position(&self, row: usize) -> usize {
        row / self.window * self.stride + row / self.heads % self.time
    }

    fn turned<T: Number>(&self, x: &[T], cos: &[T], sin: &[T], back: bool) -> Vec<T> {
        let mut out = x.to_vec();
        turn(&mut out, Tables { cos, sin, half: self.half }, self.pairs, |row| self.position(row), back);
        out
    }

    /// Gradients of the tables: Σ over the rows at a position of dout·∂y/∂cos and of dout·∂y/∂sin.
    fn tables<T: Number>(&self, x: &[T], dout: &[T], positions: usize) -> (Vec<T>, Vec<T>) {
        let (mut dcos, mut dsin) = (vec![T::ZERO; positions], vec![T::ZERO; positions]);
        let width = 2 * self.half;
        for (row, (x, d)) in x.chunks_exact(width).zip(dout.chunks_exact(width)).enumerate() {
            for j in 0..self.half {
                let (first, second) = match self.pairs {
                    Pairs::Halves => (j, j + self.half),
                    Pairs::Interleaved => (2 * j, 2 * j + 1),
                };
                let at = self.position(row) * self.half + j;
                dcos[at] += d[first] * x[first] + d[second] * x[second];
                dsin[at] += d[second] * x[first] - d[first] * x[second];
            }
        }
        (dcos, dsin)
    }
}

impl Fused for Rope {
    const NAME: &'static str = "shikha-rope";
    fn forward<T: Number>(&self, inputs: &[&[T]]) -> Vec<T> {
        self.turned(inputs[0], inputs[1], inputs[2], false)
    }
    fn backward<T: Number>(&self, inputs: &[&[T]], _: &[T], dout: &[T], wanted: &[bool]) -> Vec<Vec<T>> {
        let dx = if wanted[0] { self.turned(dout, inputs[1], inputs[2], true) } else { vec![] };
        if !wanted[1] && !wanted[2] {
            return vec![dx];
        }
        let (dcos, dsin) = self.tables(inputs[0], dout, inputs[1].len());
        vec![dx, dcos, dsin]
    }
}

/// Rotary embedding of `x` `[batch, heads, time, head_dim]` in the half-rotation layout, with `cos` and
/// `sin` `[positions, head_dim/2]` or `[batch, positions, head_dim/2]`, positions ≥ time; takes what
/// `candle_nn::rotary_emb::rope` takes. See [`crate::ops::rope_rows`].
///
/// # Errors
/// When the shapes or dtypes do not fit.
pub fn rope(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    apply("rope", x, cos, sin, Pairs::Halves, false)
}

/// As [`rope`] in the interleaved layout, in place of `candle_nn::rotary_emb::rope_i`.
///
/// # Errors
/// When the shapes or dtypes do not fit.
pub fn rope_interleaved(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    apply("rope_interleaved", x, cos, sin, Pairs::Interleaved, false)
}

/// As [`rope`] of `x` `[batch, time, heads, head_dim]`, in place of `candle_nn::rotary_emb::rope_thd`.
///
/// # Errors
/// When the shapes or dtypes do not fit.
pub fn rope_thd(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    apply("rope_thd", x, cos, sin, Pairs::Halves, true)
}

fn apply(name: &str, x: &Tensor, cos: &Tensor, sin: &Tensor, pairs: Pairs, time_first: bool) -> Result<Tensor> {
    check_types(name, &[x, cos, sin])?;
    let (batch, second, third, head_dim) = x.dims4()?;
    let (time, heads) = if time_first { (second, third) } else { (third, second) };
    let half = head_dim / 2;
    let stride = match *cos.dims() {
        [positions, width] if positions >= time && width == half => Some(0),
        [windows, positions, width] if windows == batch && positions >= time && width == half => Some(positions),
        _ => None,
    };
    let Some(stride) = stride.filter(|_| sin.dims() == cos.dims() && head_dim % 2 == 0 && x.elem_count() > 0) else {
        bail!(
            "{name}: cos {:?} and sin {:?} must be [positions, head_dim/2] for x {:?} of an even head_dim, with a position for each of its {time}",
            cos.dims(),
            sin.dims(),
            x.dims()
        );
    };
    let op = Rope { pairs, half, time, heads: if time_first { heads } else { 1 }, window: time * heads, stride };
    x.contiguous()?.apply_op3(&cos.contiguous()?, &sin.contiguous()?, Op(op))
}
