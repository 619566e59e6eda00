//! Cases of the row-wise and element-wise ops.

use super::{Case, Number, Results};
use crate::ops::cuda::{self, Backend, Place, Positions};
use crate::ops::{IGNORE, embedding as exact_embedding, rms_norm, rope as exact_rope, swiglu as exact_swiglu};

/// RMSNorm, forward and backward.
pub fn norm<B: Backend + 'static, T: Number>(rows: usize, width: usize) -> Case<B> {
    Case::new::<T>("norm", &[rows, width], move |b| -> Result<Results, String> {
        let count = rows * width;
        let (x, dy, dx) = (b.random::<T>("x", count)?, b.random::<T>("dy", count)?, b.random::<T>("dx", count)?);
        let (gain, y) = (b.random::<T>("gain", width)?, b.empty::<T>(count)?);
        let inverse = b.empty::<f32>(rows)?;
        let shares = b.empty::<f32>(cuda::rms_norm_shares(rows, width))?;
        let dgain = b.random::<f32>("dgain", width)?;
        let (mut want_y, mut want_inverse) = (vec![0.0; count], vec![0.0; rows]);
        let (mut want_dx, mut want_dgain) = (b.values(dx)?, b.values(dgain)?);
        let (vx, vgain, vdy) = (b.values(x)?, b.values(gain)?, b.values(dy)?);
        rms_norm::forward(&vx, &vgain, f64::from(1e-5f32), &mut want_y, &mut want_inverse);
        rms_norm::backward(&vx, &vgain, &want_inverse, &vdy, &mut want_dx, &mut want_dgain);
        b.run([cuda::rms_norm_forward(x.place, gain.place, 1e-5, y.place, inverse.place)])?;
        let places = [x.place, gain.place, dy.place, dx.place];
        b.run(cuda::rms_norm_backward(places, [inverse.place, shares.place, dgain.place]))?;
        Ok(vec![
            (b.values(y)?, want_y),
            (b.values(inverse)?, want_inverse),
            (b.values(dx)?, want_dx),
            (b.values(dgain)?, want_dgain),
        ])
    })
}

/// The rotation, forward and back again.
pub fn rope<B: Backend + 'static, T: Number>(windows: usize, time: usize, half: usize) -> Case<B> {
    Case::new::<T>("rope", &[windows, time, half], move |b| -> Result<Results, String> {
        let (heads, start) = (3, 2);
        let x = b.random::<T>("x", windows * time * heads * 2 * half)?;
        let angle = |i: usize| (i / half) as f64 * 10_000f64.powf(-((i % half) as f64) / half as f64);
        let table = |f: fn(f64) -> f64| (0..(start + time) * half).map(|i| f(angle(i))).collect::<Vec<_>>();
        let (cosines, sines) = (b.guarded::<f32>(&table(f64::cos))?, b.guarded::<f32>(&table(f64::sin))?);
        let tables = exact_rope::Tables::<f64>::new(start + time, 2 * half, 10_000.0);
        let mut want = b.values(x)?;
        let mut results = Vec::new();
        for back in [false, true] {
            let at = Positions { start, time, heads };
            let turn = if back { exact_rope::backward } else { exact_rope::forward };
            want = if back { b.values(x)? } else { want };
            turn(&mut want, &tables, start, time, heads);
            b.run([cuda::rope(x.place, [cosines.place, sines.place], at, half, back)])?;
            results.push((b.values(x)?, want.clone()));
        }
        Ok(results)
    })
}

