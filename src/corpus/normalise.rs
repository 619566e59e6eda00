//! One spelling for each text: what is done to every document before anything is measured on it.
//!
//! 1. Line ends (CR LF, CR, NEL, line and paragraph separators) become LF. Tabs and all Unicode
//!    spaces become a plain space. U+FEFF, other control characters, private-use characters and
//!    noncharacters are dropped.
//! 2. A joiner (ZWNJ, ZWJ) stays only between two Bangla letters or marks of the composed text, where it chooses a shape
//!    (র‍্য); anywhere else, and after another joiner, it is dropped.
//! 3. Unicode normalisation form C (UAX #15). It has two consequences for Bangla. The letters with a
//!    dot below (ড় ঢ় য়) are **two** code points, the letter and U+09BC: the single ones, U+09DC,
//!    U+09DD and U+09DF, are composition exclusions. The vowel signs ো and ৌ are **one**: the pairs
//!    U+09C7 U+09BE and U+09C7 U+09D7 are joined.
//! 4. Layout: line breaks and the indentation of a line are kept, as verse needs both. Elsewhere a
//!    run of spaces becomes one; spaces at a line's end go; two or more blank lines become one; the
//!    text is trimmed.
//!
//! Normalising twice changes nothing more.

use serde::{Deserialize, Serialize};
use std::iter::Peekable;
use unicode_normalization::UnicodeNormalization;

const BYTE_ORDER_MARK: char = '\u{feff}';
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
/// ড় ঢ় য় as single code points.
const NUKTA_LETTERS: [char; 3] = ['\u{9dc}', '\u{9dd}', '\u{9df}'];
/// ো and ৌ.
const JOINED_SIGNS: [char; 2] = ['\u{9cb}', '\u{9cc}'];

/// How many code points were changed, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// U+FEFF dropped.
    pub byte_order_marks: u64,
    /// Control characters dropped.
    pub controls: u64,
    /// Private-use characters and noncharacters dropped.
    pub private_use: u64,
    /// Line ends other than LF replaced.
    pub line_ends: u64,
    /// ZWNJ and ZWJ dropped.
    pub joiners: u64,
    /// U+09DC, U+09DD, U+09DF written as two code points.
    pub nukta_letters: u64,
    /// Split vowel signs joined.
    pub vowel_signs: u64,
    /// Code points that form C added or took away elsewhere.
    pub other_composition: u64,
    /// Spaces and line breaks dropped, and spaces of another kind replaced.
    pub spaces: u64,
}

impl Changes {
    /// Adds the counts of another text.
    pub fn add(&mut self, other: &Changes) {
        self.byte_order_marks += other.byte_order_marks;
        self.controls += other.controls;
        self.private_use += other.private_use;
        self.line_ends += other.line_ends;
        self.joiners += other.joiners;
        self.nukta_letters += other.nukta_letters;
        self.vowel_signs += other.vowel_signs;
        self.other_composition += other.other_composition;
        self.spaces += other.spaces;
    }
}

/// `text` in the project's one spelling; see the module for the rules.
pub fn normalise(text: &str) -> String {
    quick(text).unwrap_or_else(|| normalise_counted(text).0)
}

