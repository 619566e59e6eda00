//! Tests of the measures against counts made by hand, with a tokenizer whose tokens are given.

use shikha::tokenizer::fertility::{Meter, efficiency, measure};
use shikha::tokenizer::{Encoded, Encoder, TokenizerError};

/// Cuts at `|` of a list of spellings; what is not listed becomes single bytes.
struct Listed(Vec<&'static str>);

impl Encoder for Listed {
    fn vocabulary_size(&self) -> usize {
        256 + self.0.len()
    }
    fn encode_text(&self, text: &str) -> Result<Encoded, TokenizerError> {
        let (mut encoded, mut at) = (Encoded::default(), 0);
        while at < text.len() {
            let known = self.0.iter().position(|token| text.as_bytes()[at..].starts_with(token.as_bytes()));
            at += known.map_or(1, |i| self.0[i].len());
            encoded.ids.push(known.map_or(u32::from(text.as_bytes()[at - 1]), |i| 256 + i as u32));
            encoded.ends.push(at);
        }
        Ok(encoded)
    }
    fn decode_ids(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| self.bytes_of(*id).unwrap_or_default()).collect();
        Ok(String::from_utf8_lossy(&bytes).replace('ঙ', "?"))
    }
    fn bytes_of(&self, id: u32) -> Option<Vec<u8>> {
        match id.checked_sub(256) {
            None => Some(vec![id as u8]),
            Some(i) => self.0.get(i as usize).map(|token| token.as_bytes().to_vec()),
        }
    }
}

#[test]
fn every_measure_is_what_a_hand_count_gives() {
    // আমি| ব|া|ড়ি|।  and  x ক: the nukta letter of বাড়ি is a letter and a mark in NFC.
    let listed = Listed(vec!["আমি", " ব", "া", "ড\u{9bc}ি", "।", "x"]);
    let found = measure(&listed, &["আমি বাড়ি।", "x ক"]).unwrap();
    assert_eq!((found.texts, found.words, found.tokens), (2, 4, 5 + 1 + 1 + 3));
    assert_eq!((found.characters, found.bytes), (10 + 3, 28 + 5));
    assert_eq!(found.characters_per_token.value, 1.3);
    assert_eq!(found.bytes_per_token.value, 3.3);
    assert_eq!((found.tokens_per_word.value, found.tokens_per_text.value), (2.5, 5.0));
    assert_eq!(found.ends_inside_cluster.value, 0.3, "` ব` before its sign, and two bytes of ক");
    assert_eq!(found.ends_inside_character.value, 0.2);
    assert_eq!(found.byte_fallback.value, 0.3);
    assert_eq!(found.whole_words.unwrap().value, 0.5, "আমি and x");
    assert_eq!((found.round_trip_failures, found.round_trip_failure_share.value), (0, 0.0));
    let expected = efficiency([1; 10].into_iter(), 262, 2.5);
    assert!((found.renyi_efficiency.value - expected).abs() < 1e-12, "ten tokens, each once");
    assert!((expected - 10f64.ln() / 262f64.ln()).abs() < 1e-12);
    for interval in [found.characters_per_token, found.ends_inside_cluster, found.renyi_efficiency] {
        assert!(interval.low <= interval.value && interval.value <= interval.high, "{interval:?}");
    }
}

#[test]
fn a_word_is_whole_alone_or_with_its_space_only() {
    let share = |tokens: &[&'static str], text: &str| {
        measure(&Listed(tokens.to_vec()), &[text]).unwrap().whole_words.map(|share| share.value)
    };
    assert_eq!(share(&["ab", " cd"], "ab cd"), Some(1.0));
    assert_eq!(share(&["ab cd"], "ab cd"), Some(0.0), "one token for two words");
    assert_eq!(share(&["ab."], "ab."), Some(0.0), "a word with its full stop");
    assert_eq!(share(&["  ab", " "], " ab"), Some(0.0), "cut into letters");
    assert_eq!(share(&["ক\u{9cd}\u{200d}ষ"], "ক\u{9cd}\u{200d}ষ"), Some(1.0), "a joiner is part of its word");
    assert_eq!(share(&["12"], "12"), None, "no letters, no words");
}

