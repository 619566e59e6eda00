//! `#[derive(Module)]` and a field whose type is an alias: up to 0.21 the field is no part of the module.

use crate::asked::ask;
use crate::catalogue::{Asked, CheckError, Entry, Kind, Training, Verdict};
use crate::probe::{device, tensor};
use crate::training::{Net, RATE, adamw, by, start, train};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor};

pub(super) const ENTRY: Entry = Entry {
    id: "burn-alias-field",
    title: "#[derive(Module)] drops a field whose type is spelled by an alias: neither trained nor saved, in silence",
    kind: Kind::MissingGradient,
    report: Some("#4860"),
    reading: Some("possible: a silent missing gradient is what a gradient-flow check finds"),
    source: include_str!("alias_field.rs"),
    reproduce: || judge(&aliased(tensor([16, 16], 2, DType::F32, &device()))),
    control: || judge(&spelled(tensor([16, 16], 2, DType::F32, &device()))),
    arbiter: Asked::Model(|defective| {
        let (weight, input) = (drawn(0), |n: usize| tensor([4, 16], 1 + n as u32, DType::F32, &device()));
        if defective {
            ask(aliased(weight), move |m: &Aliased, n| m.output(input(n)).square().mean())
        } else {
            ask(spelled(weight), move |m: &Spelled, n| m.output(input(n)).square().mean())
        }
    }),
    training: Training::Runs(|defective, seed| {
        // The targets of the catalogue's other curves, widened by a fixed embedding.
        let at = (&device(), DType::F32);
        let batch = |step| {
            let (x, target) = Net::batch(seed, step, at);
            (x.matmul(start([8, 16], seed, "in", at)), target.matmul(start([4, 16], seed, "out", at)))
        };
        let off = |output: Tensor<2>, target: Tensor<2>| (output - target).square().mean();
        if defective {
            train(aliased(drawn(seed)), by(adamw(), RATE), |m: &Aliased, step| {
                let (x, target) = batch(step);
                off(m.output(x), target)
            })
        } else {
            train(spelled(drawn(seed)), by(adamw(), RATE), |m: &Spelled, step| {
                let (x, target) = batch(step);
                off(m.output(x), target)
            })
        }
    }),
    workaround: "spell the type out, and assert num_params()",
};

/// The layer by another name.
type Projection = Linear;

#[derive(Module, Debug)]
struct Aliased {
    first: Linear,
    second: Projection,
}

#[derive(Module, Debug)]
struct Spelled {
    first: Linear,
    second: Linear,
}

/// What both models compute, and which of their parameters a step would reach.
trait Output: Module {
    fn output(&self, x: Tensor<2>) -> Tensor<2>;
}

impl Output for Aliased {
    fn output(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(self.first.forward(x).tanh())
    }
}

impl Output for Spelled {
    fn output(&self, x: Tensor<2>) -> Tensor<2> {
        self.second.forward(self.first.forward(x).tanh())
    }
}

fn drawn(seed: u64) -> Tensor<2> {
    start([16, 16], seed, "first", (&device(), DType::F32))
}

fn layers(weight: Tensor<2>) -> [Linear; 2] {
    [weight.clone(), weight.transpose().detach().require_grad()]
        .map(|w| Linear { weight: Param::from_tensor(w), bias: None })
}

fn aliased(weight: Tensor<2>) -> Aliased {
    let [first, second] = layers(weight);
    Aliased { first, second }
}

fn spelled(weight: Tensor<2>) -> Spelled {
    let [first, second] = layers(weight);
    Spelled { first, second }
}

/// Present when the module counts, or hands its optimizer, fewer parameters than the two layers have.
fn judge<M: Output>(model: &M) -> Result<Verdict, CheckError> {
    let tape = model.output(tensor([4, 16], 1, DType::F32, &device())).square().mean().backward();
    let (counted, reached) = (model.num_params(), GradientsParams::from_grads(tape, model).len());
    let evidence = format!("{counted} of {} parameters counted, 2 layers, gradients for {reached}", 2 * 16 * 16);
    Ok(Verdict::when(counted < 2 * 16 * 16 || reached < 2, evidence))
}