/// The same in one pass for a text of common characters alone; `None` when it has one that only the rules know.
///
/// What is known is its own form C and never moves: letters and signs without a combining class, but for the nukta and
/// the hasanta, whose order is looked at. Of those that join only the two halves of a vowel sign are known.
fn quick(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    // Up to where `text` is in `out`, and the character before the one at hand.
    let (mut copied, mut last) = (0, '\n');
    // Whether the layout has spaces or breaks too many; a text begins with none.
    let (mut untidy, mut breaks) = (false, 2);
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        let (mut from, mut instead) = (at, "");
        match c {
            '!'..='~' => {}
            ' ' => untidy |= matches!(last, ' ' | '\n'),
            '\t' | '\u{a0}' => (untidy, instead) = (untidy || matches!(last, ' ' | '\n'), " "),
            '\n' => untidy |= last == ' ' || breaks >= 2,
            '\u{9dc}' => instead = "\u{9a1}\u{9bc}",
            '\u{9dd}' => instead = "\u{9a2}\u{9bc}",
            '\u{9df}' => instead = "\u{9af}\u{9bc}",
            '\u{9be}' if last == '\u{9c7}' => (from, instead) = (at - last.len_utf8(), "\u{9cb}"),
            '\u{9d7}' if last == '\u{9c7}' => (from, instead) = (at - last.len_utf8(), "\u{9cc}"),
            '\u{9bc}' if matches!(last, '\u{9bc}' | '\u{9cd}') => return None,
            '\u{9fe}' => return None,
            '\u{980}'..='\u{9fd}' => {}
            '\u{200c}' | '\u{200d}' => {
                let next = characters.as_str().trim_start_matches(JOINERS).chars().next();
                // Where it goes, one of its neighbours is not Bangla: they have nothing to join.
                if ![Some(last), next].iter().all(|c| c.is_some_and(is_bangla_letter_or_mark)) {
                    out.push_str(&text[copied..at]);
                    copied = at + c.len_utf8();
                    continue;
                }
            }
            c if is_inert(c) => {}
            _ => return None,
        }
        breaks = if c == '\n' { breaks + 1 } else { 0 };
        last = c;
        if let Some(end) = instead.chars().next_back() {
            out.push_str(&text[copied..from]);
            out.push_str(instead);
            (copied, last) = (at + c.len_utf8(), end);
        }
    }
    out.push_str(&text[copied..]);
    untidy |= matches!(last, ' ' | '\n');
    Some(if untidy { lay_out(&out) } else { out })
}

/// Whether no rule moves, drops or changes a character, nor joins it with one before it: other letters of Europe and
/// Arabic, punctuation, currency signs, symbols, emoji.
fn is_inert(c: char) -> bool {
    matches!(c, '\u{a1}'..='\u{2ff}' | '\u{400}'..='\u{482}' | '\u{621}'..='\u{64a}' | '\u{964}' | '\u{965}'
        | '\u{200b}' | '\u{200e}'..='\u{2027}' | '\u{202a}'..='\u{202e}' | '\u{2030}'..='\u{205e}'
        | '\u{20a0}'..='\u{20bf}' | '\u{2460}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}' | '\u{fe0f}')
}

/// Like [`normalise`], and what was changed.
pub fn normalise_counted(text: &str) -> (String, Changes) {
    let mut changes = Changes::default();
    let plain = drop_characters(text, &mut changes);
    let composed = settle(compose(&plain, &mut changes), &mut changes);
    let result = lay_out(&composed);
    changes.spaces += (composed.chars().count() - result.chars().count()) as u64;
    (result, changes)
}

/// Drops joiners until none is left to drop. Composition comes first, as it reorders marks and so
/// decides what stands beside a joiner; and again after each drop, since a joiner keeps its
/// neighbours apart.
fn settle(mut composed: String, changes: &mut Changes) -> String {
    loop {
        let joined = drop_joiners(&composed, changes);
        if joined.len() == composed.len() {
            return composed;
        }
        composed = compose(&joined, changes);
    }
}

fn drop_characters(text: &str, changes: &mut Changes) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\n' | ' ' => out.push(c),
            '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                changes.line_ends += 1;
                if !(c == '\r' && characters.peek() == Some(&'\n')) {
                    out.push('\n');
                }
            }
            '\t' => replace_by_space(&mut out, changes),
            BYTE_ORDER_MARK => changes.byte_order_marks += 1,
            c if c.is_control() => changes.controls += 1,
            c if is_private(c) => changes.private_use += 1,
            c if c.is_whitespace() => replace_by_space(&mut out, changes),
            c => out.push(c),
        }
    }
    out
}

fn replace_by_space(out: &mut String, changes: &mut Changes) {
    changes.spaces += 1;
    out.push(' ');
}

/// Private use (category Co) and noncharacters: they mean nothing without a private agreement.
fn is_private(c: char) -> bool {
    let code = c as u32;
    matches!(code, 0xE000..=0xF8FF | 0xFDD0..=0xFDEF | 0xF0000..) || code & 0xFFFE == 0xFFFE
}

/// Letters and combining marks of the Bangla block: no digits, currency signs or punctuation.
pub fn is_bangla_letter_or_mark(c: char) -> bool {
    matches!(c, '\u{980}'..='\u{9e3}' | '\u{9f0}' | '\u{9f1}' | '\u{9fc}' | '\u{9fe}')
}

