//! Seeded initialisation: each tensor draws from a stream of its own name, so that adding a block
//! changes no other, and the random twin of any run can be rebuilt from its seed.

use super::{Config, Parameters};
use crate::ops::Real;
use crate::rng::Stream;
use rayon::prelude::*;

/// Gain of the projections against 1/√inputs, which would keep the variance.
const GAIN: f64 = 0.5;

/// Parameters drawn under `seed`: gains 1, matrices normal with standard deviation
///
/// - 0.5/√inputs, times 1/√(2·layers) for the two that write into the residual stream (A. Radford et
///   al. 2019, section 2.3), so that its variance does not grow with depth;
/// - min(0.02, 2/width) for the embedding and the output: the logits of a hidden state of root mean
///   square 1 then have a standard deviation of at most 0.2, and when the two are tied the logit of a
///   position's own token is at most about 2, so that the loss at step 0 is ln(vocabulary) to within 0.05.
pub fn initialise<T: Real>(config: &Config, seed: u64) -> Parameters<T> {
    let mut parameters = Parameters::zeros(config);
    let tensors = parameters.tensors().to_vec();
    for tensor in &tensors {
        let values = parameters.values_mut(tensor);
        if !tensor.decay {
            values.fill(T::ONE);
            continue;
        }
        let deviation = deviation(&tensor.name, &tensor.shape, config);
        let stream = Stream::new(seed, &tensor.name);
        let draw = |(i, x): (usize, &mut T)| *x = T::from_f64(deviation * stream.normal(i as u64));
        values.par_iter_mut().enumerate().for_each(draw);
    }
    parameters
}

fn deviation(name: &str, shape: &[usize], config: &Config) -> f64 {
    let inputs = shape[1] as f64;
    if name.contains("embed_tokens") || name.contains("lm_head") {
        return (2.0 / inputs).min(0.02);
    }
    let residual = name.contains("o_proj") || name.contains("down_proj");
    let depth = if residual { (2.0 * config.num_hidden_layers as f64).sqrt() } else { 1.0 };
    GAIN / inputs.sqrt() / depth
}
