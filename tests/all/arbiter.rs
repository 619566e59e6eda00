//! Tests of `arbiter`: each question on planted faults and on healthy models.

use proptest::prelude::*;
use shikha::arbiter::{
    Closure, Expectation, Expected, Finding, Gradients, ModelFault, Parameter, Precision, Question, Questions, Rule,
    Verdict, assert_learns, judge,
};

const SHAPE: [usize; 2] = [3, 2];

fn fixed(expectation: Expectation, gradient: Option<Vec<f64>>) -> Verdict {
    let parameter = Parameter::new("w", SHAPE).expecting(expectation);
    let mut subject = Closure::new(vec![(parameter, vec![1.0; 6])], move |_, _| Ok((1.0, vec![gradient.clone()])));
    judge(&mut subject, &Questions::presence_only()).unwrap()
}

fn question(verdict: &Verdict) -> Option<Question> {
    assert!(verdict.findings.iter().all(|f| f.parameter == "w" && verdict.report().contains(&f.evidence)));
    verdict.findings.first().map(|f| f.question)
}

#[test]
fn one_backward_pass_answers_three_questions() {
    use Expectation::{Frozen, Held, SparseRows, Trainable, Zero, ZeroAtFirst, ZeroRows};
    let full = vec![1.0, 0.0, 0.5, -1e-30, 3.0, 4.0];
    let with = |i: usize, x: f64| {
        let mut values = full.clone();
        values[i] = x;
        Some(values)
    };
    for (expectation, gradient, expected) in [
        (Trainable, Some(full.clone()), None),
        (Trainable, None, Some(Question::Present)),
        (Trainable, Some(vec![1.0; 5]), Some(Question::Present)),
        (Trainable, with(2, f64::NAN), Some(Question::Finite)),
        (Trainable, with(5, f64::INFINITY), Some(Question::Finite)),
        (Trainable, Some(vec![0.0; 6]), Some(Question::NonZero)),
        (SparseRows, with(0, 0.0), None),
        (SparseRows, Some(vec![0.0; 6]), Some(Question::NonZero)),
        (ZeroRows(vec![true, false, false]), with(0, 0.0), None),
        (Zero, Some(full.clone()), Some(Question::NonZero)),
        (ZeroAtFirst, Some(vec![0.0; 6]), None),
        (Frozen, None, None),
        (Frozen, Some(full.clone()), Some(Question::Present)),
        (Held, Some(full.clone()), None),
    ] {
        let verdict = fixed(expectation.clone(), gradient.clone());
        assert_eq!(question(&verdict), expected, "{expectation:?} with {gradient:?}: {}", verdict.report());
    }
}

/// Half the squared error of `y = W x` on one example a batch, with W `[3, 2]` and a bias.
fn regression(w: &[Vec<f64>], batch: usize) -> (f64, Gradients) {
    let x = [[0.7, -1.2], [0.4, 0.9], [1.1, 0.3]][batch % 3];
    let error: Vec<f64> = (0..3).map(|i| w[0][2 * i] * x[0] + w[0][2 * i + 1] * x[1] + w[1][i] - i as f64).collect();
    let loss = error.iter().map(|e| 0.5 * e * e).sum();
    (loss, vec![Some(error.iter().flat_map(|e| [e * x[0], e * x[1]]).collect()), Some(error)])
}

fn parameters() -> Vec<(Parameter, Vec<f64>)> {
    let w = Parameter::new("w", SHAPE).in_precision(Precision::F64);
    let b = Parameter::new("b", [3]).in_precision(Precision::F64);
    vec![(w, vec![0.3, -0.2, 0.5, 0.1, -0.4, 0.8]), (b, vec![0.1, 0.2, -0.3])]
}

const SGD: Rule = Rule::Sgd { learning_rate: 0.01, momentum: 0.0, weight_decay: 0.0 };

type Fault = fn(&mut Vec<Vec<f64>>, &mut Gradients, usize);

