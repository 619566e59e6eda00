//! A model written by hand, without a framework: y = w₂·rms_norm(w₁·x)·gain, half the squared error.

/// Width of the hidden layer.
pub const WIDTH: usize = 4;

/// Whether the norm's backward pass is written, or left out as in fused inference kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// With its derivative.
    WithBackward,
    /// Forward only: nothing before it gets a gradient.
    ForwardOnly,
}

/// Loss at `[w1, gain, w2]` (each of [`WIDTH`] numbers) for input `x` and target `y`, and the three gradients.
pub fn loss(parameters: &[Vec<f64>], x: f64, y: f64, norm: Norm) -> (f64, Vec<Option<Vec<f64>>>) {
    let [w1, gain, w2] = [&parameters[0], &parameters[1], &parameters[2]];
    let hidden: Vec<f64> = w1.iter().map(|w| w * x).collect();
    let root = (hidden.iter().map(|h| h * h).sum::<f64>() / WIDTH as f64 + 1e-5).sqrt();
    let normed: Vec<f64> = hidden.iter().map(|h| h / root).collect();
    let out: f64 = (0..WIDTH).map(|i| normed[i] * gain[i] * w2[i]).sum();
    let error = out - y;
    let dw2: Vec<f64> = (0..WIDTH).map(|i| error * normed[i] * gain[i]).collect();
    if norm == Norm::ForwardOnly {
        return (0.5 * error * error, vec![None, None, Some(dw2)]);
    }
    let dgain: Vec<f64> = (0..WIDTH).map(|i| error * normed[i] * w2[i]).collect();
    let dnormed: Vec<f64> = (0..WIDTH).map(|i| error * gain[i] * w2[i]).collect();
    let along: f64 = (0..WIDTH).map(|i| dnormed[i] * normed[i]).sum::<f64>() / WIDTH as f64;
    let dw1 = (0..WIDTH).map(|i| x * (dnormed[i] - normed[i] * along) / root).collect();
    (0.5 * error * error, vec![Some(dw1), Some(dgain), Some(dw2)])
}
