//! What a character is to the pre-tokenizers' patterns, from the tables of the regular expressions.

use fancy_regex::Regex;
use std::sync::{LazyLock, OnceLock};

/// Kinds of characters that the patterns tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// `\p{L}`.
    Letter,
    /// `\p{N}`.
    Number,
    /// `\p{M}`, and the joiners U+200C and U+200D.
    Mark,
    /// `\s`.
    Space,
    /// All else.
    Other,
}

const PAGE: usize = 256;

/// Pages are filled when a text first needs them, so that the tables are those of the patterns and
/// cost nothing to a text of few scripts.
static PAGES: [OnceLock<Box<[Class; PAGE]>>; 0x11_0000 / PAGE] = [const { OnceLock::new() }; 0x11_0000 / PAGE];

static KINDS: LazyLock<[(Regex, Class); 4]> = LazyLock::new(|| {
    let kind = |pattern: &str, class| match Regex::new(pattern) {
        Ok(regex) => (regex, class),
        Err(e) => unreachable!("the pattern is constant: {e}"),
    };
    [
        kind(r"\p{L}", Class::Letter),
        kind(r"\p{N}", Class::Number),
        kind(r"[\p{M}\x{200C}\x{200D}]", Class::Mark),
        kind(r"\s", Class::Space),
    ]
});

/// The class of a character.
pub(super) fn class(c: char) -> Class {
    let code = c as usize;
    PAGES[code / PAGE].get_or_init(|| page(code / PAGE))[code % PAGE]
}

fn page(number: usize) -> Box<[Class; PAGE]> {
    let mut classes = Box::new([Class::Other; PAGE]);
    for (i, slot) in classes.iter_mut().enumerate() {
        // Surrogates are no characters and are never asked for.
        let Some(c) = char::from_u32((number * PAGE + i) as u32) else { continue };
        let mut buffer = [0; 4];
        let text = &*c.encode_utf8(&mut buffer);
        let found = KINDS.iter().find(|(regex, _)| regex.is_match(text).unwrap_or(false));
        *slot = found.map_or(Class::Other, |(_, class)| *class);
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_marks_numbers_spaces_and_joiners_are_told_apart() {
        let found = ['ক', 'a', 'ি', '্', '\u{200d}', '৫', '½', '\u{a0}', '\n', '।', '☺'].map(class);
        use Class::{Letter as L, Mark as M, Number as N, Other as O, Space as S};
        assert_eq!(found, [L, L, M, M, M, N, N, S, S, O, O]);
    }
}