fn drop_joiners(text: &str, changes: &mut Changes) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut last = None;
    while let Some(c) = characters.next() {
        if !JOINERS.contains(&c) {
            out.push(c);
            last = Some(c);
            continue;
        }
        changes.joiners += skip_joiners(&mut characters);
        let between = [last, characters.peek().copied()];
        if between.iter().all(|c| c.is_some_and(is_bangla_letter_or_mark)) {
            out.push(c);
        } else {
            changes.joiners += 1;
        }
    }
    out
}

fn skip_joiners(characters: &mut Peekable<std::str::Chars<'_>>) -> u64 {
    std::iter::from_fn(|| characters.next_if(|c| JOINERS.contains(c))).count() as u64
}

fn compose(text: &str, changes: &mut Changes) -> String {
    let count = |text: &str, set: &[char]| text.chars().filter(|c| set.contains(c)).count() as u64;
    let out: String = text.nfc().collect();
    let nukta = count(text, &NUKTA_LETTERS);
    let signs = count(&out, &JOINED_SIGNS).saturating_sub(count(text, &JOINED_SIGNS));
    changes.nukta_letters += nukta;
    changes.vowel_signs += signs;
    let explained = text.chars().count() as u64 + nukta;
    changes.other_composition += explained.abs_diff(out.chars().count() as u64 + signs);
    out
}