/// The regression with its gradient and its step tampered with.
fn tampered(gradient: Fault, step: Fault) -> Verdict {
    let mut calls = 0;
    let mut steps = 0;
    let pass = move |w: &[Vec<f64>], batch: usize| {
        let (loss, mut gradients) = regression(w, batch);
        calls += 1;
        gradient(&mut w.to_vec(), &mut gradients, calls);
        Ok::<_, ModelFault>((loss, gradients))
    };
    let optimizer = move |w: &mut [Vec<f64>], gradients: &Gradients| {
        let mut updated = w.to_vec();
        for (w, g) in updated.iter_mut().zip(gradients).filter_map(|(w, g)| g.as_ref().map(|g| (w, g))) {
            w.iter_mut().zip(g).for_each(|(w, g)| *w -= 0.01 * g);
        }
        steps += 1;
        step(&mut updated, &mut gradients.clone(), steps);
        w.clone_from_slice(&updated);
        Ok(())
    };
    let mut subject = Closure::new(parameters(), pass).optimizer(optimizer).rule(SGD);
    judge(&mut subject, &Questions::default()).unwrap()
}

fn scale(gradients: &mut Gradients, index: usize, factor: f64) {
    gradients[index].iter_mut().flatten().for_each(|g| *g *= factor);
}

#[test]
fn the_healthy_model_is_asked_everything_and_passes() {
    let verdict = tampered(|_, _, _| {}, |_, _, _| {});
    assert!(verdict.passed(), "{}", verdict.report());
    assert_eq!(verdict.asked, Question::ALL);
    assert_eq!((verdict.parameters, verdict.numbers, verdict.cost.steps), (2, 9, 3));
    let norm = regression(&[parameters()[0].1.clone(), parameters()[1].1.clone()], 0).1[1]
        .as_ref()
        .map(|g| g.iter().map(|x| x * x).sum::<f64>().sqrt());
    assert_eq!(verdict.norms[1], ("b".to_owned(), norm));
    assert!(verdict.report().contains("every gradient present, finite, non-zero, right, repeatable, applied"));
}

/// Its second step may be longer than what the first made of it: there is nothing of its own to hold it to.
#[test]
fn a_bias_that_begins_at_zero_is_free_to_grow() {
    // Targets further off each time, so that every step is longer than all before it.
    let pass = |w: &[Vec<f64>], batch: usize| {
        let error = w[0][0] - 10f64.powi(batch as i32 + 1);
        Ok::<_, ModelFault>((0.5 * error * error, vec![Some(vec![error])]))
    };
    let step = |w: &mut [Vec<f64>], gradients: &Gradients| {
        gradients[0].iter().for_each(|g| w[0][0] -= 0.01 * g[0]);
        Ok(())
    };
    let bias = Parameter::new("b", [1]).in_precision(Precision::F64);
    let mut subject = Closure::new(vec![(bias, vec![0.0])], pass).optimizer(step).rule(SGD);
    let verdict = judge(&mut subject, &Questions::default()).unwrap();
    assert!(verdict.passed() && verdict.cost.steps == 3, "{}", verdict.report());
}

