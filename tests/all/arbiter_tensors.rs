//! Tests of the arbiter on dumped files: healthy, each fault, and every way a dump can be malformed.

use proptest::prelude::*;
use safetensors::{Dtype, tensor::TensorView};
use shikha::arbiter::tensors::{Dump, DumpError, check_dump};
use shikha::arbiter::{Question, Verdict};
use std::path::{Path, PathBuf};

type Tensors = Vec<(&'static str, Vec<usize>, Vec<f32>)>;

fn write(directory: &Path, file: &str, tensors: &Tensors) -> PathBuf {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(.., v)| v.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, shape, _), bytes)| (*name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    let path = directory.join(file);
    std::fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    path
}

fn parameters() -> Tensors {
    vec![("b", vec![2], vec![0.1, -0.2]), ("w", vec![2, 3], vec![0.5, -0.4, 0.3, 0.2, -0.1, 0.6])]
}

fn gradients() -> Tensors {
    vec![("b", vec![2], vec![0.3, 0.1]), ("w", vec![2, 3], vec![1.0, 2.0, -1.0, 0.5, 0.25, 1.5])]
}

/// Gradient descent at a rate of 0.01.
fn stepped() -> Tensors {
    let mut after = parameters();
    for ((.., w), (.., g)) in after.iter_mut().zip(gradients()) {
        w.iter_mut().zip(g).for_each(|(w, g)| *w -= 0.01 * g);
    }
    after
}

struct Files {
    directory: tempfile::TempDir,
    dump: Dump,
}

fn files(parameters: &Tensors, gradients: &Tensors, after: Option<&Tensors>) -> Files {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let dump = Dump {
        parameters: write(at, "parameters.safetensors", parameters),
        gradients: vec![write(at, "gradients.safetensors", gradients)],
        after: after.map(|after| write(at, "after.safetensors", after)).into_iter().collect(),
        ..Dump::default()
    };
    Files { directory, dump }
}

fn judge(parameters: &Tensors, gradients: &Tensors, after: Option<&Tensors>) -> Verdict {
    check_dump(&files(parameters, gradients, after).dump).unwrap()
}

fn only(verdict: &Verdict, parameter: &str, question: Question, evidence: &str) {
    assert_eq!(verdict.findings.len(), 1, "{}", verdict.report());
    let finding = &verdict.findings[0];
    assert_eq!((finding.parameter.as_str(), finding.question), (parameter, question), "{}", verdict.report());
    assert!(finding.evidence.contains(evidence), "{}", verdict.report());
}

#[test]
fn a_healthy_dump_passes_and_says_what_could_not_be_asked() {
    let verdict = judge(&parameters(), &gradients(), Some(&stepped()));
    assert!(verdict.passed(), "{}", verdict.report());
    assert_eq!(verdict.asked, [Question::Present, Question::Finite, Question::NonZero, Question::Applied]);
    assert!(verdict.report().contains("not asked: right, repeatable"), "{}", verdict.report());
}

#[test]
fn missing_not_finite_zero_row_and_not_applied_are_told_apart() {
    let mut missing = gradients();
    missing.remove(0);
    only(&judge(&parameters(), &missing, None), "b", Question::Present, "has no gradient");
    let mut infinite = gradients();
    infinite[1].2[4] = f32::NEG_INFINITY;
    only(&judge(&parameters(), &infinite, None), "w", Question::Finite, "-inf at position 4");
    let mut zero_row = gradients();
    zero_row[1].2[3..].fill(0.0);
    only(&judge(&parameters(), &zero_row, None), "w", Question::NonZero, "1 of 2 rows");
    let mut unmoved = stepped();
    unmoved[0] = parameters().remove(0);
    only(&judge(&parameters(), &gradients(), Some(&unmoved)), "b", Question::Applied, "none of its 2 numbers");
}

#[test]
fn a_second_pass_that_differs_is_not_repeatable() {
    let mut files = files(&parameters(), &gradients(), None);
    files.dump.again = Some(write(files.directory.path(), "again.safetensors", &gradients()));
    let verdict = check_dump(&files.dump).unwrap();
    assert!(verdict.passed() && verdict.asked.contains(&Question::Repeatable), "{}", verdict.report());
    let mut other = gradients();
    other[1].2[0] += 1e-6;
    files.dump.again = Some(write(files.directory.path(), "again.safetensors", &other));
    only(&check_dump(&files.dump).unwrap(), "w", Question::Repeatable, "1 of 6 numbers");
}

#[test]
fn a_second_step_is_judged_by_its_own_gradients() {
    let mut files = files(&parameters(), &gradients(), Some(&stepped()));
    let at = files.directory.path();
    files.dump.gradients.push(write(at, "gradients2.safetensors", &gradients()));
    let mut second = stepped();
    second[1].2.iter_mut().zip(&gradients()[1].2).for_each(|(w, g)| *w -= 0.01 * g);
    files.dump.after.push(write(at, "after2.safetensors", &second)); // `b` stayed where it was
    only(&check_dump(&files.dump).unwrap(), "b", Question::Applied, "in step 2");
}

