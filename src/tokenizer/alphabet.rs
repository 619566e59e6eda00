//! The byte-level alphabet: a printable character for every byte (GPT-2's table).

use std::sync::LazyLock;

/// Bytes that stand for themselves: printable Latin-1.
fn plain(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The 68 other bytes: the character U+0100 and those after it stand for them.
static OTHERS: LazyLock<Vec<u8>> = LazyLock::new(|| (0..=255).filter(|byte| !plain(*byte)).collect());

/// The byte that a character of the alphabet stands for.
pub(super) fn byte_of(c: char) -> Option<u8> {
    let code = c as u32;
    match u8::try_from(code) {
        Ok(byte) => Some(byte).filter(|byte| plain(*byte)),
        Err(_) => OTHERS.get(code as usize - 0x100).copied(),
    }
}

/// The character that stands for a byte.
pub(super) fn char_of(byte: u8) -> char {
    match OTHERS.binary_search(&byte) {
        Ok(index) => char::from_u32(0x100 + index as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        Err(_) => char::from(byte),
    }
}

/// Bytes as the alphabet writes them.
pub(super) fn spell(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char_of(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own_and_space_is_the_known_one() {
        assert_eq!((char_of(b' '), char_of(b'A'), char_of(0xE0), char_of(0)), ('Ġ', 'A', 'à', 'Ā'));
        assert!((0..=255).all(|byte| byte_of(char_of(byte)) == Some(byte)));
        assert_eq!((byte_of('ক'), byte_of(' ')), (None, None));
    }
}
