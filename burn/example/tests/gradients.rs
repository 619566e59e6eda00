//! Every parameter of the regressor learns; a cut graph and a mapped parameter are caught by name.

use arbiter_burn::{Regressor, Start};
use burn::module::Module;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{Device, Tensor};
use shikha::arbiter::{Expected, Question, Questions, Rule, Verdict, judge};
use shikha_burn::Model;

fn verdict(start: Start, cut: bool) -> Verdict {
    let device = Device::flex().autodiff();
    let module = Regressor::new(start, &device);
    let numbers = module.num_params() as u64;
    let batch = |seed: usize, width: usize| {
        let values = (0..4 * width).map(|i| (1.3 * i as f32 + seed as f32).sin()).collect::<Vec<_>>();
        Tensor::<1>::from_floats(values.as_slice(), &device).reshape([4, width])
    };
    let mut optimizer = SgdConfig::new().init();
    let mut model = Model::new(module, |m: &Regressor, n| m.loss(batch(n, 6), batch(n + 9, 2), cut))
        .optimizer(move |m, mut tape| {
            let gradients = GradientsParams::from_module(&mut tape, &m);
            optimizer.step(0.01, m, gradients)
        })
        .rule(Rule::Sgd { learning_rate: 0.01, momentum: 0.0, weight_decay: 0.0 });
    judge(&mut model, &Questions::default().expecting(Expected::Numbers(numbers))).unwrap()
}

#[test]
fn every_parameter_learns() {
    let verdict = verdict(Start::Default, false);
    assert!(verdict.passed(), "{}", verdict.report());
    assert_eq!(verdict.asked, Question::ALL);
}

#[test]
fn a_norm_without_a_backward_pass_is_caught() {
    let verdict = verdict(Start::Default, true);
    print!("{}", verdict.report());
    let missing: Vec<&str> = verdict.findings.iter().map(|f| f.parameter.as_str()).collect();
    assert_eq!(missing, ["first.weight", "first.bias", "norm.gamma"]);
}
