//! The parser that `SHIKHA_FUZZ_ONLY` names, under libFuzzer: the closures are those of `tests/all/robust_parsers.rs`.
#![no_main]
// Of the files of the tests most is not asked for here.
#![allow(dead_code, unused_imports)]

#[path = "../../tests/all/parquet_file.rs"]
mod parquet_file;
#[path = "../../tests/all/robust_parsers.rs"]
mod robust_parsers;
#[path = "../../tests/all/tokenizer_load.rs"]
mod tokenizer_load;
#[path = "../../tests/all/train.rs"]
mod train;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex};

/// What the tests hand their closures to: here the one that is wanted gets the inputs, until the process ends.
mod robust_fuzz {
    use std::path::Path;

    pub fn fuzz(name: &str, own: &[&[u8]], mut parse: impl FnMut(&[u8]) -> bool) {
        if std::env::var("SHIKHA_FUZZ_ONLY").is_ok_and(|only| only == name) {
            // The good files as this program and this machine make them: libFuzzer lists the folder after this.
            let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
            std::fs::create_dir_all(&corpus).unwrap();
            own.iter()
                .enumerate()
                .for_each(|(i, good)| std::fs::write(corpus.join(format!("good-{i}")), good).unwrap());
            super::answer(|input| {
                parse(input);
            });
        }
    }
}

/// Who gives inputs and hears that one is through.
struct Fuzzer {
    inputs: Sender<Vec<u8>>,
    through: Receiver<()>,
}

/// Who takes them.
struct Parser {
    inputs: Receiver<Vec<u8>>,
    through: Sender<()>,
}

/// The closure lives on a thread of its own, since it borrows what its test made: libFuzzer calls a plain function.
static FUZZER: LazyLock<Mutex<Fuzzer>> = LazyLock::new(|| {
    let ((inputs, taken), (answered, through)) = (channel(), channel());
    *PARSER.lock().unwrap() = Some(Parser { inputs: taken, through: answered });
    std::thread::spawn(|| {
        let tests = [
            robust_parsers::recipes_manifests_ledgers_and_metrics,
            robust_parsers::parquet_records_and_claims,
            robust_parsers::shards_and_documents,
            robust_parsers::tokenizers,
            robust_parsers::checkpoints_models_and_dumps,
            robust_parsers::every_reader_of_training_text,
            robust_parsers::every_reader_of_other_text,
        ];
        tests.iter().for_each(|test| test());
        panic!("SHIKHA_FUZZ_ONLY names no parser: the folders of fuzz/seeds are called as they are");
    });
    // What its test makes first takes its time, which is not that of an input.
    through.recv().unwrap();
    Mutex::new(Fuzzer { inputs, through })
});
static PARSER: Mutex<Option<Parser>> = Mutex::new(None);

/// Gives the inputs to the parser. libFuzzer's hook would end the process at every panic: one that the parser itself
/// catches, since a dependency panics, is an answer.
fn answer(mut parse: impl FnMut(&[u8])) {
    static SAID: Mutex<String> = Mutex::new(String::new());
    let parser = PARSER.lock().unwrap().take().expect("one parser has the name");
    std::panic::set_hook(Box::new(|panic| *SAID.lock().unwrap() = panic.to_string()));
    let _ = parser.through.send(());
    for input in parser.inputs {
        if catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err() {
            eprintln!("{}", SAID.lock().unwrap());
            std::process::abort();
        }
        let _ = parser.through.send(());
    }
}

libfuzzer_sys::fuzz_target!(init: { LazyLock::force(&FUZZER); }, |input: &[u8]| {
    let fuzzer = FUZZER.lock().unwrap();
    fuzzer.inputs.send(input.to_vec()).unwrap();
    fuzzer.through.recv().unwrap();
});
