//! Tests of `tokenizer`: the trap and the cure on real text, exact round trips, wrong files.

use lingua_bengali_language_model::BENGALI_TESTDATA_DIRECTORY;
use lingua_english_language_model::ENGLISH_TESTDATA_DIRECTORY;
use proptest::prelude::*;
use shikha::recipe::TokenizerRecipe;
use shikha::tokenizer::{END_OF_TEXT, TextStream, Tokenizer, fertility};
use std::path::Path;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

static BANGLA: LazyLock<Vec<String>> =
    LazyLock::new(|| lines(BENGALI_TESTDATA_DIRECTORY.get_file("sentences.txt").unwrap().contents_utf8().unwrap()));
static ENGLISH: LazyLock<Vec<String>> =
    LazyLock::new(|| lines(ENGLISH_TESTDATA_DIRECTORY.get_file("sentences.txt").unwrap().contents_utf8().unwrap()));
static NAIVE: LazyLock<Tokenizer> = LazyLock::new(|| train("gpt2", 8192));
static MARKS: LazyLock<Tokenizer> = LazyLock::new(|| train("marks", 8192));

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.nfc().collect()).collect()
}

/// Every tenth sentence is kept for measuring.
fn part(sentences: &[String], held_out: bool) -> Vec<&str> {
    sentences.iter().enumerate().filter(|(i, _)| (i % 10 == 0) == held_out).map(|(_, s)| s.as_str()).collect()
}

fn train(pre_tokenizer: &str, vocabulary: usize) -> Tokenizer {
    let texts = [part(&BANGLA, false), part(&ENGLISH, false)].concat();
    Tokenizer::train(
        &texts,
        &TokenizerRecipe { pre_tokenizer: pre_tokenizer.to_owned(), vocabulary, mix: Default::default(), file: None },
    )
    .unwrap()
}

#[test]
fn letters_alone_are_a_trap_for_bangla_and_keeping_their_marks_is_the_cure() {
    let measure = |tokenizer: &Tokenizer, sentences| fertility::measure(tokenizer, &part(sentences, true)).unwrap();
    let (naive, cured) = (measure(&NAIVE, &BANGLA), measure(&MARKS, &BANGLA));
    assert!(naive.characters_per_token.value < 1.5, "{naive:?}");
    assert!(cured.characters_per_token.value > 2.0 * naive.characters_per_token.value, "{cured:?}");
    assert!(cured.characters_per_token.low > naive.characters_per_token.high, "the intervals do not meet");
    assert!(naive.ends_inside_cluster.low > 1.2 * cured.ends_inside_cluster.high, "{naive:?} {cured:?}");
    assert_eq!((naive.round_trip_failures, cured.round_trip_failures), (0, 0));
    let (naive, cured) = (measure(&NAIVE, &ENGLISH), measure(&MARKS, &ENGLISH));
    let change = cured.characters_per_token.value / naive.characters_per_token.value;
    assert!((change - 1.0).abs() < 0.02, "English changes by a factor of {change}");
}

#[test]
fn training_gives_the_same_bytes_for_any_number_of_threads() {
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| train("marks", 1000).to_json().unwrap())
    };
    let one = run(1);
    assert!(one == run(2) && one == run(3) && one == run(1));
}

#[test]
fn the_vocabulary_is_the_bytes_the_end_of_text_and_the_merges() {
    assert_eq!(MARKS.vocabulary_size(), 8192);
    assert_eq!(MARKS.token_bytes(MARKS.end_of_text()).unwrap(), END_OF_TEXT.as_bytes());
    let mut single: Vec<u8> =
        (0..8192).filter_map(|id| MARKS.token_bytes(id)).filter(|b| b.len() == 1).map(|b| b[0]).collect();
    single.sort_unstable();
    assert_eq!(single, (0..=255).collect::<Vec<u8>>());
}

#[test]
fn a_saved_tokenizer_gives_the_same_ids_through_the_plain_library() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    MARKS.save(&path).unwrap();
    let ours = Tokenizer::load(&path).unwrap();
    assert_eq!(ours.hash().unwrap(), MARKS.hash().unwrap());
    let plain = tokenizers::Tokenizer::from_file(&path).unwrap();
    for sentence in BANGLA.iter().chain(ENGLISH.iter()) {
        let ids = ours.encode(sentence).unwrap();
        assert_eq!(ids, plain.encode(sentence.as_str(), false).unwrap().get_ids());
    }
}

