//! Single words step by step: from code points to bytes, pieces and tokens.

use crate::tokenizer::fertility::spelling;
use crate::tokenizer::{Encoder, Tokenizer, TokenizerError};
use fancy_regex::Regex;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A word on its way through one tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// The word as it is written.
    pub word: String,
    /// Name of the pre-tokenizer.
    pub pre_tokenizer: String,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// Code points in NFC, each with whether it is a combining mark.
    pub code_points: Vec<(String, bool)>,
    /// UTF-8 bytes in NFC.
    pub bytes: usize,
    /// Where the pattern cuts.
    pub pieces: Vec<String>,
    /// The tokens; bytes that are no character are written `<0x..>`.
    pub tokens: Vec<String>,
}

/// A word in one spelling, by one tokenizer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spelling {
    /// What the word shows.
    pub case: String,
    /// The word.
    pub word: String,
    /// Its code points as they are written.
    pub code_points: String,
    /// Whether the tokenizer brings text to NFC.
    pub nfc: bool,
    /// The tokens.
    pub tokens: Vec<String>,
    /// Tokens that are a lone byte of a longer character.
    pub lone_bytes: usize,
}

/// Words whose letters have two spellings each: what they show, the one spelling, the other.
pub const SPELLINGS: [(&str, [&str; 2]); 4] = [
    ("letter with a dot below, ড়", ["বা\u{9dc}ি", "বা\u{9a1}\u{9bc}ি"]),
    ("letter with a dot below, য়", ["সম\u{9df}", "সম\u{9af}\u{9bc}"]),
    ("split sign, ো", ["ক\u{9cb}ন", "ক\u{9c7}\u{9be}ন"]),
    ("split sign, ৌ", ["ন\u{9cc}কা", "ন\u{9c7}\u{9d7}কা"]),
];

/// The way of `word` through `tokenizer`, which was trained with `pre_tokenizer`'s pattern.
///
/// # Errors
/// [`TokenizerError`] when encoding fails.
pub fn walk(
    word: &str,
    pre_tokenizer: crate::tokenizer::PreTokenizer,
    tokenizer: &Tokenizer,
) -> Result<Walk, TokenizerError> {
    let composed: String = word.nfc().collect();
    let failed = |e: fancy_regex::Error| TokenizerError::Use { action: "cut text", message: e.to_string() };
    let pattern = Regex::new(pre_tokenizer.pattern()).map_err(failed)?;
    let pieces = pattern.find_iter(&composed).map(|found| found.map(|piece| piece.as_str().to_owned()));
    Ok(Walk {
        word: word.to_owned(),
        pre_tokenizer: pre_tokenizer.name().to_owned(),
        vocabulary: tokenizer.vocabulary_size(),
        code_points: composed.chars().map(|c| (format!("U+{:04X}", c as u32), is_combining_mark(c))).collect(),
        bytes: composed.len(),
        pieces: pieces.collect::<Result<_, _>>().map_err(failed)?,
        tokens: tokens(tokenizer, word)?,
    })
}

/// [`SPELLINGS`] by tokenizers with and without NFC.
///
/// # Errors
/// [`TokenizerError`] when encoding fails.
pub fn spellings(composing: &Tokenizer, plain: &Tokenizer) -> Result<Vec<Spelling>, TokenizerError> {
    let mut found = Vec::new();
    for (case, words) in SPELLINGS {
        for word in words {
            for (tokenizer, nfc) in [(plain, false), (composing, true)] {
                let ids = tokenizer.encode(word)?;
                let lone = |id: &&u32| matches!(tokenizer.token_bytes(**id).as_deref(), Some([byte]) if *byte >= 0x80);
                let code_points: Vec<String> = word.chars().map(|c| format!("{:04X}", c as u32)).collect();
                found.push(Spelling {
                    case: case.to_owned(),
                    word: word.to_owned(),
                    code_points: code_points.join(" "),
                    nfc,
                    tokens: tokens(tokenizer, word)?,
                    lone_bytes: ids.iter().filter(lone).count(),
                });
            }
        }
    }
    Ok(found)
}

fn tokens(tokenizer: &Tokenizer, text: &str) -> Result<Vec<String>, TokenizerError> {
    Ok(tokenizer.encode(text)?.into_iter().map(|id| spelling(&tokenizer.bytes_of(id).unwrap_or_default())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::{PreTokenizer, Training};

    #[test]
    fn a_word_is_followed_from_code_points_to_tokens() {
        let train = |pre_tokenizer, compose| {
            let training = Training { pre_tokenizer, vocabulary: 300, compose };
            Tokenizer::train_as(&["গাই", "গাই", "সম\u{9af}\u{9bc} সম\u{9af}\u{9bc}"], &training).unwrap()
        };
        let tokenizer = train(PreTokenizer::Gpt2, true);
        let way = walk("গাই", PreTokenizer::Gpt2, &tokenizer).unwrap();
        assert_eq!((way.pieces, way.bytes), (["গ", "া", "ই"].map(str::to_owned).to_vec(), 9));
        assert_eq!(way.code_points[1], ("U+09BE".to_owned(), true));
        assert_eq!(way.tokens, ["গ", "া", "ই"]);
        let [plain, composing] = [false, true].map(|compose| train(PreTokenizer::Marks, compose));
        let found = spellings(&composing, &plain).unwrap();
        let tokens = |nfc: bool| {
            let of = found.iter().filter(|s| s.case.contains('য') && s.nfc == nfc);
            of.map(|s| s.tokens.clone()).collect::<Vec<_>>()
        };
        assert_eq!(tokens(true)[0], tokens(true)[1], "NFC makes one spelling of both");
        assert_ne!(tokens(false)[0], tokens(false)[1]);
    }
}
