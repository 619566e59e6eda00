//! Tests of the command as a user meets it: what it prints, how it refuses, how it stops.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn shikha(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shikha"));
    command.args(arguments).env_remove("SHIKHA_MIRROR").stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    shikha(arguments).output().unwrap()
}

/// Runs a command that must fail, and gives its last line on standard error.
fn refusal(arguments: &[&str]) -> String {
    let output = output(arguments);
    assert!(!output.status.success(), "{arguments:?} should be refused");
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("shikha: ")).collect();
    assert_eq!(lines.len(), 1, "one clear line, not: {text}");
    assert!(!text.contains("panicked"), "{text}");
    lines[0].to_owned()
}

/// A recipe file of a few seconds, with `edit` applied to its text.
fn recipe(dir: &Path, edit: impl FnOnce(String) -> String) -> PathBuf {
    let text = include_str!("../../recipes/pocket.toml");
    let text = text.replace("vocabulary = 8192", "vocabulary = 1000").replace("layers = 2", "layers = 1");
    let text = text.replace("hidden = 96", "hidden = 32").replace("checkpoint_every = 40", "checkpoint_every = 50");
    let path = dir.join("small.toml");
    std::fs::write(&path, edit(text)).unwrap();
    path
}

#[test]
fn every_bad_input_gets_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().join("run");
    let run = run_dir.to_str().unwrap();
    let refused = |edit: &dyn Fn(String) -> String| {
        let path = recipe(dir.path(), edit);
        refusal(&["corpus", path.to_str().unwrap(), "--run-dir", run])
    };
    assert!(refusal(&["corpus", "pokket"]).contains("no recipe called `pokket`"));
    assert!(refusal(&["corpus", "nowhere/pocket.toml"]).contains("cannot read nowhere/pocket.toml"));
    assert!(refused(&|text| text.replace("[train]", "[train]\nstpes = 3")).contains("stpes"));
    assert!(refused(&|text| text.replace("steps = 160", "steps = -1")).contains("line"));
    assert!(refused(&|text| text.replace("kv_heads = 2", "kv_heads = 3")).contains("model.kv_heads"));
    assert!(refused(&|text| text.replace("bn = 0.7", "bn = 0.7\nfr = 0.1")).contains("`fr`"));
    assert!(refused(&|text| text.replace("manifest = \"pocket\"", "manifest = \"poket\"")).contains("poket"));
    assert!(!run_dir.join("tokenizer.json").exists());
    assert!(refusal(&["resume", "nowhere"]).contains("nowhere"));
    assert!(refusal(&["generate", "--run-dir", "nowhere"]).contains("nowhere"));
    assert!(!output(&["corpus", "--no-such-flag"]).status.success());
}

#[test]
fn a_run_directory_that_is_held_or_cannot_be_made_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let held = shikha::artifact::RunDir::open(&dir.path().join("held"), false).unwrap();
    let path = recipe(dir.path(), |text| text);
    let path = path.to_str().unwrap();
    let message = refusal(&["corpus", path, "--run-dir", held.root().to_str().unwrap()]);
    assert!(message.contains("in use by another process"), "{message}");
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let below = file.join("run");
    let message = refusal(&["corpus", path, "--run-dir", below.to_str().unwrap()]);
    assert!(message.contains("cannot create the directory"), "{message}");
}

#[test]
fn a_write_that_fails_half_way_keeps_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().join("run");
    let first = recipe(dir.path(), |text| text);
    let arguments = |path: &Path| format!("corpus {} --run-dir {}", path.display(), run_dir.display());
    // Files may not grow past some tens of kilobytes, as on a disk that is nearly full.
    let limited = |path: &Path, limit: &str| {
        let script = format!("trap '' XFSZ; {limit} exec {} {}", env!("CARGO_BIN_EXE_shikha"), arguments(path));
        Command::new("sh").args(["-c", &script]).env_remove("SHIKHA_MIRROR").output().unwrap()
    };
    assert!(limited(&first, "").status.success());
    let train = run_dir.join("corpus/train.jsonl");
    let before = std::fs::read(&train).unwrap();
    let second = recipe(dir.path(), |text| text.replace("held_out = 0.1", "held_out = 0.2"));
    let failed = limited(&second, "ulimit -f 60;");
    let message = String::from_utf8(failed.stderr).unwrap();
    assert!(!failed.status.success() && message.contains("shikha: cannot write"), "{message}");
    assert!(std::fs::read(&train).unwrap() == before, "the old text is whole");
    let names: Vec<_> = std::fs::read_dir(run_dir.join("corpus")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "no rubbish: {names:?}");
    assert!(limited(&second, "").status.success());
    assert!(std::fs::read(&train).unwrap() != before);
}

