//! Tests of the pre-tokenizers: where each cuts, and where none may.

use proptest::prelude::*;
use shikha::recipe::Recipe;
use shikha::tokenizer::PreTokenizer;
use std::sync::LazyLock;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _, SplitDelimiterBehavior};
use unicode_segmentation::UnicodeSegmentation;

static SPLITS: LazyLock<Vec<Split>> = LazyLock::new(|| {
    let pattern = |p: &PreTokenizer| SplitPattern::Regex(p.pattern().to_owned());
    PreTokenizer::ALL.iter().map(|p| Split::new(pattern(p), SplitDelimiterBehavior::Isolated, false).unwrap()).collect()
});

/// The pieces as the `tokenizers` crate cuts them.
fn pieces(pre_tokenizer: PreTokenizer, text: &str) -> Vec<String> {
    let split = &SPLITS[PreTokenizer::ALL.iter().position(|known| *known == pre_tokenizer).unwrap()];
    let mut string = PreTokenizedString::from(text);
    split.pre_tokenize(&mut string).unwrap();
    let splits = string.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(piece, _, _)| piece.to_owned()).collect()
}

fn cuts(name: &str, text: &str) -> String {
    pieces(name.parse().unwrap(), text).join("|")
}

/// Cuts that fall inside an extended grapheme cluster.
fn inside(pre_tokenizer: PreTokenizer, text: &str) -> usize {
    let starts: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
    let mut end = 0;
    let ends = pieces(pre_tokenizer, text).into_iter().map(|piece| {
        end += piece.len();
        end
    });
    ends.filter(|end| *end < text.len() && !starts.contains(end)).count()
}

#[test]
fn each_pattern_cuts_where_its_encoding_is_documented_to() {
    let text = "I'LL've tested 12345 HTTPServer's /a//\r\nx  y";
    assert_eq!(cuts("gpt2", text), "I|'|LL|'ve| tested| 12345| HTTPServer|'s| /|a|//|\r|\n|x| | y");
    assert_eq!(cuts("marks", text), cuts("gpt2", text), "text without marks");
    assert_eq!(cuts("grapheme", text), "I|'|LL|'ve| tested| 12345| HTTPServer|'s| /|a|//|\r\n|x| | y");
    assert_eq!(cuts("cl100k", text), "I|'LL|'ve| tested| |123|45| HTTPServer|'s| /|a|//\r\n|x| | y");
    assert_eq!(cuts("o200k", text), "I'LL|'ve| tested| |123|45| HTTPServer's| /|a|//\r\n|x| | y");
    assert_eq!(cuts("o200k", "camelCase ABCdef"), "camel|Case| ABCdef");
}

#[test]
fn the_naive_pattern_is_gpt2s_to_the_letter() {
    let known = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    assert_eq!(PreTokenizer::Gpt2.pattern(), known, "hashes of trained tokenizers depend on it");
}

#[test]
fn a_bangla_word_is_cut_by_the_naive_patterns_only() {
    let word = " বিদ্যালয়ে";
    assert_eq!(cuts("gpt2", word), " ব|ি|দ|্|য|া|লয়ে".replace("লয়ে", "লয|়ে"));
    assert_eq!(cuts("cl100k", word), " ব|িদ|্য|ালয|়ে");
    for name in ["o200k", "marks", "grapheme"] {
        assert_eq!(cuts(name, word), word, "{name}");
    }
}

#[test]
fn nukta_letters_split_vowels_and_conjuncts_with_joiners_stay_whole() {
    let composed_nukta = "\u{9dc}\u{9dd}\u{9df}";
    let spelt_nukta = "\u{9a1}\u{9bc}\u{9a2}\u{9bc}\u{9af}\u{9bc}";
    let (one_sign, two_signs) = ("ক\u{9cb}থ\u{9cc}", "ক\u{9c7}\u{9be}থ\u{9c7}\u{9d7}");
    let (joiner, non_joiner) = ("ক\u{9cd}\u{200d}ষ", "ক\u{9cd}\u{200c}ষ");
    let leading = "র\u{200d}\u{9cd}যা";
    for text in [composed_nukta, spelt_nukta, one_sign, two_signs, joiner, non_joiner, leading] {
        assert_eq!(cuts("marks", text), text);
        assert_eq!(cuts("grapheme", text), text);
    }
    assert_eq!(cuts("gpt2", spelt_nukta), "\u{9a1}|\u{9bc}|\u{9a2}|\u{9bc}|\u{9af}|\u{9bc}");
    assert_eq!(cuts("o200k", joiner), "ক\u{9cd}|\u{200d}ষ", "a joiner is no mark");
    assert_eq!(cuts("marks", "ক \u{9bf}ক"), "ক| \u{9bf}|ক", "a stray sign goes with what precedes it");
}

