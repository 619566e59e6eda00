//! Tests of users' own tokenizer files: each kind encodes as its format says, and broken files are named.

use shikha::recipe::TokenizerRecipe;
use shikha::tokenizer::load::{AnyTokenizer, Kind, open};
use shikha::tokenizer::{Encoder, PreTokenizer, Tokenizer, TokenizerError, fertility};
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder that lives as long as the paths in it.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().unwrap())
    }
    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
    fn open(&self, name: &str, bytes: &[u8], pattern: Option<PreTokenizer>) -> Result<AnyTokenizer, TokenizerError> {
        open(&self.write(name, bytes), pattern)
    }
    /// The one line with which a file is refused.
    fn refused(&self, name: &str, bytes: &[u8]) -> String {
        let message = self.open(name, bytes, None).unwrap_err().to_string();
        assert!(message.contains(name) && message.lines().count() == 1, "{message}");
        message
    }
}

fn tokens(tokenizer: &AnyTokenizer, text: &str) -> Vec<String> {
    let ids = tokenizer.encode_text(text).unwrap().ids;
    let spell = |id| tokenizer.bytes_of(id).map_or("?".to_owned(), |b| String::from_utf8_lossy(&b).into_owned());
    ids.into_iter().map(spell).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let bits = (0..3).fold(0u32, |bits, i| bits << 8 | u32::from(group.get(i).copied().unwrap_or(0)));
        let digit = |i: usize| {
            if i > group.len() { '=' } else { DIGITS[(bits >> (18 - 6 * i) & 63) as usize] as char }
        };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// A rank file of all bytes and then `tokens`.
fn ranks(tokens: &[&str]) -> String {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let all = bytes.chain(tokens.iter().map(|token| token.as_bytes().to_vec()));
    all.enumerate().map(|(rank, token)| format!("{} {rank}\n", base64(&token))).collect()
}

#[test]
fn tiktoken_ranks_merge_the_lowest_rank_first_and_whole_pieces_at_once() {
    let files = Files::new();
    let text = ranks(&["bc", "ab", "cd", "abcd", "xyz", "কি"]);
    let tokenizer = files.open("a.tiktoken", text.as_bytes(), Some(PreTokenizer::Gpt2)).unwrap();
    assert_eq!((tokenizer.kind(), tokenizer.model(), tokenizer.vocabulary_size()), (Kind::Tiktoken, "BPE", 262));
    assert_eq!(tokens(&tokenizer, "abc"), ["a", "bc"], "bc ranks before ab");
    assert_eq!(tokens(&tokenizer, "aabcd"), ["a", "a", "bc", "d"]);
    assert_eq!(tokens(&tokenizer, "abcd"), ["abcd"], "a whole piece needs no merges");
    assert_eq!(tokens(&tokenizer, "xyz"), ["xyz"], "even one no merges lead to");
    assert_eq!(tokens(&tokenizer, "abcd's"), ["abcd", "'", "s"], "and the pattern cuts before");
    let encoded = tokenizer.encode_text("খab").unwrap();
    assert_eq!(encoded.ids, [0xE0, 0xA6, 0x96, 257]);
    assert_eq!(encoded.ends, [1, 2, 3, 5]);
    assert_eq!(tokenizer.decode_ids(&encoded.ids).unwrap(), "খab");
}

#[test]
fn a_rank_file_takes_its_pattern_from_its_name_or_asks_for_one() {
    let files = Files::new();
    let text = ranks(&["12", "123", "1234"]);
    let named = files.open("my_cl100k_base.tiktoken", text.as_bytes(), None).unwrap();
    assert_eq!(tokens(&named, "1234"), ["123", "4"]);
    let given = files.open("my_cl100k_base.tiktoken", text.as_bytes(), Some(PreTokenizer::Marks)).unwrap();
    assert_eq!(tokens(&given, "1234"), ["1234"]);
    let message = files.refused("a.tiktoken", text.as_bytes());
    assert!(message.contains("--pattern gpt2, cl100k, o200k, marks, marks-stop, grapheme"), "{message}");
}

#[test]
fn broken_rank_files_are_named_with_the_line() {
    let files = Files::new();
    let text = ranks(&["ab"]);
    let refused = |text: &str| files.refused("gpt2.tiktoken", text.as_bytes());
    assert!(refused(&text[..text.len() / 2]).contains("is not a token in base64, a space and a rank"));
    assert!(refused(&text.lines().take(200).collect::<Vec<_>>().join("\n")).contains("byte 0xc8; is it cut off?"));
    assert!(refused(&format!("{text}YWI= 300\n")).contains("line 258 (`YWI= 300`) repeats a token"));
    assert!(refused(&format!("{text}YWJj 7\n")).contains("repeats a rank"));
    assert!(refused(&format!("{text}YWJj -7\n")).contains("has no rank"));
    assert!(refused(&format!("{text}Y*Jj 300\n")).contains("no valid base64"));
    assert!(refused(&format!("{text}YWJj 99999999\n")).contains("too large"));
    assert!(files.refused("a.bin", &[0xFF, 0x00, 0x80]).contains("neither"));
    assert!(refused(" \n").contains("empty"));
}

/// Writes protocol buffers: a key and a length-delimited value, number or float.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = key(number, 2);
    out.extend(varint(bytes.len() as u64));
    out.extend_from_slice(bytes);
    out
}