/// SwiGLU, forward and backward.
pub fn swiglu<B: Backend + 'static, T: Number>(count: usize) -> Case<B> {
    Case::new::<T>("swiglu", &[count], move |b| -> Result<Results, String> {
        let (gate, up, dout) =
            (b.random::<T>("gate", count)?, b.random::<T>("up", count)?, b.random::<T>("dout", count)?);
        let (out, dgate, dup) = (b.empty::<T>(count)?, b.empty::<T>(count)?, b.empty::<T>(count)?);
        let [mut want, mut want_gate, mut want_up] = [(); 3].map(|()| vec![0.0; count]);
        let (vgate, vup) = (b.values(gate)?, b.values(up)?);
        exact_swiglu::forward(&vgate, &vup, &mut want);
        exact_swiglu::backward(&vgate, &vup, &b.values(dout)?, &mut want_gate, &mut want_up);
        b.run([cuda::swiglu_forward(gate.place, up.place, out.place)])?;
        b.run([cuda::swiglu_backward(gate.place, up.place, dout.place, [dgate.place, dup.place])])?;
        Ok(vec![(b.values(out)?, want), (b.values(dgate)?, want_gate), (b.values(dup)?, want_up)])
    })
}

/// The loss, its gradient in place where the types allow it, and the sum.
pub fn loss<B: Backend + 'static, L: Number, G: Number>(rows: usize, vocabulary: usize) -> Case<B> {
    let mut case = Case::new::<G>("loss", &[rows, vocabulary], move |b| -> Result<Results, String> {
        let logits = b.random::<L>("logits", rows * vocabulary)?;
        let mut targets: Vec<u32> = (0..rows).map(|i| ((i * 7 + 3) % vocabulary) as u32).collect();
        targets[rows / 2] = if rows > 1 { IGNORE } else { 0 };
        let (losses, gradient) = (b.empty::<f32>(rows)?, b.empty::<G>(rows * vocabulary)?);
        let (scale, z) = (0.25, b.values(logits)?);
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
        let (total, targets) = (b.plain(&[1.0f64])?, b.plain(&targets)?);
        let same = L::NAME == G::NAME;
        let to = if same { Place::new(logits.place.address, z.len()) } else { gradient.place };
        b.run([cuda::cross_entropy::<L, G>(logits.place, targets, losses.place, to, scale as f32)])?;
        b.run([cuda::cross_entropy_total(losses.place, total)])?;
        let got = if same { b.values(logits)? } else { b.values(gradient)? };
        let sum = 1.0 + want.iter().sum::<f64>();
        Ok(vec![(b.values(losses)?, want), (got, want_gradient), (b.read(total)?, vec![sum])])
    });
    case.name = format!("{} from {}", case.name, L::NAME);
    case
}

/// The embedding, forward and backward; one id fills more than half of the places, so that it is cut into pieces.
pub fn embedding<B: Backend + 'static, T: Number>(places: usize, width: usize) -> Case<B> {
    Case::new::<T>("embedding", &[places, width], move |b| -> Result<Results, String> {
        let vocabulary = 11;
        let tokens: Vec<u32> = (0..places).map(|i| if i % 5 < 3 { 0 } else { (i * i % vocabulary) as u32 }).collect();
        let table = b.random::<T>("table", vocabulary * width)?;
        let (out, dout) = (b.empty::<T>(places * width)?, b.random::<T>("dout", places * width)?);
        let dtable = b.random::<f32>("dtable", vocabulary * width)?;
        let p = cuda::Pieces::of(&tokens);
        let partial = b.empty::<f32>(p.partial_rows() * width)?;
        let (mut want, mut want_dtable) = (vec![0.0; places * width], b.values(dtable)?);
        exact_embedding::forward(&tokens, &b.values(table)?, &mut want, width);
        exact_embedding::backward(&tokens, &b.values(dout)?, &mut want_dtable, width);
        let ids = b.plain(&tokens)?;
        b.run([cuda::embedding_forward(ids, table.place, out.place, width)])?;
        let mut lists = [Place::none(); 6];
        for (place, list) in
            lists.iter_mut().zip([&p.order, &p.starts, &p.rows, &p.slots, &p.split_starts, &p.split_rows])
        {
            *place = b.plain(list)?;
        }
        b.run(cuda::embedding_backward(lists, dout.place, dtable.place, partial.place, width))?;
        Ok(vec![(b.values(out)?, want), (b.values(dtable)?, want_dtable)])
    })
}