#[test]
fn spelling_the_end_of_text_does_not_make_one() {
    let text = format!("a{END_OF_TEXT}b");
    let ids = MARKS.encode(&text).unwrap();
    assert!(!ids.contains(&MARKS.end_of_text()));
    assert_eq!(MARKS.decode(&ids).unwrap(), text);
}

#[test]
fn streamed_text_is_the_whole_text_in_whole_clusters() {
    use unicode_segmentation::UnicodeSegmentation;
    for sentence in BANGLA.iter().take(50) {
        let mut stream = TextStream::new(&NAIVE);
        let (mut text, mut at) = (String::new(), Vec::new());
        for id in NAIVE.encode(sentence).unwrap() {
            text += &stream.push(id).unwrap();
            at.push(text.len());
        }
        text += &stream.finish();
        assert_eq!(&text, sentence);
        let starts: Vec<usize> = text.grapheme_indices(true).map(|(i, _)| i).chain([text.len()]).collect();
        assert!(at.iter().all(|end| starts.contains(end)), "{sentence}");
    }
    assert!(TextStream::new(&NAIVE).push(1 << 30).is_err());
}

#[test]
fn wrong_files_are_refused_with_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let message = Tokenizer::load(&path).unwrap_err().to_string();
        assert!(message.contains("tokenizer.json") && message.lines().count() == 1, "{message}");
        message
    };
    let json = MARKS.to_json().unwrap();
    refused(&json[..json.find("\"merges\"").unwrap()]);
    refused("");
    refused("{}");
    assert!(refused(&json.replace(END_OF_TEXT, "<|other|>")).contains(END_OF_TEXT));
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
    value["model"]["merges"][0] = serde_json::json!(["zz", "qq"]);
    assert!(refused(&value.to_string()).contains("merge 0 (`zz` `qq`) needs `zz`"));
    value["model"]["vocab"][""] = serde_json::json!(8192);
    value["model"]["merges"][0] = serde_json::json!(["a", ""]);
    assert!(refused(&value.to_string()).contains("cyclic"));
    value["model"].as_object_mut().unwrap().remove("merges");
    assert!(refused(&value.to_string()).contains("no list of `merges`"));
    let edited = |edit: &dyn Fn(&mut serde_json::Map<String, serde_json::Value>)| {
        let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
        edit(value["model"]["vocab"].as_object_mut().unwrap());
        value["model"]["merges"] = serde_json::json!([]);
        value.to_string()
    };
    let without_a_byte = edited(&|vocab| {
        let id = vocab.remove("A").unwrap();
        vocab.insert("AAAA".to_owned(), id);
    });
    assert!(refused(&without_a_byte).contains("byte 0x41"));
    let gap = edited(&|vocab| {
        vocab.insert("AAAA".to_owned(), serde_json::json!(9000));
    });
    assert!(refused(&gap).contains("is unused"));
    let plain_text = edited(&|vocab| {
        let id = vocab.remove("A").unwrap();
        vocab.insert("ক".to_owned(), id);
    });
    assert!(refused(&plain_text).contains("byte-level alphabet"));
    value["model"] = serde_json::json!({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"});
    assert!(refused(&value.to_string()).contains("BPE"));
    assert!(Tokenizer::load(Path::new("nowhere.json")).unwrap_err().to_string().contains("nowhere.json"));
    let recipe =
        TokenizerRecipe { pre_tokenizer: "words".to_owned(), vocabulary: 300, mix: Default::default(), file: None };
    assert!(Tokenizer::train(&["a"], &recipe).unwrap_err().to_string().contains("`words`"));
    let recipe =
        TokenizerRecipe { pre_tokenizer: "marks".to_owned(), vocabulary: 300, mix: Default::default(), file: None };
    assert!(Tokenizer::train(&["", " "], &recipe).unwrap_err().to_string().contains("no text"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_text_in_nfc_comes_back(text in "(\\PC|[ \n\u{9be}-\u{9cd}\u{995}-\u{9b9}\u{9bc}\u{200d}]){0,60}") {
        let text: String = text.nfc().collect();
        for tokenizer in [&*NAIVE, &*MARKS] {
            prop_assert_eq!(&tokenizer.decode(&tokenizer.encode(&text).unwrap()).unwrap(), &text);
        }
    }
}