fn key(number: u8, wire: u8) -> Vec<u8> {
    varint(u64::from(number) << 3 | u64::from(wire))
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn flag(number: u8, value: u64) -> Vec<u8> {
    [key(number, 0), varint(value)].concat()
}

fn piece(text: &str, score: f32, kind: u64) -> Vec<u8> {
    let inner = [field(1, text.as_bytes()), key(2, 5), score.to_le_bytes().to_vec(), flag(3, kind)].concat();
    field(1, &inner)
}

/// A model of the given type with the unknown piece, two control pieces and `pieces` from id 3 on.
pub fn model(model_type: u64, bytes: bool, pieces: &[(&str, f32)], normalizer: &[u8]) -> Vec<u8> {
    let mut out = [piece("<unk>", 0.0, 2), piece("<s>", 0.0, 3), piece("</s>", 0.0, 3)].concat();
    out.extend(pieces.iter().flat_map(|(text, score)| piece(text, *score, 1)));
    if bytes {
        out.extend((0..=255).flat_map(|byte| piece(&format!("<0x{byte:02X}>"), 0.0, 6)));
    }
    out.extend(field(2, &[flag(3, model_type), flag(35, u64::from(bytes))].concat()));
    out.extend(field(3, normalizer));
    out
}

#[test]
fn sentencepiece_unigram_takes_the_best_path() {
    let files = Files::new();
    let pieces = [("▁", -3.0), ("a", -4.0), ("b", -4.0), ("ab", -5.0), ("▁a", -5.0), ("▁ab", -9.5), ("bb", -4.5)];
    let tokenizer = files.open("u.model", &model(1, false, &pieces, &[]), None).unwrap();
    assert_eq!(
        (tokenizer.kind(), tokenizer.model(), tokenizer.vocabulary_size()),
        (Kind::SentencePiece, "Unigram", 10)
    );
    // ▁ + ab = -8 beats ▁ab = -9.5 and ▁a + b = -9.
    assert_eq!(tokenizer.encode_text("ab").unwrap().ids, [3, 6]);
    // ▁a + bb = -9.5 beats ▁ + ab + b = -12.
    assert_eq!(tokens(&tokenizer, "abb"), [" a", "bb"]);
    let encoded = tokenizer.encode_text("  ab   a").unwrap();
    assert_eq!(encoded.ids, [3, 6, 7], "spaces are stripped and runs become one");
    assert_eq!(encoded.ends.last(), Some(&8));
    assert_eq!(tokenizer.decode_ids(&[3, 6, 7]).unwrap(), "ab a");
    assert_eq!(tokenizer.encode_text("a<s>").unwrap().ids, [7, 0], "text cannot spell a control piece");
    let kept = [flag(3, 0), flag(4, 0)].concat();
    let tokenizer = files.open("v.model", &model(1, false, &pieces, &kept), None).unwrap();
    assert_eq!(tokens(&tokenizer, "ab  a"), ["ab", " ", " a"], "without the space in front, with all others");
}

#[test]
fn sentencepiece_unigram_falls_back_to_bytes_or_the_unknown_piece() {
    let files = Files::new();
    let pieces = [("▁", -3.0), ("ক", -4.0)];
    let bytes = files.open("b.model", &model(1, true, &pieces, &[]), None).unwrap();
    let encoded = bytes.encode_text("কি").unwrap();
    assert_eq!(encoded.ids, [3, 4, 5 + 0xE0, 5 + 0xA6, 5 + 0xBF]);
    assert_eq!(encoded.ends, [0, 3, 4, 5, 6]);
    assert_eq!(bytes.decode_ids(&encoded.ids).unwrap(), "কি");
    let found = fertility::measure(&bytes, &["কি"]).unwrap();
    assert_eq!((found.byte_fallback.value, found.ends_inside_character.value), (0.6, 0.4));
    assert_eq!(found.round_trip_failures, 0);
    let unknown = files.open("n.model", &model(1, false, &pieces, &[]), None).unwrap();
    assert_eq!(unknown.encode_text("কখগ ক").unwrap().ids, [3, 4, 0, 3, 4]);
    assert_eq!(unknown.encode_text("কখগ ক").unwrap().ends, [0, 3, 9, 10, 13]);
    assert_eq!(fertility::measure(&unknown, &["ক", "খ"]).unwrap().round_trip_failures, 1);
}

#[test]
fn sentencepiece_bpe_merges_by_score_and_characters_do_not_merge() {
    let files = Files::new();
    let pieces = [("ab", -2.0), ("bc", -1.0), ("abc", -3.0), ("▁", -9.0), ("a", -9.0), ("b", -9.0), ("c", -9.0)];
    let bpe = files.open("bpe.model", &model(2, true, &pieces, &[]), None).unwrap();
    assert_eq!(tokens(&bpe, "abc"), [" ", "abc"], "bc first, then abc of a and bc");
    assert_eq!(tokens(&bpe, "abbc"), [" ", "ab", "bc"]);
    assert_eq!(bpe.encode_text("ad").unwrap().ids, [6, 7, 10 + u32::from(b'd')]);
    let characters = files.open("char.model", &model(4, true, &pieces, &[]), None).unwrap();
    assert_eq!(tokens(&characters, "abc"), [" ", "a", "b", "c"]);
    let crossing = [("▁", -1.0), ("a", -9.0), ("a▁", -2.0), ("a▁a", -3.0)];
    let crossing = files.open("x.model", &model(2, true, &crossing, &[]), None).unwrap();
    assert_eq!(tokens(&crossing, "a a"), [" ", "a a"], "a piece may cross words");
}

#[test]
fn pieces_that_a_user_defined_are_never_cut() {
    let files = Files::new();
    let pieces = [("▁", -3.0), ("a", -4.0), ("<", -4.0), ("x", -4.0), (">", -4.0), ("ax", -3.5)];
    for (model_type, name) in [(1, "Unigram"), (2, "BPE")] {
        let bytes = [model(model_type, false, &pieces, &[]), piece("<x>", 0.0, 4)].concat();
        let tokenizer = files.open("user.model", &bytes, None).unwrap();
        assert_eq!((tokenizer.model(), tokenizer.vocabulary_size()), (name, 10));
        assert_eq!(tokens(&tokenizer, "a<x>ax"), [" ", "a", "<x>", "ax"], "{name}");
        assert_eq!(tokenizer.encode_text("a<x>ax").unwrap().ends, [0, 1, 4, 6], "{name}");
    }
}

#[test]
fn a_table_that_points_outside_itself_is_an_error_when_it_is_used() {
    let files = Files::new();
    let table = [4u32.to_le_bytes(), (0xFFFFu32 << 10).to_le_bytes()].concat();
    let tokenizer = files.open("t.model", &model(1, false, &[("a", -1.0)], &field(2, &table)), None).unwrap();
    assert!(tokenizer.encode_text("a").unwrap_err().to_string().contains("damaged"));
}

#[test]
fn our_own_tokenizer_measures_the_same_as_anyones() {
    let text = "আমি বাংলায় গান গাই, e\u{301}tude 12 👍🏽 ".repeat(3);
    let recipe =
        TokenizerRecipe { pre_tokenizer: "marks".to_owned(), vocabulary: 290, mix: Default::default(), file: None };
    let ours = Tokenizer::train(&[&text], &recipe).unwrap();
    let files = Files::new();
    let any = files.open("tokenizer.json", ours.to_json().unwrap().as_bytes(), None).unwrap();
    let texts = ["আমি ঙাই 👍🏽", "e\u{301} ঞ", "  গান\n"];
    assert_eq!(fertility::measure(&any, &texts).unwrap(), fertility::measure(&ours, &texts).unwrap());
    assert_eq!(any.encode_text(texts[0]).unwrap(), ours.encode_text(texts[0]).unwrap());
}

#[test]
fn broken_sentencepiece_models_are_named() {
    let files = Files::new();
    let good = model(1, false, &[("a", -1.0)], &[]);
    let refused = |bytes: &[u8]| files.refused("m.model", bytes);
    let cuts: Vec<String> = (2..good.len() - 2).map(|at| refused(&good[..at])).collect();
    assert!(cuts.iter().all(|m| m.contains("cut off") || m.contains("no text")), "{cuts:#?}");
    assert!(refused(&model(3, false, &[("a", -1.0)], &[])).contains("whole words"));
    assert!(refused(&model(9, false, &[("a", -1.0)], &[])).contains("model type is 9"));
    assert!(refused(&model(1, false, &[("a", -1.0), ("a", -2.0)], &[])).contains("`a` is there twice"));
    assert!(refused(&model(1, false, &[("a", f32::NAN)], &[])).contains("piece 3: its score is NaN"));
    assert!(refused(&model(1, false, &[("a", -1.0)], &field(2, &[9, 0, 0, 0, 1]))).contains("table of characters"));
    let no_unknown = [piece("a", -1.0, 1), field(2, &flag(3, 1))].concat();
    assert!(refused(&no_unknown).contains("0 unknown pieces"));
    let wrong_bytes = [piece("<unk>", 0.0, 2), piece("<0x00>", 0.0, 6), field(2, &flag(35, 1))].concat();
    assert!(refused(&wrong_bytes).contains("1 byte pieces of 256"));
    let suffix = [good.clone(), field(2, &flag(24, 1))].concat();
    assert!(refused(&suffix).contains("not supported"));
}

fn word_piece() -> serde_json::Value {
    let vocab = ["[UNK]", "কি", "ক", "##ি", "un", "##able", "."];
    let vocab: serde_json::Map<String, serde_json::Value> =
        vocab.iter().enumerate().map(|(id, token)| ((*token).to_owned(), id.into())).collect();
    serde_json::json!({
        "version": "1.0", "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": null, "added_tokens": [], "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": null,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab}
    })
}