#[test]
fn asked_to_stop_it_saves_and_resumes_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let path = recipe(dir.path(), |text| text);
    let [stopped, whole] = ["stopped", "whole"].map(|name| dir.path().join(name));
    let train = |run_dir: &Path| {
        ["train".to_owned(), path.display().to_string(), "--run-dir".to_owned(), run_dir.display().to_string()]
    };
    let arguments = train(&stopped);
    let mut child =
        shikha(&arguments.each_ref().map(String::as_str)).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let metrics = stopped.join("metrics.jsonl");
    let started = Instant::now();
    while std::fs::read_to_string(&metrics).map_or(0, |text| text.lines().count()) < 5 {
        assert!(started.elapsed() < Duration::from_secs(120), "training does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut text).unwrap();
    assert!(!status.success() && text.contains("everything is saved") && text.contains("shikha resume"), "{text}");
    let resumed = output(&["resume", stopped.to_str().unwrap()]);
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert!(String::from_utf8_lossy(&resumed.stdout).contains("160 steps"));
    assert!(output(&train(&whole).each_ref().map(String::as_str)).status.success());
    for file in ["model.safetensors", "optimizer.safetensors"] {
        let read = |run: &Path| std::fs::read(run.join("checkpoints/step-000160").join(file)).unwrap();
        assert!(read(&stopped) == read(&whole), "{file}");
    }
    generates_from(&whole);
}

fn generates_from(run: &Path) {
    let run = run.to_str().unwrap();
    let generate = |seed: &str| {
        let result = output(&["generate", "আমি", "--run-dir", run, "--tokens", "12", "--seed", seed]);
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        String::from_utf8(result.stdout).unwrap()
    };
    let texts = ["1", "2", "3", "4", "5"].map(generate);
    assert!(texts.iter().all(|text| text.starts_with("আমি")), "{texts:?}");
    assert!(texts.iter().any(|text| text.len() > "আমি\n".len()), "{texts:?}");
    assert!(texts.iter().any(|text| *text != texts[0]), "other seeds, other texts");
    assert_eq!(texts[3], generate("4"));
    let long = "আমি ".repeat(300);
    assert!(refusal(&["generate", &long, "--run-dir", run]).contains("context of 128"));
    assert!(refusal(&["generate", "a", "--run-dir", run, "--top-p", "0"]).contains("top_p"));
    // A flipped bit that leaves every weight finite, and another tokenizer of the same size.
    for (file, word) in [("checkpoints/step-000160/model.safetensors", "altered"), ("tokenizer.json", "another")] {
        let path = Path::new(run).join(file);
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        match file {
            "tokenizer.json" => bad.push(b'\n'),
            _ => *bad.last_mut().unwrap() ^= 0x80,
        }
        std::fs::write(&path, bad).unwrap();
        let message = refusal(&["generate", "a", "--run-dir", run]);
        assert!(message.contains(word), "{message}");
        std::fs::write(&path, good).unwrap();
    }
}

/// A rank file of the 256 bytes, `ab` and `ক`, in base64 of the standard.
fn rank_file(dir: &Path) -> PathBuf {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |value: u8| DIGITS[usize::from(value)] as char;
    let single = |byte: u8| format!("{}{}== {byte}\n", digit(byte >> 2), digit((byte & 3) << 4));
    let path = dir.join("gpt2.tiktoken");
    std::fs::write(&path, (0..=255).map(single).collect::<String>() + "YWI= 256\n4KaV 257\n").unwrap();
    path
}

#[test]
fn fertility_measures_the_users_own_tokenizer_and_text() {
    let dir = tempfile::tempdir().unwrap();
    let (ranks, text) = (rank_file(dir.path()), dir.path().join("text.txt"));
    std::fs::write(&text, "ab ab\n\nক\r\nকি\n").unwrap();
    let (ranks, text) = (ranks.to_str().unwrap(), text.to_str().unwrap());
    let measure = |more: &[&str]| {
        let output = output(&[&["fertility", "measure", text, "--tokenizer", ranks], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = measure(&["--other", ranks, "--pattern", "gpt2"]);
    assert!(shown.contains("3 lines, 4 words, 8 characters, 14 bytes"), "{shown}");
    assert!(shown.contains("characters/token") && shown.contains("tokenizer 2"), "{shown}");
    assert!(shown.contains("`ক` 1") && shown.contains("`<0xE0>` 1"), "{shown}");
    assert!(shown.contains("advice: 37.5 % of the tokens are lone bytes"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&measure(&["--json", "--top", "1"])).unwrap();
    assert_eq!(json[0]["fertility"]["characters_per_token"]["value"], 1.0);
    assert_eq!((json[0]["kind"].as_str(), json[0]["vocabulary"].as_u64()), (Some("tiktoken"), Some(258)));
    assert_eq!(json[0]["splitters"].as_array().unwrap().len(), 1);
}

#[test]
fn fertility_refuses_bad_files_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let (ranks, text) = (rank_file(dir.path()), dir.path().join("text.txt"));
    let (ranks, text) = (ranks.to_str().unwrap(), text.to_str().unwrap());
    let refused = |bytes: &[u8], tokenizer: &str| {
        std::fs::write(text, bytes).unwrap();
        refusal(&["fertility", "measure", text, "--tokenizer", tokenizer])
    };
    assert!(refused(b"", ranks).contains("text.txt: there are no words"));
    assert!(refused(b" \n\n", ranks).contains("text.txt: there are no words"));
    assert!(refused(b"ab\n\xFF", ranks).contains("line 2, byte 1 is not UTF-8"));
    assert!(refused(b"ab", text).contains("text.txt: cannot use it as a tiktoken rank file"));
    assert!(refused(b"ab", "nowhere.json").contains("cannot read nowhere.json"));
    assert!(
        refusal(&["fertility", "measure", "nowhere.txt", "--tokenizer", ranks]).contains("cannot read nowhere.txt")
    );
    let pattern = ["fertility", "measure", text, "--tokenizer", ranks, "--pattern", "words"];
    assert!(refusal(&pattern).contains("no pre-tokenizer called `words`"));
    assert!(refusal(&["fertility", "pokket"]).contains("no recipe called `pokket`"));
}

#[cfg(unix)]
#[test]
fn a_reader_that_stops_ends_the_command_without_a_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shikha"))
        .args(["plan", "pocket"]) // measures the peak before it prints
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(!output.status.success());
}

#[test]
fn claims_and_figures_come_from_what_is_stored() {
    let nowhere = tempfile::tempdir().unwrap();
    let run = |directory: &Path, arguments: &[&str]| shikha(arguments).current_dir(directory).output().unwrap();
    let text = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    let empty = run(nowhere.path(), &["claims"]);
    assert!(empty.status.success());
    let claims = shikha::report::Ledger::built_in().unwrap().claims.len();
    assert!(text(&empty).contains("reference") && text(&empty).contains("reproduce"));
    assert!(text(&empty).matches("measured:").count() >= 2 * claims);
    let refused = run(nowhere.path(), &["figures"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && message.starts_with("shikha: cannot read checkpoints/reference"), "{message}");
    assert_eq!(std::fs::read_dir(nowhere.path()).unwrap().count(), 0, "nothing was written");

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let stored = run(root, &["claims"]);
    assert!(text(&stored).contains("Reference run: recipe `small`"), "{}", text(&stored));
    let checked = run(root, &["figures", "--check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[cfg(unix)]
#[test]
fn a_line_of_a_hundred_megabytes_is_measured_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("line.txt");
    let words = "আমার সোনার বাংলা আমি তোমায় ভালোবাসি, the quick brown fox. ";
    let times = 100_000_000 / words.len();
    std::fs::write(&text, words.repeat(times)).unwrap();
    let tokenizer = Path::new(env!("CARGO_MANIFEST_DIR")).join("checkpoints/tokenizer/tokenizer.json");
    // Address space in kilobytes: the program, its threads and the tokenizer take some 300 MB of it.
    let command = format!(
        "ulimit -v 700000; exec {} --threads 2 fertility measure {} --tokenizer {} --json",
        env!("CARGO_BIN_EXE_shikha"),
        text.display(),
        tokenizer.display()
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fertility = &report[0]["fertility"];
    let (texts, characters) = (fertility["texts"].as_u64(), fertility["characters"].as_u64());
    assert_eq!((texts, characters), (Some(1), Some((times * words.chars().count()) as u64)), "{fertility}");
    assert_eq!(fertility["round_trip_failures"].as_u64(), Some(0));
}