#[test]
fn files_that_do_not_go_together_are_refused() {
    let mut files = files(&parameters(), &gradients(), Some(&stepped()));
    files.dump.after.push(files.dump.after[0].clone());
    let error = check_dump(&files.dump).unwrap_err().to_string();
    assert!(error.contains("after 2 steps and the gradients of 1"), "{error}");
    files.dump.after.clear();
    files.dump.gradients.push(files.dump.gradients[0].clone());
    assert!(matches!(check_dump(&files.dump), Err(DumpError::Steps { after: 0, gradients: 2 })));
}

#[test]
fn declarations_are_read_and_a_wrong_one_is_refused() {
    let mut without = gradients();
    without.remove(0);
    let mut files = files(&parameters(), &without, None);
    let path = files.directory.path().join("expect.toml");
    let mut ask = |text: &str| {
        std::fs::write(&path, text).unwrap();
        files.dump.declarations = Some(path.clone());
        check_dump(&files.dump)
    };
    assert!(ask("[expect]\nb = \"frozen\"\n").unwrap().passed());
    assert!(ask("[expect]\nb = { tied = \"w\" }\n").unwrap().passed());
    assert!(!ask("count = 3\n[expect]\nb = \"frozen\"\n").unwrap().passed());
    assert_eq!(ask("names = [\"head\"]\n[expect]\nb = \"frozen\"\n").unwrap().findings[0].parameter, "head");
    for (text, said) in [
        ("[expect]\nbias = \"frozen\"\n", "declares `bias`"),
        ("[expect]\nb = \"perhaps\"\n", "unknown variant `perhaps`"),
        ("ignore = true\n", "unknown field `ignore`"),
        ("[expect\n", "expect.toml"),
    ] {
        let error = ask(text).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn malformed_dumps_get_a_clear_verdict_or_error() {
    // Another shape of as many numbers, another length, and a tensor that no parameter has.
    let mut other = gradients();
    other[1].1 = vec![3, 2];
    only(&judge(&parameters(), &other, None), "w", Question::Present, "shape [3, 2], expected [2, 3]");
    let mut longer = gradients();
    longer[0] = ("b", vec![3], vec![0.1; 3]);
    only(&judge(&parameters(), &longer, None), "b", Question::Present, "3 numbers, expected 2");
    let mut stranger = gradients();
    stranger.push(("x", vec![1], vec![1.0]));
    only(&judge(&parameters(), &stranger, None), "x", Question::Present, "not among the parameters");
    let mut nan = parameters();
    nan[0].2[1] = f32::NAN;
    only(&judge(&nan, &gradients(), None), "b", Question::Finite, "is NaN itself at position 1");
    let mut absent = stepped();
    absent.remove(1);
    let error = check_dump(&files(&parameters(), &gradients(), Some(&absent)).dump).unwrap_err();
    assert!(matches!(&error, DumpError::After { name, .. } if name == "w"), "{error}");
    let mut reshaped = stepped();
    reshaped[0] = ("b", vec![1, 2], vec![0.0; 2]);
    let error = check_dump(&files(&parameters(), &gradients(), Some(&reshaped)).dump).unwrap_err().to_string();
    assert!(error.contains("[1, 2]") && error.contains("[2]"), "{error}");
    assert!(!judge(&Vec::new(), &Vec::new(), None).passed(), "an empty dump is no pass");
}

#[test]
fn integers_missing_files_and_truncated_ones_are_errors() {
    let files = files(&parameters(), &gradients(), None);
    let path = &files.dump.gradients[0];
    let view = TensorView::new(Dtype::I64, vec![1], &[0; 8]).unwrap();
    let whole = std::fs::read(path).unwrap();
    std::fs::write(path, safetensors::serialize([("b", view)], None).unwrap()).unwrap();
    let error = check_dump(&files.dump).unwrap_err().to_string();
    assert!(error.contains("`b` is of I64") && error.contains("expected F64"), "{error}");
    for length in [0, 1, 7, 8, 9, whole.len() / 2, whole.len() - 1] {
        std::fs::write(path, &whole[..length]).unwrap();
        let error = check_dump(&files.dump).unwrap_err().to_string();
        assert!(error.contains("not a whole safetensors file"), "{length} bytes: {error}");
    }
    std::fs::remove_file(path).unwrap();
    assert!(check_dump(&files.dump).unwrap_err().to_string().contains("cannot read"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_flipped_byte_of_a_dump_is_a_panic(at in 0usize..300, byte in any::<u8>()) {
        let files = files(&parameters(), &gradients(), Some(&stepped()));
        let mut bytes = std::fs::read(&files.dump.gradients[0]).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        std::fs::write(&files.dump.gradients[0], &bytes).unwrap();
        let _ = check_dump(&files.dump);
    }
}
