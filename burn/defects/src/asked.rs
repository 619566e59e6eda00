//! The arbiter on a small model with a defect, and on the same model with the workaround.

use crate::probe::{device, tensor};
use crate::training::by;
use burn::module::Module;
use burn::nn::Linear;
use burn::optim::SgdConfig;
use burn::tensor::{DType, Gradients, Tensor};
use shikha::arbiter::Rule;
use shikha::defects::Answer;
use shikha_burn::Model;

const RATE: f64 = 0.05;

/// Asks everything of `module`, whose loss on probe n is `loss(module, n)`, trained by plain gradient descent.
pub fn ask<M: Module + 'static>(module: M, loss: impl Fn(&M, usize) -> Tensor<1> + 'static) -> Answer {
    let rule = Rule::Sgd { learning_rate: RATE, momentum: 0.0, weight_decay: 0.0 };
    ask_with(module, loss, by(SgdConfig::new().init(), RATE), Some(rule))
}

/// [`ask`] with the step of an optimizer that is to be judged, held to `rule` where there is one.
pub fn ask_with<M: Module + 'static>(
    module: M,
    loss: impl Fn(&M, usize) -> Tensor<1> + 'static,
    step: impl FnMut(M, Gradients) -> M + 'static,
    rule: Option<Rule>,
) -> Answer {
    let mut model = Model::new(module, loss).optimizer(step);
    if let Some(rule) = rule {
        model = model.rule(rule);
    }
    Answer::of(model.judge())
}

/// [`ask`] about a layer `[16, 8]`.
pub fn ask_layer(layer: Linear) -> Answer {
    // Something that is trained beside it, so that the loss has a tape whatever the layer has.
    let anchor = tensor([8], 4, DType::F32, &device()).require_grad();
    ask(layer, move |layer: &Linear, n| {
        let output = layer.forward(tensor([4, 16], 1 + n as u32, DType::F32, &device()));
        (output + anchor.clone().unsqueeze()).square().mean()
    })
}
