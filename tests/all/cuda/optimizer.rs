/// Norm, clipping and two steps of AdamW, against the CPU's in f64.
fn optimizer_op<G: Number>(norms: &Runner, steps: &Runner, count: usize) -> Result<Results, String> {
    let mut gradient = Buffer::<G>::random("gradient", count);
    let mut parameter = Buffer::<f32>::random("parameter", count);
    let [mut first, mut second] = [(); 2].map(|()| Buffer::<f32>::new(&vec![0.0; count]));
    let mut copy = Buffer::<bf16>::empty(count);
    let mut partial = vec![f64::NAN; cuda::norm_stretches(count)];
    let mut step = [cuda::Step::default()];
    let (rate, decay, betas, limit) = (0.01, 0.1, [0.9, 0.95], 0.5);
    let settings = cuda::Settings {
        rate: rate as f32,
        keep: (1.0 - rate * decay) as f32,
        beta1: [betas[0] as f32, (1.0 - betas[0]) as f32],
        beta2: [betas[1] as f32, (1.0 - betas[1]) as f32],
        epsilon: 1e-8,
    };
    let g = gradient.values();
    let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
    let (mut want, mut want_first, mut want_second) = (parameter.values(), vec![0.0; count], vec![0.0; count]);
    for t in 1..=2 {
        let scale = if norm > limit { limit / norm } else { 1.0 };
        let exact = adamw::Settings {
            learning_rate: rate,
            beta1: betas[0],
            beta2: betas[1],
            epsilon: 1e-8,
            weight_decay: decay,
            gradient_scale: scale,
            step: t,
        };
        adamw::step(&mut want, &g, &mut want_first, &mut want_second, &exact);
        let places = (Place::new(partial.as_mut_ptr() as u64, partial.len()), Place::new(step.as_mut_ptr() as u64, 1));
        norms.run(cuda::norm(gradient.place(), places.0, places.1, limit, betas))?;
        let moments = [parameter.place(), first.place(), second.place()];
        steps.run([cuda::adamw(moments, gradient.place(), copy.place(), places.1, settings)])?;
    }
    let rounded = parameter.values().iter().map(|x| bf16::from_f32(*x as f32).to_f64()).collect();
    assert_eq!(step[0].taken, 2);
    Ok(vec![
        (vec![step[0].norm], vec![norm]),
        (parameter.values(), want),
        (first.values(), want_first),
        (second.values(), want_second),
        (copy.values(), rounded),
    ])
}
