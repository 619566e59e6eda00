//! The CUDA kernels, run on the CPU: each against the CPU op in f64, with threads in three orders that must
//! give the same bits, and with faults planted in their source that must be seen.

#[path = "cuda/host.rs"]
mod host;

use half::bf16;
use host::{Host, compiler};
use shikha::ops::cuda::{self, Attention, Element, Launch, Place, Positions};
use shikha::ops::{IGNORE, adamw, attention, embedding, rms_norm, rope, swiglu};
use shikha::rng::Stream;

/// Numbers before and behind a buffer that no kernel may touch.
const GUARD: usize = 64;

/// A number type of kernels, and how far a result may be from the exact one: ‖a − b‖ / ‖b‖.
trait Number: Element + PartialEq {
    const TOLERANCE: f64;
    fn of(x: f64) -> Self;
    fn exact(self) -> f64;
}

impl Number for f32 {
    const TOLERANCE: f64 = 1e-5;
    fn of(x: f64) -> Self {
        x as f32
    }
    fn exact(self) -> f64 {
        self.into()
    }
}

impl Number for bf16 {
    /// One rounding is at most 2⁻⁸; sums of rounded probabilities and a second rounding come to less than twice that.
    const TOLERANCE: f64 = 6e-3;
    fn of(x: f64) -> Self {
        bf16::from_f64(x)
    }
    fn exact(self) -> f64 {
        self.into()
    }
}

/// Numbers that a kernel reads or writes, guarded on both sides.
struct Buffer<T>(Vec<T>);

impl<T: Number> Buffer<T> {
    fn new(values: &[f64]) -> Self {
        let guard = || (0..GUARD).map(|i| T::of(1000.0 + i as f64));
        Buffer(guard().chain(values.iter().map(|x| T::of(*x))).chain(guard()).collect())
    }

    fn random(name: &str, count: usize) -> Self {
        let stream = Stream::new(5, name);
        Self::new(&(0..count as u64).map(|i| stream.normal(i)).collect::<Vec<_>>())
    }

    /// Not a number everywhere: what a kernel overwrites.
    fn empty(count: usize) -> Self {
        Self::new(&vec![f64::NAN; count])
    }

    fn place(&mut self) -> Place<T> {
        let length = self.0.len() - 2 * GUARD;
        Place::new(self.0[GUARD..].as_mut_ptr() as u64, length)
    }

    fn values(&self) -> Vec<f64> {
        let clean = Self::new(&[]);
        let end = self.0.len() - GUARD;
        assert!(self.0[..GUARD] == clean.0[..GUARD] && self.0[end..] == clean.0[GUARD..], "a kernel wrote beyond");
        self.0[GUARD..end].iter().map(|x| x.exact()).collect()
    }
}

fn ids(values: &mut [u32]) -> Place<u32> {
    Place::new(values.as_mut_ptr() as u64, values.len())
}

/// Results of a kernel beside the exact ones.
type Results = Vec<(Vec<f64>, Vec<f64>)>;

/// Runs launches one after the other, threads in one order.
struct Runner<'a> {
    host: &'a Host,
    order: u32,
}

impl Runner<'_> {
    fn run(&self, launches: impl IntoIterator<Item = Launch>) -> Result<(), String> {
        launches.into_iter().try_for_each(|launch| self.host.run(&launch, self.order))
    }
}

/// Whether the results are right, and the same to the bit in every order of threads.
fn judge(host: &Host, tolerance: f64, op: impl Fn(&Runner) -> Result<Results, String>) -> Result<(), String> {
    let mut first: Option<Results> = None;
    for order in [0, 1, 7] {
        let results = op(&Runner { host, order })?;
        for (i, (got, want)) in results.iter().enumerate() {
            assert_eq!(got.len(), want.len());
            let length = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
            let error = length(&mut got.iter().zip(want).map(|(a, b)| a - b));
            let size = length(&mut want.iter().copied()).max(1e-3);
            if error.is_nan() || error > tolerance * size {
                return Err(format!("result {i} is off by {:.2e} in order {order}", error / size));
            }
        }
        let bits = |r: &Results| r.iter().flat_map(|(got, _)| got.iter().map(|x| x.to_bits())).collect::<Vec<_>>();
        if first.as_ref().is_some_and(|first| bits(first) != bits(&results)) {
            return Err(format!("order {order} gives other bits"));
        }
        first.get_or_insert(results);
    }
    Ok(())
}

