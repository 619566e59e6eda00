//! Tests of `arbiter`: each question on planted faults and on healthy gradients.

use shikha::arbiter::{Expectation, Gradient, Parameter, Question, Subject, Verdict, judge};

struct Shown(Vec<(Parameter, Option<Vec<f64>>)>);

impl Subject for Shown {
    fn show(&self, look: &mut dyn FnMut(&Parameter, Option<Gradient>)) {
        for (parameter, gradient) in &self.0 {
            look(parameter, gradient.as_deref().map(Gradient::F64));
        }
    }
}

fn verdict(expectation: Expectation, gradient: Option<Vec<f64>>) -> Verdict {
    let parameter = Parameter { name: "w".to_owned(), shape: vec![3, 2], expectation };
    judge(&Shown(vec![(parameter, gradient)]))
}

fn question(verdict: &Verdict) -> Option<Question> {
    assert!(verdict.findings.iter().all(|f| f.parameter == "w" && verdict.report().contains(&f.evidence)));
    verdict.findings.first().map(|f| f.question)
}

#[test]
fn each_question_finds_its_fault_and_names_the_parameter() {
    use Expectation::{Frozen, Trainable, ZeroRows};
    let healthy = vec![1.0, 0.0, 0.0, -1e-30, 3.0, 4.0];
    let with = |i: usize, x: f64| {
        let mut values = healthy.clone();
        values[i] = x;
        Some(values)
    };
    assert_eq!(question(&verdict(Trainable, Some(healthy.clone()))), None);
    assert_eq!(question(&verdict(Trainable, None)), Some(Question::Present));
    assert_eq!(question(&verdict(Trainable, Some(vec![1.0; 5]))), Some(Question::Present));
    assert_eq!(question(&verdict(Trainable, with(2, f64::NAN))), Some(Question::Finite));
    assert_eq!(question(&verdict(Trainable, with(5, f64::INFINITY))), Some(Question::Finite));
    assert_eq!(question(&verdict(Trainable, Some(vec![0.0; 6]))), Some(Question::NonZero));
    assert_eq!(question(&verdict(Trainable, with(3, 0.0))), Some(Question::NonZero));
    assert_eq!(question(&verdict(ZeroRows(vec![false, true, false]), with(3, 0.0))), None);
    assert_eq!(question(&verdict(ZeroRows(vec![true, false, false]), with(3, 0.0))), Some(Question::NonZero));
    assert_eq!(question(&verdict(Frozen, None)), None);
    assert_eq!(question(&verdict(Frozen, Some(healthy.clone()))), Some(Question::Present));
}

#[test]
fn nothing_shown_is_no_pass() {
    let empty = judge(&Shown(Vec::new()));
    assert!(!empty.passed() && empty.report().contains("nothing was checked"));
}

#[test]
fn the_report_counts_and_the_norms_are_right() {
    let verdict = verdict(Expectation::Trainable, Some(vec![3.0, 0.0, 4.0, 0.0, 12.0, 0.0]));
    assert!(verdict.passed());
    assert_eq!((verdict.parameters, verdict.numbers), (1, 6));
    assert_eq!(verdict.norms, [("w".to_owned(), 13.0)]);
    assert!(verdict.report().contains("1 parameters, 6 numbers"), "{}", verdict.report());
}
