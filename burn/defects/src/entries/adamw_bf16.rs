//! AdamW on bf16 parameters: a step smaller than half a unit in the last place is lost.

use crate::catalogue::{CheckError, Entry, Kind, Verdict};
use crate::probe::{device, norm, numbers, tensor};
use burn::module::Param;
use burn::nn::Linear;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-adamw-bf16",
    title: "AdamW on bf16 parameters loses every small step: there is no f32 master copy",
    kind: Kind::Precision,
    report: None,
    reading: None,
    reproduce: || judge(DType::BF16),
    control: || judge(DType::F32),
    workaround: "keep the parameters in f32",
};

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