fn norm_op<T: Number>(runner: &Runner, rows: usize, width: usize) -> Result<Results, String> {
    let [mut x, mut dy, mut dx] = ["x", "dy", "dx"].map(|name| Buffer::<T>::random(name, rows * width));
    let (mut gain, mut y) = (Buffer::<T>::random("gain", width), Buffer::<T>::empty(rows * width));
    let mut inverse = Buffer::<f32>::empty(rows);
    let mut shares = Buffer::<f32>::empty(cuda::rms_norm_shares(rows, width));
    let mut dgain = Buffer::<f32>::random("dgain", width);
    let (mut want_y, mut want_inverse) = (vec![0.0; rows * width], vec![0.0; rows]);
    let (mut want_dx, mut want_dgain) = (dx.values(), dgain.values());
    rms_norm::forward(&x.values(), &gain.values(), f64::from(1e-5f32), &mut want_y, &mut want_inverse);
    rms_norm::backward(&x.values(), &gain.values(), &want_inverse, &dy.values(), &mut want_dx, &mut want_dgain);
    runner.run([cuda::rms_norm_forward(x.place(), gain.place(), 1e-5, y.place(), inverse.place())])?;
    let rows = [x.place(), gain.place(), dy.place(), dx.place()];
    runner.run(cuda::rms_norm_backward(rows, [inverse.place(), shares.place(), dgain.place()]))?;
    Ok(vec![
        (y.values(), want_y),
        (inverse.values(), want_inverse),
        (dx.values(), want_dx),
        (dgain.values(), want_dgain),
    ])
}

fn rope_op<T: Number>(runner: &Runner, windows: usize, time: usize, half: usize) -> Result<Results, String> {
    let (heads, start) = (3, 2);
    let mut x = Buffer::<T>::random("x", windows * time * heads * 2 * half);
    let angle = |i: usize| (i / half) as f64 * 10_000f64.powf(-((i % half) as f64) / half as f64);
    let table =
        |f: fn(f64) -> f64| Buffer::<f32>::new(&(0..(start + time) * half).map(|i| f(angle(i))).collect::<Vec<_>>());
    let (mut cosines, mut sines) = (table(f64::cos), table(f64::sin));
    let tables = rope::Tables::<f64>::new(start + time, 2 * half, 10_000.0);
    let mut want = x.values();
    let mut results = Vec::new();
    for back in [false, true] {
        let at = Positions { start, time, heads };
        let turn = if back { rope::backward } else { rope::forward };
        want = if back { x.values() } else { want };
        turn(&mut want, &tables, start, time, heads);
        runner.run([cuda::rope(x.place(), [cosines.place(), sines.place()], at, half, back)])?;
        results.push((x.values(), want.clone()));
    }
    Ok(results)
}

fn swiglu_op<T: Number>(runner: &Runner, count: usize) -> Result<Results, String> {
    let [mut gate, mut up, mut dout] = ["gate", "up", "dout"].map(|name| Buffer::<T>::random(name, count));
    let [mut out, mut dgate, mut dup] = [(); 3].map(|()| Buffer::<T>::empty(count));
    let [mut want, mut want_gate, mut want_up] = [(); 3].map(|()| vec![0.0; count]);
    swiglu::forward(&gate.values(), &up.values(), &mut want);
    swiglu::backward(&gate.values(), &up.values(), &dout.values(), &mut want_gate, &mut want_up);
    runner.run([cuda::swiglu_forward(gate.place(), up.place(), out.place())])?;
    runner.run([cuda::swiglu_backward(gate.place(), up.place(), dout.place(), [dgate.place(), dup.place()])])?;
    Ok(vec![(out.values(), want), (dgate.values(), want_gate), (dup.values(), want_up)])
}

fn attention_op<T: Number>(runner: &Runner, back: &Host, shape: attention::Shape) -> Result<Results, String> {
    let rows = shape.batch * shape.time;
    let (n, kv) = (rows * shape.heads * shape.head_dim, rows * shape.kv_heads * shape.head_dim);
    let [mut q, mut dout] = ["q", "dout"].map(|name| Buffer::<T>::random(name, n));
    let [mut k, mut v] = ["k", "v"].map(|name| Buffer::<T>::random(name, kv));
    let [mut out, mut dq] = [(); 2].map(|()| Buffer::<T>::empty(n));
    let [mut dk, mut dv] = [(); 2].map(|()| Buffer::<T>::empty(kv));
    let [mut sums, mut delta] = [(); 2].map(|()| Buffer::<f32>::empty(rows * shape.heads));
    let [want_q, want_k, want_v] = [&q, &k, &v].map(Buffer::values);
    let (mut want, mut want_sums) = (vec![0.0; n], vec![0.0; rows * shape.heads]);
    attention::forward(&want_q, &want_k, &want_v, &shape, &mut want, &mut want_sums);
    let saved = attention::Saved { out: &want, log_sum_exp: &want_sums };
    let (mut want_dq, mut want_dk, mut want_dv) = (vec![0.0; n], vec![0.0; kv], vec![0.0; kv]);
    let d = (&mut want_dq, &mut want_dk, &mut want_dv);
    attention::backward(&want_q, &want_k, &want_v, saved, &dout.values(), &shape, d.0, d.1, d.2);
    let inputs = Attention { q: q.place(), k: k.place(), v: v.place(), shape };
    runner.run([cuda::attention_forward(inputs, out.place(), sums.place())])?;
    let gradients = [dq.place(), dk.place(), dv.place()];
    let kept = [sums.place(), delta.place()];
    Runner { host: back, order: runner.order }.run(cuda::attention_backward(
        inputs,
        [out.place(), dout.place()],
        kept,
        gradients,
    ))?;
    Ok(vec![
        (out.values(), want),
        (sums.values(), want_sums),
        (dq.values(), want_dq),
        (dk.values(), want_dk),
        (dv.values(), want_dv),
    ])
}