#[test]
fn emoji_stay_whole_with_all_that_makes_them() {
    let (heart, family, flag, thumb) = ("❤\u{fe0f}", "👨\u{200d}👩\u{200d}👧", "🇧🇩", "👍🏽");
    for name in ["gpt2", "marks", "grapheme"] {
        for emoji in [heart, family, flag, thumb] {
            let text = format!("মা {emoji} 5");
            let found = cuts(name, &text);
            assert!(found.ends_with(&format!("| {emoji}| 5")), "{name}: {found}");
        }
    }
    assert_eq!(cuts("gpt2", "1\u{fe0f}\u{20e3}"), "1|\u{fe0f}\u{20e3}");
    assert_eq!(cuts("marks", "1\u{fe0f}\u{20e3}"), "1\u{fe0f}\u{20e3}");
    assert_eq!(inside(PreTokenizer::Marks, "a🏽"), 1, "a modifier is a symbol");
    assert_eq!(inside(PreTokenizer::Grapheme, "a🏽 \u{2139}\u{200d}🔥 ℹ\u{fe0f}"), 0);
}

#[test]
fn the_grapheme_pattern_knows_every_character_that_joins_a_neighbour() {
    // Characters newer than the tables of the regular expressions are unknown to every pattern.
    let assigned = fancy_regex::Regex::new(r"^\P{Cn}$").unwrap();
    let known = |c: &char| !c.is_ascii_alphanumeric() && assigned.is_match(&c.to_string()).unwrap();
    for c in ('\0'..=char::MAX).filter(known) {
        for text in
            [format!("a{c}"), format!("{c}a"), format!("7{c}"), format!("{c}7"), format!("-{c}"), format!("{c}-")]
        {
            if text.graphemes(true).count() == 1 {
                assert_eq!(cuts("grapheme", &text), text, "U+{:04X}", c as u32);
            }
        }
    }
}

#[test]
fn every_name_is_known_to_recipes_and_back() {
    let pocket = Recipe::load("pocket").unwrap();
    for pre_tokenizer in PreTokenizer::ALL {
        let name = pre_tokenizer.name();
        assert_eq!(name.parse::<PreTokenizer>().unwrap(), pre_tokenizer);
        let mut recipe = pocket.clone();
        recipe.tokenizer.pre_tokenizer = name.to_owned();
        assert_eq!(Recipe::parse(&recipe.to_toml(), "test").unwrap(), recipe);
    }
    let message = "words".parse::<PreTokenizer>().unwrap_err().to_string();
    assert!(message.contains("`words`") && PreTokenizer::ALL.iter().all(|p| message.contains(p.name())), "{message}");
}

const AWKWARD: &str = "[a5\\-'s \r\n\u{2003}\u{9bf}\u{9cd}\u{995}\u{9bc}\u{200c}\u{200d}\u{2139}\u{fe0f}\u{1f525}\u{1f3fd}\u{1f1e7}\u{600}\u{d4e}\u{e33}\u{1100}\u{1161}\u{11a8}\u{ff9e}\u{301}]{0,12}";

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn pieces_join_to_the_text_and_grapheme_never_cuts_a_cluster(text in AWKWARD) {
        for pre_tokenizer in PreTokenizer::ALL {
            prop_assert_eq!(pieces(pre_tokenizer, &text).concat(), text.as_str());
        }
        prop_assert_eq!(inside(PreTokenizer::Grapheme, &text), 0, "{:?}", pieces(PreTokenizer::Grapheme, &text));
    }
}
