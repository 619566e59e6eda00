//! The hand-written gradients are right; without the norm's backward pass the arbiter names what does not learn.

use arbiter_closure::{Norm, loss};
use shikha::arbiter::{Closure, Parameter, Precision, Questions, Rule, Verdict, judge};

fn verdict(norm: Norm) -> Verdict {
    let parameter =
        |name: &str, values: [f64; 4]| (Parameter::new(name, [4]).in_precision(Precision::F64), values.to_vec());
    let parameters = vec![
        parameter("w1", [0.4, -0.3, 0.8, 0.1]),
        parameter("gain", [1.0; 4]),
        parameter("w2", [0.2, 0.5, -0.6, 0.3]),
    ];
    let batches = [(1.0, 0.5), (0.6, -0.3), (-1.2, 0.8)];
    let mut subject = Closure::new(parameters, |w, n| Ok(loss(w, batches[n].0, batches[n].1, norm)))
        .optimizer(|w, gradients| {
            let pairs = w.iter_mut().zip(gradients).filter_map(|(w, g)| g.as_ref().map(|g| (w, g)));
            pairs.for_each(|(w, g)| w.iter_mut().zip(g).for_each(|(w, g)| *w -= 0.01 * g));
            Ok(())
        })
        .rule(Rule::Sgd { learning_rate: 0.01, momentum: 0.0, weight_decay: 0.0 });
    judge(&mut subject, &Questions::default()).unwrap()
}

#[test]
fn every_parameter_learns() {
    let verdict = verdict(Norm::WithBackward);
    assert!(verdict.passed(), "{}", verdict.report());
    assert_eq!(verdict.asked.len(), 6, "all questions: {}", verdict.report());
}

#[test]
fn a_norm_without_a_backward_pass_is_caught() {
    let verdict = verdict(Norm::ForwardOnly);
    print!("{}", verdict.report());
    let missing: Vec<&str> = verdict.findings.iter().map(|f| f.parameter.as_str()).collect();
    assert_eq!(missing, ["w1", "gain"]);
}
