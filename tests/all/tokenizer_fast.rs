//! Tests of encoding without the `tokenizers` crate: the same ids, the same text back.

use lingua_bengali_language_model::BENGALI_TESTDATA_DIRECTORY;
use proptest::prelude::*;
use shikha::corpus::source::{Manifest, Store};
use shikha::recipe::Recipe;
use shikha::tokenizer::{PreTokenizer, Tokenizer, Training, study::train_superwords};
use std::path::PathBuf;
use std::sync::LazyLock;

static SENTENCES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let file = BENGALI_TESTDATA_DIRECTORY.get_file("sentences.txt").unwrap();
    file.contents_utf8().unwrap().lines().collect()
});

struct Pair {
    ours: Tokenizer,
    plain: tokenizers::Tokenizer,
}

fn pair(ours: Tokenizer) -> Pair {
    assert!(ours.is_fast());
    let plain = tokenizers::Tokenizer::from_bytes(ours.to_json().unwrap()).unwrap();
    Pair { ours, plain }
}

fn train(pre_tokenizer: PreTokenizer, compose: bool) -> Tokenizer {
    Tokenizer::train_as(&SENTENCES, &Training { pre_tokenizer, vocabulary: 3000, compose }).unwrap()
}

/// Every pattern, one without NFC, and two whose merges cross spaces.
static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    let mut all: Vec<Tokenizer> = PreTokenizer::ALL.map(|pattern| train(pattern, true)).to_vec();
    all.push(train(PreTokenizer::Marks, false));
    for pattern in [PreTokenizer::Marks, PreTokenizer::MarksStop] {
        all.push(train_superwords(&train(pattern, true), &SENTENCES, 3400).unwrap());
    }
    all.into_iter().map(pair).collect()
});

impl Pair {
    fn same(&self, text: &str) -> bool {
        self.ours.encode(text).unwrap() == self.plain.encode_fast(text, false).unwrap().get_ids()
    }
}

#[test]
fn every_layout_gives_the_ids_of_the_plain_crate_on_real_text() {
    let whole = SENTENCES.concat();
    for pair in PAIRS.iter() {
        assert!(SENTENCES.iter().all(|sentence| pair.same(sentence)));
        assert!(pair.same(&whole[..whole.ceil_char_boundary(20_000)]), "many long pieces");
        assert!(pair.same(&"ক্ষ".repeat(3000)) && pair.same(&"a".repeat(5000)) && pair.same(&" ".repeat(300)));
    }
}

#[test]
fn what_this_encoder_does_not_know_is_left_to_the_crate() {
    let json = PAIRS[3].ours.to_json().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    let edited = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        std::fs::write(&path, json.replacen(from, to, 1)).unwrap();
        Tokenizer::load(&path).unwrap()
    };
    assert!(edited("\"ignore_merges\": false", "\"ignore_merges\": false").is_fast());
    for (from, to) in [
        ("\"type\": \"NFC\"", "\"type\": \"NFKC\""),
        ("\"ignore_merges\": false", "\"ignore_merges\": true"),
        ("\"behavior\": \"Isolated\"", "\"behavior\": \"Removed\""),
        ("\"use_regex\": false", "\"use_regex\": true"),
    ] {
        let other = edited(from, to);
        assert!(!other.is_fast(), "{to}");
        let plain = tokenizers::Tokenizer::from_file(&path).unwrap();
        let text = "আমি ﬁ x's  বাংলায়";
        assert_eq!(other.encode(text).unwrap(), plain.encode_fast(text, false).unwrap().get_ids(), "{to}");
    }
}

#[test]
fn superwords_cross_spaces_and_lose_nothing() {
    let (last, patterns) = (PAIRS.len() - 2, [PreTokenizer::Marks, PreTokenizer::MarksStop]);
    for (pattern, both) in patterns.into_iter().zip(&PAIRS[last..]) {
        let (words, both) = (train(pattern, true), &both.ours);
        assert_eq!((words.vocabulary_size(), both.vocabulary_size()), (3000, 3400));
        let new: Vec<Vec<u8>> = (3000..3400).map(|id| both.token_bytes(id).unwrap()).collect();
        let crossing = new.iter().filter(|bytes| bytes[1..].contains(&b' ')).count();
        assert!(crossing > 10, "{crossing} tokens hold a space between words");
        let ends = ["।", ",", "."].map(str::as_bytes);
        let stopped = new.iter().filter(|bytes| ends.iter().any(|end| bytes.ends_with(end))).count();
        assert_eq!(stopped > 0, pattern == PreTokenizer::MarksStop, "{stopped} tokens end in a stop");
        let count = |tokenizer: &Tokenizer| SENTENCES.iter().map(|s| tokenizer.encode(s).unwrap().len()).sum::<usize>();
        assert!(count(both) < count(&words));
        for sentence in SENTENCES.iter() {
            let composed: String = unicode_normalization::UnicodeNormalization::nfc(*sentence).collect();
            assert_eq!(both.decode(&both.encode(sentence).unwrap()).unwrap(), composed);
        }
        let again = train_superwords(&words, &SENTENCES, 3400).unwrap();
        assert_eq!(again.hash().unwrap(), both.hash().unwrap());
    }
}

/// The text of the mirror; `None` with a note where there is none.
fn mirror() -> Option<Vec<String>> {
    let Some(mirror) = std::env::var_os("SHIKHA_MIRROR").filter(|path| !path.is_empty()) else {
        eprintln!("SHIKHA_MIRROR is not set: nothing is compared on the mirror's text");
        return None;
    };
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(Some(PathBuf::from(mirror)), dir.path().to_path_buf());
    let manifest = Manifest::load(&Recipe::load("small").unwrap().corpus.manifest).unwrap();
    let mut progress = shikha::progress::Progress::hidden(0);
    let read = shikha::corpus::source::read(&manifest, &store, &mut progress).unwrap();
    let scripts = read.scripts.into_iter().map(|(_, text)| text);
    let pairs = read.parallel.into_iter().flat_map(|set| set.pairs).flat_map(|pair| [pair.bn, pair.en]);
    Some(read.documents.into_iter().map(|d| d.text).chain(scripts).chain(pairs).collect())
}

#[test]
fn ten_thousand_sentences_of_the_mirror_have_the_same_ids_and_all_its_text_comes_back() {
    let Some(texts) = mirror() else { return };
    let sentences = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty());
    let sentences: Vec<&str> = sentences.step_by(11).take(10_000).collect();
    assert_eq!(sentences.len(), 10_000);
    let marks = &PAIRS[3];
    assert!(sentences.iter().all(|sentence| marks.same(sentence)));
    for text in &texts {
        let composed: String = unicode_normalization::UnicodeNormalization::nfc(text.as_str()).collect();
        assert!(marks.ours.decode(&marks.ours.encode(text).unwrap()).unwrap() == composed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn any_text_has_the_ids_of_the_plain_crate(
        text in "(\\PC|[ \n\r\t'a-zA-Zক-হা-্\u{9bc}\u{9be}\u{9c7}\u{9cd}\u{9d7}\u{9dc}\u{9df}\u{200c}\u{200d}০-৯।,.☺\u{fe0f}]|আমি |<\\|endoftext\\|>){0,60}"
    ) {
        for pair in PAIRS.iter() {
            // The plain crate makes the end-of-text token of its name; ours never does.
            if !text.contains("<|endoftext|>") {
                prop_assert!(pair.same(&text));
            }
            prop_assert!(!pair.ours.encode(&text).unwrap().contains(&pair.ours.end_of_text()));
        }
    }
}
