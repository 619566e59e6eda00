//! A dumped step of a healthy model passes; one through the fused norm does not.

use arbiter_tensors::dump_step;
use shikha::arbiter::Verdict;
use shikha::arbiter::tensors::{Dump, check_dump};

fn verdict(fused: bool) -> Verdict {
    let directory = tempfile::tempdir().unwrap();
    dump_step(directory.path(), fused).unwrap();
    let file = |name: &str| directory.path().join(format!("{name}.safetensors"));
    let dump = Dump {
        parameters: file("parameters"),
        gradients: vec![file("gradients")],
        after: vec![file("after")],
        ..Dump::default()
    };
    check_dump(&dump).unwrap()
}

#[test]
fn every_parameter_learns() {
    let verdict = verdict(false);
    assert!(verdict.passed(), "{}", verdict.report());
}

#[test]
fn the_fused_norm_is_caught() {
    let verdict = verdict(true);
    print!("{}", verdict.report());
    let missing: Vec<&str> = verdict.findings.iter().map(|f| f.parameter.as_str()).collect();
    assert_eq!(missing, ["first", "gain"]);
}