#[test]
fn text_in_another_form_is_composed_first_and_lost_text_is_counted() {
    let listed = Listed(vec!["é", "ক\u{9cb}"]);
    let found = measure(&listed, &["e\u{301}", "ক\u{9c7}\u{9be}", "ঙ"]).unwrap();
    assert_eq!((found.tokens, found.characters), (5, 4));
    assert_eq!(found.round_trip_failures, 1);
    assert!((found.round_trip_failure_share.value - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn no_words_is_an_error_and_words_in_few_texts_give_finite_intervals() {
    let listed = Listed(vec![]);
    assert!(matches!(measure(&listed, &[]), Err(TokenizerError::Empty)));
    assert!(matches!(measure(&listed, &["", " \n"]), Err(TokenizerError::Empty)));
    let texts: Vec<&str> = std::iter::repeat_n("12", 50).chain(["ab", ""]).collect();
    let found = measure(&listed, &texts).unwrap();
    assert_eq!(found.texts, 51);
    let json = serde_json::to_string(&found).unwrap();
    assert!(!json.contains("null"), "{json}");
    assert_eq!(serde_json::from_str::<shikha::tokenizer::fertility::Fertility>(&json).unwrap(), found);
}

#[test]
fn many_texts_and_long_texts_count_as_the_same_text_in_small_pieces() {
    let listed = Listed(vec!["ab", " "]);
    let mut meter = Meter::new(&listed);
    (0..10).for_each(|_| meter.add(&["ab কি"; 1000]).unwrap());
    let many = meter.fertility().unwrap();
    assert_eq!((many.texts, many.tokens, many.words), (10_000, 80_000, 20_000));
    assert_eq!(many.tokens_per_text.low, 8.0);
    let long = measure(&listed, &[&"ab কি ".repeat(50_000)]).unwrap();
    assert_eq!((long.texts, long.tokens), (1, 9 * 50_000));
    assert_eq!(long.ends_inside_cluster.value, 5.0 / 9.0);
    let endless = measure(&listed, &[&"কি".repeat(50_000)]).unwrap();
    assert_eq!((endless.words, endless.tokens, endless.round_trip_failures), (1, 300_000, 0));
    assert_eq!(endless.ends_inside_cluster.value, 5.0 / 6.0, "no cut of the measure's own is inside a cluster");
}

#[test]
fn the_tokens_that_split_clusters_are_listed_by_how_often_they_do() {
    let listed = Listed(vec!["ক", "ি", " খ"]);
    let mut meter = Meter::new(&listed);
    meter.add(&["কি কি খি", "ক খি"]).unwrap();
    let found: Vec<(String, u64)> = meter.splitters(2).into_iter().map(|s| (s.token, s.count)).collect();
    assert_eq!(found, [("ক".to_owned(), 2), (" খ".to_owned(), 2)]);
    let mut bytes = Meter::new(&listed);
    bytes.add(&["গ"]).unwrap();
    let found = bytes.splitters(9);
    assert_eq!(found.iter().map(|s| s.token.as_str()).collect::<Vec<_>>(), ["<0xA6>", "<0xE0>"]);
}

#[test]
fn the_parts_of_a_text_count_as_one_text() {
    use shikha::tokenizer::fertility::Part;
    let listed = Listed(vec!["ab", " "]);
    let part = |text: &str, first, last| Part { text: text.to_owned(), first, last };
    let mut meter = Meter::new(&listed);
    let parts = [part("ab a", true, false), part("b ঙ", false, false), part("  ", false, false)];
    meter.add_parts(&parts).unwrap();
    assert!(matches!(meter.fertility(), Err(TokenizerError::Empty)), "the text has not ended");
    meter.add_parts(&[part(" ঙ ab", false, true), part("", true, true), part("ab", true, true)]).unwrap();
    let found = meter.fertility().unwrap();
    assert_eq!((found.texts, found.words, found.characters), (2, 6, 16));
    assert_eq!(found.round_trip_failures, 1);
}

#[test]
fn advice_names_the_worst_thing_first() {
    use shikha::tokenizer::fertility::advice;
    let advise = |tokens: &[&'static str], text: &str| {
        let listed = Listed(tokens.to_vec());
        let mut meter = Meter::new(&listed);
        meter.add(&[text]).unwrap();
        advice(&meter.fertility().unwrap(), meter.keeps_marks())
    };
    assert!(advise(&["ক"], "ঙ").starts_with("100.0 % of the lines do not come back"));
    assert!(advise(&["ক"], "কি").starts_with("75.0 % of the tokens are lone bytes"));
    assert!(advise(&["ক", "ি"], "কি").contains("50.0 % of the tokens end inside a letter as readers see it: its pre-"));
    assert!(advise(&["কি", "ক", "া"], "কিকা").contains("a word takes 3.00 tokens"));
    assert!(advise(&["কি", "ক", "া", " "], "কি কা কা").contains("though marks may stay"));
    assert!(advise(&["কি", " "], "কি কি").starts_with("nothing stands out"));
}
