//! The case of the optimizer.

use super::{Case, Number, Results};
use crate::ops::adamw;
use crate::ops::cuda::{self, Backend};
use half::bf16;

/// Norm, clipping and two steps of AdamW on `count` numbers.
pub fn case<B: Backend + 'static, G: Number>(count: usize) -> Case<B> {
    let mut case = Case::new::<G>("optimizer", &[count], move |b| -> Result<Results, String> {
        let (gradient, parameter) = (b.random::<G>("gradient", count)?, b.random::<f32>("parameter", count)?);
        let (first, second) = (b.guarded::<f32>(&vec![0.0; count])?, b.guarded::<f32>(&vec![0.0; count])?);
        let copy = b.empty::<bf16>(count)?;
        let sums = b.plain(&vec![f64::NAN; cuda::norm_stretches(count)])?;
        let step = b.plain(&[cuda::Step::default()])?;
        let (rate, decay, betas, limit) = (0.01, 0.1, [0.9, 0.95], 0.5);
        let settings = cuda::Settings {
            rate: rate as f32,
            keep: (1.0 - rate * decay) as f32,
            beta1: [betas[0] as f32, (1.0 - betas[0]) as f32],
            beta2: [betas[1] as f32, (1.0 - betas[1]) as f32],
            epsilon: 1e-8,
        };
        let g = b.values(gradient)?;
        let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
        let (mut want, mut want_first, mut want_second) = (b.values(parameter)?, vec![0.0; count], vec![0.0; count]);
        for t in 1..=2 {
            let exact = adamw::Settings {
                learning_rate: rate,
                beta1: betas[0],
                beta2: betas[1],
                epsilon: 1e-8,
                weight_decay: decay,
                gradient_scale: if norm > limit { limit / norm } else { 1.0 },
                step: t,
            };
            adamw::step(&mut want, &g, &mut want_first, &mut want_second, &exact);
            b.run(cuda::norm(gradient.place, sums, step, limit, betas))?;
            let moments = [parameter.place, first.place, second.place];
            b.run([cuda::adamw(moments, gradient.place, copy.place, step, settings)])?;
        }
        let found = b.values(parameter)?;
        let rounded = found.iter().map(|x| bf16::from_f32(*x as f32).to_f64()).collect();
        let last = b.read(step)?[0];
        Ok(vec![
            (vec![last.norm, last.taken as f64], vec![norm, 2.0]),
            (found, want),
            (b.values(first)?, want_first),
            (b.values(second)?, want_second),
            (b.values(copy)?, rounded),
        ])
    });
    case.tolerance = f32::TOLERANCE; // the moments are f32 whatever the gradient is
    case
}