fn lay_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.split('\n') {
        let content = line.trim_start_matches(' ');
        if content.is_empty() {
            blank += 1;
            continue;
        }
        if !out.is_empty() {
            out.push_str(if blank > 0 { "\n\n" } else { "\n" });
            out.push_str(&line[..line.len() - content.len()]);
        }
        blank = 0;
        for (i, word) in content.split(' ').filter(|w| !w.is_empty()).enumerate() {
            out.push_str(if i > 0 { " " } else { "" });
            out.push_str(word);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_pass_gives_what_the_rules_give(text in "[ \n\n\ta-c\u{a0}é।\u{995}\u{9a1}\u{9af}\u{9bc}\u{9cd}\u{9c7}\u{9c7}\u{9be}\u{9d7}\u{9dc}\u{9df}\u{200c}\u{200d}\u{200b}…]{0,14}") {
            let expected = normalise_counted(&text).0;
            prop_assert_eq!(quick(&text).unwrap_or_else(|| expected.clone()), expected);
        }
    }

    #[test]
    fn every_character_alone_and_among_others_is_what_the_rules_make_of_it() {
        for c in '\0'..=char::MAX {
            for text in [format!("a{c}b"), format!("{c}"), format!("\u{9a1}{c}\u{9bc}"), format!("\u{9c7}{c}\u{9be}")] {
                if let Some(found) = quick(&text) {
                    assert_eq!(found, normalise_counted(&text).0, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn common_text_needs_one_pass() {
        for (text, expected) in [
            ("আমি ভাত খাই। তুমি?\n\nহ্যাঁ — “ঠিক”…", "আমি ভাত খাই। তুমি?\n\nহ্যাঁ — “ঠিক”…"),
            ("a b\nc", "a b\nc"),
            ("", ""),
            (" \t\n", ""),
            ("  a  b\u{a0}\n\n\n  c\t", "a b\n\n  c"),
            (
                "\u{9aa}\u{9dc}\u{9be}\u{9df} \u{995}\u{9c7}\u{9be}",
                "\u{9aa}\u{9a1}\u{9bc}\u{9be}\u{9af}\u{9bc} \u{995}\u{9cb}",
            ),
            ("\u{9b0}\u{200d}\u{9cd}\u{9af}", "\u{9b0}\u{200d}\u{9cd}\u{9af}"),
            ("\u{9a4}\u{9cd}\u{200c}\u{200d} a\u{200d}b \u{200c}\n", "\u{9a4}\u{9cd} ab"),
        ] {
            assert_eq!(quick(text).as_deref(), Some(expected), "{text:?}");
        }
        for text in ["a\u{301}", "\u{9cd}\u{9bc}", "\u{0}", "\u{9dc}\u{9bc}", "\u{e000}", "a\rb"] {
            assert_eq!(quick(text), None, "{text:?}");
        }
    }

    #[test]
    fn nukta_letters_are_two_code_points_and_split_signs_one() {
        let (text, changes) = normalise_counted("\u{9ac}\u{9be}\u{9dc}\u{9bf} \u{995}\u{9c7}\u{9be}\u{9a5}\u{9be}");
        assert_eq!(text, "\u{9ac}\u{9be}\u{9a1}\u{9bc}\u{9bf} \u{995}\u{9cb}\u{9a5}\u{9be}");
        assert_eq!(changes, Changes { nukta_letters: 1, vowel_signs: 1, ..Changes::default() });
        assert_eq!(normalise("\u{9c7}\u{9d7}"), "\u{9cc}");
        assert_eq!(normalise("\u{9a2}\u{9bc}\u{9af}\u{9bc}"), "\u{9a2}\u{9bc}\u{9af}\u{9bc}");
    }

    #[test]
    fn joiners_stay_only_inside_bangla() {
        let ra_jophola = "\u{9b0}\u{200d}\u{9cd}\u{9af}";
        assert_eq!(normalise(ra_jophola), ra_jophola);
        assert_eq!(normalise("\u{9b0}\u{200c}\u{200d}\u{9cd}"), "\u{9b0}\u{200c}\u{9cd}");
        let (text, changes) = normalise_counted("a\u{200d}b \u{9a4}\u{9cd}\u{200d} \u{9e7}\u{200c}\u{9e8}");
        assert_eq!(text, "ab \u{9a4}\u{9cd} \u{9e7}\u{9e8}");
        assert_eq!(changes.joiners, 3);
    }

    #[test]
    fn rubbish_goes_and_verse_stays() {
        let text =
            "\u{feff}  Tyger\u{0} Tyger,\u{a0} \tburning  bright, \r\n  In the\rforests\u{e000}\n\n \n\nof\u{85}night ";
        let (text, changes) = normalise_counted(text);
        assert_eq!(text, "Tyger Tyger, burning bright,\n  In the\nforests\n\nof\nnight");
        assert_eq!((changes.byte_order_marks, changes.controls, changes.private_use), (1, 1, 1));
        assert_eq!(changes.line_ends, 3);
    }

    #[test]
    fn other_scripts_are_composed_too() {
        let (text, changes) = normalise_counted("cafe\u{301}");
        assert_eq!((text.as_str(), changes.other_composition), ("caf\u{e9}", 1));
        assert_eq!(normalise(" \n \t\u{200d}"), "");
    }

    #[test]
    fn reordered_marks_decide_what_stands_beside_a_joiner() {
        // The nukta moves before the acute accent, which is no Bangla mark: the joiner goes.
        assert_eq!(normalise("\u{301}\u{9bc}\u{200c}\u{9c7}"), "\u{9bc}\u{301}\u{9c7}");
        // Without the joiner the two halves of a vowel sign meet and are joined.
        assert_eq!(normalise("a\u{9c7}\u{301}\u{200c}\u{9be}"), "a\u{9c7}\u{301}\u{9be}");
        assert_eq!(normalise("\u{995}\u{9c7}\u{200c}\u{9be}"), "\u{995}\u{9c7}\u{200c}\u{9be}");
    }

    fn awkward() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "\u{feff}", "\u{200c}", "\u{200d}", "\u{9c7}", "\u{9be}", "\u{9d7}", "\u{9bc}", "\u{9a1}", "\u{9dc}",
            "\u{9cd}", "\u{9af}", "\u{9cb}", " ", "\t", "\u{a0}", "\r", "\n", "\u{2028}", "a", "e", "\u{301}", "\u{0}",
            "\u{e000}", "\u{9e7}", "\u{2000}", "\u{1100}", "\u{1161}", "\u{11a8}",
        ]);
        prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in prop_oneof![awkward(), any::<String>()]) {
            let once = normalise(&text);
            let (twice, changes) = normalise_counted(&once);
            prop_assert_eq!(&twice, &once);
            prop_assert_eq!(changes, Changes::default());
            prop_assert!(!once.contains(['\r', '\t', BYTE_ORDER_MARK]) && !once.contains("\n\n\n"));
            prop_assert_eq!(once.trim_matches([' ', '\n']), once.as_str());
        }
    }
}