fn loss_op<L: Number, G: Number>(runner: &Runner, rows: usize, vocabulary: usize) -> Result<Results, String> {
    let mut logits = Buffer::<L>::random("logits", rows * vocabulary);
    let mut targets: Vec<u32> = (0..rows).map(|i| ((i * 7 + 3) % vocabulary) as u32).collect();
    targets[rows / 2] = if rows > 1 { IGNORE } else { 0 };
    let (mut losses, mut gradient) = (Buffer::<f32>::empty(rows), Buffer::<G>::empty(rows * vocabulary));
    let (scale, z) = (0.25, logits.values());
    let (mut want, mut want_gradient) = (vec![0.0; rows], vec![0.0; rows * vocabulary]);
    for (row, target) in targets.iter().enumerate().filter(|(_, target)| **target != IGNORE) {
        let z = &z[row * vocabulary..][..vocabulary];
        let sum: f64 = z.iter().map(|z| z.exp()).sum();
        want[row] = sum.ln() - z[*target as usize];
        for (i, z) in z.iter().enumerate() {
            let hit = if i == *target as usize { 1.0 } else { 0.0 };
            want_gradient[row * vocabulary + i] = scale * (z.exp() / sum - hit);
        }
    }
    let mut total = vec![1.0f64];
    let targets = ids(&mut targets);
    // In place where the types allow it.
    let to = if L::NAME == G::NAME { Place::new(logits.place().address, z.len()) } else { gradient.place() };
    runner.run([cuda::cross_entropy::<L, G>(logits.place(), targets, losses.place(), to, scale as f32)])?;
    runner.run([cuda::cross_entropy_total(losses.place(), Place::new(total.as_mut_ptr() as u64, 1))])?;
    let got = if L::NAME == G::NAME { logits.values() } else { gradient.values() };
    let sum = 1.0 + want.iter().sum::<f64>();
    Ok(vec![(losses.values(), want), (got, want_gradient), (total, vec![sum])])
}

fn embedding_op<T: Number>(runner: &Runner, places: usize, width: usize) -> Result<Results, String> {
    let vocabulary = 11;
    // Id 0 fills more than half, so that it is cut into pieces.
    let mut tokens: Vec<u32> = (0..places).map(|i| if i % 5 < 3 { 0 } else { (i * i % vocabulary) as u32 }).collect();
    let mut table = Buffer::<T>::random("table", vocabulary * width);
    let (mut out, mut dout) = (Buffer::<T>::empty(places * width), Buffer::<T>::random("dout", places * width));
    let mut dtable = Buffer::<f32>::random("dtable", vocabulary * width);
    let mut p = cuda::Pieces::of(&tokens);
    let mut partial = Buffer::<f32>::empty(p.partial_rows() * width);
    let (mut want, mut want_dtable) = (vec![0.0; places * width], dtable.values());
    embedding::forward(&tokens, &table.values(), &mut want, width);
    embedding::backward(&tokens, &dout.values(), &mut want_dtable, width);
    runner.run([cuda::embedding_forward(ids(&mut tokens), table.place(), out.place(), width)])?;
    let lists = [&mut p.order, &mut p.starts, &mut p.rows, &mut p.slots, &mut p.split_starts, &mut p.split_rows];
    let lists = lists.map(|list| ids(list));
    runner.run(cuda::embedding_backward(lists, dout.place(), dtable.place(), partial.place(), width))?;
    Ok(vec![(out.values(), want), (dtable.values(), want_dtable)])
}

include!("cuda/optimizer.rs");
include!("cuda/twins.rs");