#[test]
fn each_tampering_is_found_by_its_question_in_its_parameter() {
    let none: Fault = |_, _, _| {};
    let cases: [(&str, Question, Fault, Fault); 12] = [
        ("w", Question::Present, |_, g, _| g[0] = None, none),
        ("b", Question::Finite, |_, g, _| g[1].as_mut().unwrap()[2] = f64::NAN, none),
        ("w", Question::NonZero, |_, g, _| g[0].as_mut().unwrap()[2..4].fill(0.0), none),
        ("w", Question::Right, |_, g, _| scale(g, 0, 1.001), none),
        ("b", Question::Right, |_, g, _| scale(g, 1, -1.0), none),
        ("w", Question::Right, |_, g, _| g[0].as_mut().unwrap()[3] += 0.1, none),
        ("b", Question::Repeatable, |_, g, n| scale(g, 1, 1.0 + 1e-9 * (n % 2) as f64), none),
        ("w", Question::Applied, none, |w, _, _| w[0] = parameters()[0].1.clone()),
        ("w", Question::Applied, none, |w, g, _| w[0][1] -= 0.01 * g[0].as_ref().unwrap()[1]),
        ("b", Question::Applied, none, |w, g, n| w[1][0] += 0.01 * f64::from(n == 2) * g[1].as_ref().unwrap()[0]),
        ("b", Question::Applied, none, |w, _, _| w[1].iter_mut().for_each(|w| *w *= 3.0)),
        ("w", Question::Applied, none, |w, _, _| w[0][0] = f64::INFINITY),
    ];
    for (i, (parameter, expected, gradient, step)) in cases.into_iter().enumerate() {
        let verdict = tampered(gradient, step);
        let found = |f: &Finding| f.parameter == parameter && f.question == expected;
        assert!(verdict.findings.iter().any(found), "case {i}, {expected} of {parameter}: {}", verdict.report());
    }
}

/// Without a declared rule, what the others do tells that one of them hardly moves: by its share of the gradient and by
/// its size, as either alone is what some optimizer does.
#[test]
fn a_parameter_that_moves_far_less_than_the_others_is_found_without_a_rule() {
    let run = |share: f64| {
        let pass = |w: &[Vec<f64>], _: usize| {
            let loss = w.iter().flatten().map(|x| 0.5 * x * x).sum();
            Ok::<_, ModelFault>((loss, w.iter().map(|w| Some(w.clone())).collect()))
        };
        let step = move |w: &mut [Vec<f64>], gradients: &Gradients| {
            for (i, (w, g)) in w.iter_mut().zip(gradients.iter().flatten()).enumerate() {
                let rate = if i == 1 { 0.01 * share } else { 0.01 };
                w.iter_mut().zip(g).for_each(|(w, g)| *w -= rate * g);
            }
            Ok(())
        };
        let parameter = |name: &str| (Parameter::new(name, [2]).in_precision(Precision::F64), vec![0.7, -1.1]);
        let mut subject = Closure::new(["a", "b", "c", "d"].map(parameter).into(), pass).optimizer(step);
        judge(&mut subject, &Questions::default()).unwrap()
    };
    for share in [1.0, 0.02, 50.0] {
        assert!(run(share).passed(), "{share}: {}", run(share).report());
    }
    let verdict = run(0.005);
    let [finding] = &verdict.findings[..] else { panic!("{}", verdict.report()) };
    assert_eq!((finding.parameter.as_str(), finding.question), ("b", Question::Applied), "{}", finding.evidence);
}

/// A step of the finite difference is relative to the parameter: its unit must not matter.
#[test]
fn a_gradient_is_judged_alike_in_any_unit_of_its_parameter() {
    for unit in [1.0, 1e4, 1e8] {
        let run = |wrong: f64| {
            let pass = move |w: &[Vec<f64>], _: usize| {
                let loss = w[0].iter().map(|x| (x / unit).sin()).sum();
                let gradient = w[0].iter().map(|x| wrong * (x / unit).cos() / unit).collect();
                Ok::<_, ModelFault>((loss, vec![Some(gradient)]))
            };
            let parameter = Parameter::new("w", [3]).in_precision(Precision::F64);
            let mut subject = Closure::new(vec![(parameter, [0.3, -0.7, 1.1].map(|x| x * unit).into())], pass);
            judge(&mut subject, &Questions::default()).unwrap()
        };
        let right = run(1.0);
        assert!(right.passed() && right.notes.is_empty(), "in units of {unit}: {}", right.report());
        assert!(right.asked.contains(&Question::Right));
        assert!(run(1.001).failed(Question::Right), "in units of {unit}");
    }
}

