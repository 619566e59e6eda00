//! Tests of the released tokenizer as it is committed: its ids, its round trips, its card and what it promises.

use lingua_bengali_language_model::BENGALI_TESTDATA_DIRECTORY;
use lingua_english_language_model::ENGLISH_TESTDATA_DIRECTORY;
use shikha::corpus::source::{Manifest, Store};
use shikha::pipeline::release_card;
use shikha::recipe::Recipe;
use shikha::tokenizer::Tokenizer;
use shikha::tokenizer::fertility::measure;
use shikha::tokenizer::study::Release;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

static ROOT: LazyLock<PathBuf> = LazyLock::new(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("checkpoints"));
static RELEASED: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::load(&ROOT.join("tokenizer/tokenizer.json")).unwrap());
static STORED: LazyLock<Release> =
    LazyLock::new(|| serde_json::from_slice(&std::fs::read(ROOT.join("tokenizer/release.json")).unwrap()).unwrap());

/// The sentences of the pocket corpus, and pairs of them up to ten thousand.
fn sentences() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for directory in [&BENGALI_TESTDATA_DIRECTORY, &ENGLISH_TESTDATA_DIRECTORY] {
        let file = directory.get_file("sentences.txt").unwrap();
        lines.extend(file.contents_utf8().unwrap().lines().map(str::to_owned));
    }
    let single = lines.len();
    (0..10_000 - single)
        .for_each(|i| lines.push(format!("{} {}", lines[i % single], lines[(7 * i + i / single + 1) % single])));
    lines
}

fn comes_back(text: &str) -> bool {
    let composed: String = text.nfc().collect();
    RELEASED.decode(&RELEASED.encode(text).unwrap()).unwrap() == composed
}

#[test]
fn ten_thousand_sentences_have_the_ids_of_the_plain_crate_and_come_back() {
    let plain = tokenizers::Tokenizer::from_file(ROOT.join("tokenizer/tokenizer.json")).unwrap();
    assert!(RELEASED.is_fast());
    let sentences = sentences();
    assert_eq!(sentences.len(), 10_000);
    for sentence in &sentences {
        assert_eq!(RELEASED.encode(sentence).unwrap(), plain.encode_fast(sentence.as_str(), false).unwrap().get_ids());
        assert!(comes_back(sentence), "{sentence}");
    }
}

#[test]
fn letters_with_a_dot_are_whole_in_either_spelling() {
    for (one, two) in
        [("ড়", "ড\u{9bc}"), ("ঢ়", "ঢ\u{9bc}"), ("য়", "য\u{9bc}"), ("কো", "ক\u{9c7}\u{9be}"), ("কৌ", "ক\u{9c7}\u{9d7}")]
    {
        let ids = [one, two].map(|text| RELEASED.encode(text).unwrap());
        assert_eq!(ids[0], ids[1], "{one}");
        for word in [one.to_owned(), format!("বা{one}ি"), format!(" গা{two}।")] {
            for id in RELEASED.encode(&word).unwrap() {
                let bytes = RELEASED.token_bytes(id).unwrap();
                assert!(std::str::from_utf8(&bytes).is_ok(), "{word}: {bytes:?} is a part of a letter");
            }
        }
    }
}

#[test]
fn it_keeps_its_promises_on_what_is_stored() {
    let chosen = &STORED.candidates[STORED.chosen];
    let found = |language: &str| {
        &chosen.measured.iter().find(|m| m.texts == "par-ntrex" && m.language == language).unwrap().fertility
    };
    assert!(found("bn").tokens_per_word.value <= 1.46, "{:?}", found("bn").tokens_per_word);
    assert!(found("en").characters_per_token.value >= 4.2, "{:?}", found("en").characters_per_token);
    assert!(RELEASED.vocabulary_size() <= 65_536);
    assert_eq!(RELEASED.hash().unwrap(), STORED.identity);
    assert_eq!(shikha::artifact::hash_file(&ROOT.join("tokenizer/tokenizer.json")).unwrap(), STORED.file);
    let manifest = Manifest::load("small").unwrap();
    assert_eq!(
        manifest.hash(),
        STORED.manifest,
        "the text has changed since: `shikha fertility release` trains it again"
    );
    let card = std::fs::read_to_string(ROOT.join("tokenizer/tokenizer.md")).unwrap();
    assert_eq!(release_card(&ROOT.join("tokenizer"), &ROOT.join("fertility")).unwrap(), card, "the card is stale");
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_file_of_the_mirror_comes_back_and_the_measurements_are_those_of_the_file() {
    let Some(mirror) = std::env::var_os("SHIKHA_MIRROR").filter(|path| !path.is_empty()).map(PathBuf::from) else {
        eprintln!("SHIKHA_MIRROR is not set: nothing is encoded from the mirror");
        return;
    };
    let mut texts = 0;
    for path in files(&mirror) {
        if let Ok(text) = std::fs::read_to_string(&path) {
            assert!(comes_back(&text), "{}", path.display());
            texts += 1;
        }
    }
    assert!(texts > 300, "{texts} text files");
    let store = Store::new(Some(mirror), tempfile::tempdir().unwrap().path().to_path_buf());
    let recipe = Recipe::load("small").unwrap().corpus;
    let prepared = shikha::corpus::prepare(&Manifest::load(&recipe.manifest).unwrap(), &recipe, &store).unwrap();
    let set = prepared.parallel.iter().find(|set| set.id == "par-ntrex").unwrap();
    let side = |of: fn(&shikha::corpus::ParallelPair) -> &str| set.pairs.iter().map(of).collect::<Vec<_>>();
    for (language, texts) in [("bn", side(|p| &p.bn)), ("en", side(|p| &p.en))] {
        let stored = STORED.candidates[STORED.chosen].measured.iter();
        let stored = &stored.clone().find(|m| m.texts == set.id && m.language == language).unwrap().fertility;
        assert_eq!(measure(&*RELEASED, &texts).unwrap().tokens, stored.tokens, "{language}");
    }
}
