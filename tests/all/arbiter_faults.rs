//! Tests of the fault corpus: its size, and that every case comes out as it should.

use shikha::arbiter::Question;
use shikha::arbiter::faults::{CaseScore, Kind, Score, census, looks_ill, score};
use shikha::report::arbiter as report;

#[test]
fn the_corpus_is_as_large_as_it_says() {
    let census = census();
    let in_scope: usize = Kind::IN_SCOPE.iter().map(|kind| census[kind]).sum();
    assert!(in_scope >= 40 && census[&Kind::Healthy] >= 12 && census[&Kind::Data] >= 1, "{census:?}");
    assert!(Kind::IN_SCOPE.iter().all(|kind| census[kind] >= 3), "{census:?}");
}

#[test]
fn a_curve_that_falls_looks_well_and_one_that_rises_or_breaks_looks_ill() {
    assert!(!looks_ill(&[4.0, 3.0, 2.0, 1.0]));
    assert!(looks_ill(&[1.0, 2.0, 3.0, 4.0]) && looks_ill(&[4.0, f64::NAN, 2.0, 1.0]));
}

#[test]
fn every_fault_is_caught_and_no_healthy_model_raises_an_alarm() {
    let score = score(1, |_| {}).unwrap();
    let told =
        |case: &&CaseScore| format!("{}, {}: {}", case.family, case.title, case.surprise.as_deref().unwrap_or(""));
    let alarms: Vec<String> = score.false_alarms().iter().map(told).collect();
    let missed: Vec<String> = score.missed().iter().map(told).collect();
    let nothing = alarms.is_empty() && missed.is_empty();
    assert!(nothing, "false alarms:\n{}\nmissed:\n{}", alarms.join("\n"), missed.join("\n"));
    assert!(score.cases.iter().all(|case| case.surprise.is_none()), "a surprise is another outcome than is wanted");
    let data = score.of(Kind::Data);
    assert_eq!((data.1, data.2), (2, 0), "wrong data is out of scope");
}

#[test]
fn the_figure_and_the_table_hold_the_counts() {
    let case = |kind, arbiter, presence| CaseScore {
        title: "a case".to_owned(),
        kind,
        family: "decoder".to_owned(),
        seeds: 4,
        arbiter,
        presence,
        curve: 0,
        questions: [Question::Present].into(),
        surprise: Some("what it said\n".to_owned()),
    };
    let cases = vec![case(Kind::Healthy, 1, 0), case(Kind::CutGraph, 4, 3), case(Kind::State, 2, 0)];
    let score = Score { seeds: 4, sizes: [10, 20], cases, seconds: 0.1, steps: 50.0 };
    assert_eq!((score.in_scope(), score.of(Kind::Healthy)), ((2, 8, 6, 3, 0), (1, 4, 1, 0, 0)));
    let text = report::summary(&score);
    for said in ["caught 6 of 8 trials of 2 faults", "1 false alarms in 4", "missed at 2 of 4", "false alarm at 1 of 4"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let figure = report::figure(&score).unwrap();
    assert!(
        figure.csv.contains("state,1,4,arbiter,2,0.5,") && figure.svg.contains("10 to 20 parameters"),
        "{}",
        figure.csv
    );
    assert_eq!(report::figure(&score).unwrap(), figure);
    assert!(report::table(&score).to_markdown().contains("| cut graph | 1 | 4 | 4 of 4 | 3 of 4 | 0 of 4 | present |"));
}