#[test]
fn rows_of_zeros_are_a_fault_only_where_the_loss_depends_on_them() {
    // Row 2 of the table is never looked up; row 1 is, but its gradient is lost.
    let lookup = |w: &[Vec<f64>], lose: bool| {
        let loss = w[0][0] * w[0][0] + w[0][2] * 3.0;
        let lost = if lose { 0.0 } else { 3.0 };
        Ok::<_, ModelFault>((loss, vec![Some(vec![2.0 * w[0][0], 0.0, lost, 0.0, 0.0, 0.0])]))
    };
    for lose in [false, true] {
        let table = (Parameter::new("table", SHAPE).in_precision(Precision::F64), vec![0.5; 6]);
        let mut subject = Closure::new(vec![table], move |w, _| lookup(w, lose));
        let verdict = judge(&mut subject, &Questions::default()).unwrap();
        assert_eq!(verdict.passed(), !lose, "{}", verdict.report());
        assert_eq!(verdict.notes.len(), usize::from(!lose), "{}", verdict.report());
    }
}

#[test]
fn what_is_expected_from_outside_must_be_shown() {
    let ask = |expected: Expected| {
        let mut subject = Closure::new(parameters(), |w, n| Ok(regression(w, n)));
        judge(&mut subject, &Questions::default().expecting(expected)).unwrap()
    };
    let names = |names: &[&str]| Expected::Names(names.iter().map(|n| (*n).to_owned()).collect());
    assert!(ask(names(&["w", "b"])).passed());
    assert_eq!(ask(names(&["w", "hidden"])).findings[0].parameter, "hidden");
    assert!(ask(Expected::Count(2)).passed() && ask(Expected::Numbers(9)).passed());
    assert!(ask(Expected::Count(3)).findings[0].evidence.contains("2 parameters, expected 3"));
    assert!(ask(Expected::Numbers(8)).findings[0].evidence.contains("9 numbers"));
}

#[test]
fn a_declaration_that_fits_nothing_is_a_finding() {
    let ask = |change: fn(&mut Parameter)| {
        let mut all = parameters();
        change(&mut all[0].0);
        let mut subject = Closure::new(all, |w, n| Ok(regression(w, n)));
        let verdict = judge(&mut subject, &Questions::default()).unwrap();
        verdict.findings.first().map(|f| f.evidence.clone()).unwrap_or_default()
    };
    assert!(ask(|w| w.expectation = Expectation::Tied("bias".to_owned())).contains("`bias`, which is not among"));
    assert!(ask(|w| w.expectation = Expectation::ZeroRows(vec![true; 2])).contains("2 rows"));
    assert!(ask(|w| w.units = Some(4)).contains("6 numbers cannot be divided"));
    assert_eq!(ask(|w| w.units = Some(2)), "");
}

#[test]
fn tied_frozen_and_held_parameters_are_watched_through_the_steps() {
    let run = |expectation: Expectation, shift: f64| {
        let mut all = parameters();
        let twin = all[1].1.clone();
        all.push((Parameter::new("c", [3]).in_precision(Precision::F64).expecting(expectation), twin));
        let pass = |w: &[Vec<f64>], n: usize| {
            let (loss, mut gradients) = regression(w, n);
            gradients.push(None);
            Ok::<_, ModelFault>((loss, gradients))
        };
        let mut subject = Closure::new(all, pass).optimizer(move |w, g| {
            for (w, g) in w.iter_mut().zip(g).filter_map(|(w, g)| g.as_ref().map(|g| (w, g))) {
                w.iter_mut().zip(g).for_each(|(w, g)| *w -= 0.01 * g);
            }
            w[2] = if shift == 0.0 { w[1].clone() } else { w[2].iter().map(|x| x + (shift - 1.0)).collect() };
            Ok(())
        });
        let verdict = judge(&mut subject, &Questions::default()).unwrap();
        verdict.findings.first().map(|f| (f.parameter.clone(), f.question))
    };
    let tied = || Expectation::Tied("b".to_owned());
    let moved = Some(("c".to_owned(), Question::Applied));
    assert_eq!(run(tied(), 0.0), None);
    assert_eq!(run(tied(), 1.0), moved); // it stays while its twin moves
    assert_eq!(run(Expectation::Frozen, 1.0), None);
    assert_eq!(run(Expectation::Held, 1.0), None);
    assert_eq!(run(Expectation::Frozen, 1.5), moved);
    assert_eq!(run(Expectation::Held, 1.5), moved);
}