#[test]
fn a_tokenizer_json_of_another_kind_is_measured_by_places_in_the_text() {
    let files = Files::new();
    let tokenizer = files.open("w.json", word_piece().to_string().as_bytes(), None).unwrap();
    assert_eq!((tokenizer.kind(), tokenizer.model()), (Kind::TokenizerJson, "WordPiece"));
    let encoded = tokenizer.encode_text("UNable কি zz.").unwrap();
    assert_eq!(encoded.ids, [4, 5, 1, 0, 6], "nothing is cut off at two tokens");
    assert_eq!(encoded.ends, [2, 6, 13, 16, 17]);
    let found = fertility::measure(&tokenizer, &["UNable কি zz."]).unwrap();
    assert_eq!(found.whole_words.unwrap().value, 2.0 / 3.0, "কি, and the unknown zz");
    assert_eq!(found.round_trip_failures, 1);
}

#[test]
fn broken_tokenizer_json_is_named() {
    let files = Files::new();
    let refused = |text: &str| files.refused("t.json", text.as_bytes());
    let good = word_piece().to_string();
    assert!(refused(&good[..good.len() / 2]).contains("cut off"));
    assert!(refused("{\"vocab_size\": 3}").contains("without a `model`"));
    assert!(refused("[1]").contains("without a `model`"));
    let bpe = |merges: serde_json::Value| {
        let mut json = word_piece();
        json["model"] = serde_json::json!({"type": "BPE", "vocab": {"": 0, "a": 1, "b": 2, "ab": 3}, "merges": merges});
        json.to_string()
    };
    assert!(refused(&bpe(serde_json::json!([["a", "c"]]))).contains("needs `c`"));
    assert!(refused(&bpe(serde_json::json!([["a", ""]]))).contains("cyclic"));
    let dropout = bpe(serde_json::json!([["a", "b"]])).replace("\"merges\"", "\"dropout\": 0.9, \"merges\"");
    let tokenizer = files.open("d.json", dropout.as_bytes(), None).unwrap();
    assert!((0..20).all(|_| tokenizer.encode_text("ab").unwrap().ids == [3]), "dropout is off");
    let mut far = word_piece();
    far["model"]["vocab"]["far"] = 4_000_000_000u32.into();
    assert!(refused(&far.to_string()).contains("largest id is 4000000000"));
    let mut other = word_piece();
    other["model"]["type"] = "Neural".into();
    refused(&other.to_string());
    assert!(matches!(open(&files.0.path().join("none"), None), Err(TokenizerError::File(_))));
}
