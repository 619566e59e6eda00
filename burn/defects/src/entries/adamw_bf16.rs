//! AdamW on bf16 parameters: a step smaller than half a unit in the last place is lost.

use crate::asked::ask_with;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{device, norm, numbers, tensor};
use crate::training::{HIDDEN, Net, adamw, by, start, train};
use burn::module::Param;
use burn::nn::Linear;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{DType, Tensor};
use shikha::arbiter::Rule;

pub(super) const ENTRY: Entry = Entry {
    id: "burn-adamw-bf16",
    title: "AdamW on bf16 parameters loses every small step: there is no f32 master copy",
    kind: Kind::Precision,
    report: None,
    reading: None,
    source: include_str!("adamw_bf16.rs"),
    reproduce: || judge(DType::BF16),
    control: || judge(DType::F32),
    arbiter: Asked::Model(|defective| {
        let (device, dtype) = (device(), kept(defective));
        let layer = Linear { weight: Param::from_tensor(Tensor::ones([8, 4], (&device, dtype))), bias: None };
        let loss =
            move |layer: &Linear, n: usize| layer.forward(tensor([3, 8], 1 + n as u32, dtype, &device)).square().mean();
        // The constants of Burn's own configuration.
        let rule = Rule::AdamW { learning_rate: RATE, beta1: 0.9, beta2: 0.999, epsilon: 1e-5, weight_decay: 0.0 };
        ask_with(layer, loss, by(adamw(), RATE), Some(rule))
    }),
    training: Training::Runs(|defective, seed| {
        let at = (&device(), kept(defective));
        let weight = Param::from_tensor(start([8, HIDDEN], seed, "first", at));
        let net = Net::new(Linear { weight, bias: None }, seed, at);
        train(net, by(adamw(), 10.0 * RATE), |net: &Net, step| net.loss(seed, step, at, Tensor::tanh))
    }),
    workaround: "keep the parameters in f32",
};

fn kept(defective: bool) -> DType {
    if defective { DType::BF16 } else { DType::F32 }
}

const RATE: f64 = 1e-4;
const STEPS: usize = 10;

fn judge(dtype: DType) -> Result<Verdict, CheckError> {
    let device = device();
    let mut layer = Linear { weight: Param::from_tensor(Tensor::ones([8, 4], (&device, dtype))), bias: None };
    let input = tensor([3, 8], 1, dtype, &device);
    let mut optimizer = AdamWConfig::new().init();
    let mut gradient = 0.0;
    for _ in 0..STEPS {
        let gradients = layer.forward(input.clone()).square().sum().backward();
        gradient = layer.weight.val().grad(&gradients).map_or(0.0, |g| norm(&numbers(g)));
        layer = optimizer.step(RATE, layer.clone(), GradientsParams::from_grads(gradients, &layer));
    }
    let weights = numbers(layer.weight.val());
    let moved = weights.iter().filter(|&&w| w != 1.0).count();
    let evidence = format!(
        "{dtype:?}, learning rate {RATE:.0e}, weights of 1, gradient of norm {gradient:.2}: {moved} of {} entries moved in \
         {STEPS} steps",
        weights.len()
    );
    Ok(Verdict::when(moved < weights.len() / 2, evidence))
}