#[test]
fn a_kink_is_a_remark_and_not_a_fault() {
    let relu = |w: &[Vec<f64>], _: usize| {
        let x = w[0][0] - 0.5; // the kink lies exactly at the value
        Ok::<_, ModelFault>((x.max(0.0) + w[0][1], vec![Some(vec![f64::from(x > 0.0), 1.0])]))
    };
    let parameter = Parameter::new("w", [2]).in_precision(Precision::F64);
    let mut subject = Closure::new(vec![(parameter, vec![0.5 + 1e-7, 1.0])], relu);
    let verdict = judge(&mut subject, &Questions::default()).unwrap();
    assert!(verdict.passed(), "{}", verdict.report());
}

#[test]
fn nothing_shown_is_no_pass_and_a_failing_model_is_an_error() {
    let mut empty = Closure::new(Vec::new(), |_, _| Ok((0.0, Vec::new())));
    let verdict = judge(&mut empty, &Questions::default()).unwrap();
    assert!(!verdict.passed() && verdict.report().contains("nothing was checked"));
    let mut failing = Closure::new(parameters(), |_, _| Err("out of memory".into()));
    assert_eq!(judge(&mut failing, &Questions::default()).unwrap_err().to_string(), "out of memory");
}

#[test]
fn a_model_that_fails_in_a_later_pass_keeps_what_was_found_in_the_first() {
    let mut calls = 0;
    let mut subject = Closure::new(parameters(), move |w, n| {
        calls += 1;
        let (loss, gradients) = regression(w, n);
        if calls > 1 { Err("the tape is gone".into()) } else { Ok((loss, vec![None, gradients[1].clone()])) }
    });
    let verdict = judge(&mut subject, &Questions::default()).unwrap();
    let found: Vec<_> = verdict.findings.iter().map(|f| (f.parameter.as_str(), f.question)).collect();
    assert_eq!(found, [("w", Question::Present), ("the model", Question::Repeatable)]);
    assert!(verdict.report().contains("the tape is gone"), "{}", verdict.report());
}

#[test]
#[should_panic(expected = "w (present): has no gradient")]
fn the_test_helper_panics_with_the_report() {
    let mut subject = Closure::new(parameters(), |w, n| {
        let (loss, mut gradients) = regression(w, n);
        gradients[0] = None;
        Ok((loss, gradients))
    });
    assert_learns(&mut subject);
}

#[test]
fn a_verdict_survives_its_file() {
    let verdict = tampered(|_, g, _| g[0] = None, |_, _, _| {});
    let text = serde_json::to_string(&verdict).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
}

proptest! {
    #[test]
    fn a_gradient_off_by_any_visible_factor_is_never_right(log in 0.0001f64..3.0, up in any::<bool>(), b in any::<bool>()) {
        let factor = if up { log.exp() } else { (-log).exp() };
        let index = usize::from(b);
        let mut subject = Closure::new(parameters(), move |w, n| {
            let (loss, mut gradients) = regression(w, n);
            scale(&mut gradients, index, factor);
            Ok((loss, gradients))
        });
        let verdict = judge(&mut subject, &Questions::default()).unwrap();
        prop_assert_eq!(verdict.findings.len(), 1);
        prop_assert_eq!((verdict.findings[0].parameter.as_str(), verdict.findings[0].question), (["w", "b"][index], Question::Right));
    }
}
