//! Tests of the fault corpus: its size, and that every case comes out as it should.

use shikha::arbiter::faults::{CaseScore, Kind, census, looks_ill, score};

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
    let data = score.of(Kind::Data);
    assert_eq!((data.1, data.2), (2, 0), "wrong data is out of scope");
}
