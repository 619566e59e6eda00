//! Normalisation form C, with a quick look that knows Bangla.
//!
//! The standard quick check answers "maybe" at every া (U+09BE), because it composes with ে before it;
//! so nearly every Bangla text would be composed only to find that nothing changed.

use std::borrow::Cow;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// `text` in form C.
pub(super) fn compose(text: &str) -> Cow<'_, str> {
    if is_plain(text) || is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// True only for text that surely is in form C: Latin-1, Bangla and punctuation, where no letter of
/// the exclusions, no pair that composes and no marks out of order are.
fn is_plain(text: &str) -> bool {
    let mut previous = '\0';
    for c in text.chars() {
        let fine = match c {
            '\0'..='\u{2ff}' | '\u{964}' | '\u{965}' | '\u{200b}'..='\u{200d}' | '\u{2010}'..='\u{2027}' => true,
            // Both compose with ে directly before them.
            '\u{9be}' | '\u{9d7}' => previous != '\u{9c7}',
            // The single dot letters are excluded from composition; U+09FE is a mark of another class.
            '\u{9dc}' | '\u{9dd}' | '\u{9df}' | '\u{9fe}' => false,
            // The dot (class 7) comes before the hasanta (class 9).
            '\u{9bc}' => !matches!(previous, '\u{9bc}' | '\u{9cd}'),
            '\u{980}'..='\u{9fd}' => true,
            _ => false,
        };
        if !fine {
            return false;
        }
        previous = c;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bangla_as_people_write_it_is_seen_at_once() {
        assert!(is_plain("আমি বাংলায় গান গাই। “I sing” — 10 %"));
        assert!(is_plain("ড\u{9bc}") && !is_plain("\u{9dc}"));
        assert!(!is_plain("\u{9c7}\u{9be}") && is_plain("\u{9cb}"));
        assert_eq!(compose("ক\u{9c7}\u{9be}\u{9dc}"), "ক\u{9cb}ড\u{9bc}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]
        #[test]
        fn what_looks_plain_is_in_form_c(text in "[ a\u{c0}\u{300}ক-হ\u{980}-\u{9fe}\u{9bc}\u{9be}\u{9c7}\u{9cd}\u{9d7}\u{200c}\u{2013}]{0,12}") {
            prop_assert!(!is_plain(&text) || is_nfc(&text));
            prop_assert_eq!(compose(&text).into_owned(), text.nfc().collect::<String>());
        }
    }
}
