//! Counts of one text: what its tokens cover and where they end.

use crate::tokenizer::{Encoder, TokenizerError};
use fancy_regex::Regex;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::LazyLock;
use unicode_normalization::{UnicodeNormalization, is_nfc};
use unicode_segmentation::UnicodeSegmentation;

/// A word: a maximal run of letters and their marks; joiners sit inside conjuncts.
static WORD: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*").unwrap_or_else(|e| unreachable!("the pattern is constant: {e}"))
});

/// Texts are encoded in parts of at most about this many bytes, so that memory stays bounded.
pub(super) const LONGEST: usize = 1 << 16;

/// What was counted in some texts.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Counts {
    pub texts: u64,
    pub characters: u64,
    pub bytes: u64,
    pub words: u64,
    pub letter_words: u64,
    pub whole_words: u64,
    pub tokens: u64,
    pub inside_cluster: u64,
    pub inside_character: u64,
    pub lone_bytes: u64,
    pub failures: u64,
    /// Occurrences of each token.
    pub of_token: BTreeMap<u32, u64>,
    /// Occurrences of each token that end inside a grapheme cluster.
    pub splitting: BTreeMap<u32, u64>,
}

impl AddAssign<Counts> for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.texts += other.texts;
        self.characters += other.characters;
        self.bytes += other.bytes;
        self.words += other.words;
        self.letter_words += other.letter_words;
        self.whole_words += other.whole_words;
        self.tokens += other.tokens;
        self.inside_cluster += other.inside_cluster;
        self.inside_character += other.inside_character;
        self.lone_bytes += other.lone_bytes;
        self.failures += other.failures;
        for (id, count) in other.of_token {
            *self.of_token.entry(id).or_default() += count;
        }
        for (id, count) in other.splitting {
            *self.splitting.entry(id).or_default() += count;
        }
    }
}

/// Counts a part of a text; `first` when the text begins with it; the text itself is not counted. `lone` says of each id whether it is a lone byte of a longer character. With `compose` the text is brought to NFC first.
pub(super) fn count(
    encoder: &dyn Encoder,
    lone: &[bool],
    text: &str,
    first: bool,
    compose: bool,
) -> Result<Counts, TokenizerError> {
    let composed;
    let text = if !compose || is_nfc(text) {
        text
    } else {
        composed = text.nfc().collect::<String>();
        &composed
    };
    let continues = !first && text.starts_with(|c: char| !c.is_whitespace());
    let words = text.split_whitespace().count() as u64 - u64::from(continues);
    let mut counts = Counts { words, ..Counts::default() };
    let mut failed = false;
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(cut(rest, LONGEST));
        failed |= count_part(encoder, lone, part, &mut counts)?;
        rest = after;
    }
    counts.failures = u64::from(failed);
    Ok(counts)
}

/// Where to cut a text so that the first part has at most `limit` bytes: before its last white space,
/// else at a grapheme cluster, else (one endless cluster) at a character.
pub(super) fn cut(text: &str, limit: usize) -> usize {
    if text.len() <= limit {
        return text.len();
    }
    let end = (1..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let head = &text[..end];
    let space = head.char_indices().rev().find(|(at, c)| *at > 0 && c.is_whitespace()).map(|(at, _)| at);
    let cluster = || head.grapheme_indices(true).next_back().map(|(at, _)| at).filter(|at| *at > 0);
    space.or_else(cluster).unwrap_or(end)
}

/// Adds the counts of a part; true when it does not come back.
fn count_part(encoder: &dyn Encoder, lone: &[bool], text: &str, counts: &mut Counts) -> Result<bool, TokenizerError> {
    let encoded = encoder.encode_text(text)?;
    counts.characters += text.chars().count() as u64;
    counts.bytes += text.len() as u64;
    counts.tokens += encoded.ids.len() as u64;
    let mut clusters: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
    clusters.push(text.len());
    for (id, end) in encoded.ids.iter().zip(&encoded.ends) {
        *counts.of_token.entry(*id).or_default() += 1;
        counts.inside_character += u64::from(!text.is_char_boundary(*end));
        counts.lone_bytes += u64::from(lone.get(*id as usize) == Some(&true));
        if clusters.binary_search(end).is_err() {
            counts.inside_cluster += 1;
            *counts.splitting.entry(*id).or_default() += 1;
        }
    }
    count_words(text, &encoded.ends, counts);
    let decoded = encoder.decode_ids(&encoded.ids)?;
    Ok(decoded != text && decoded.nfc().ne(text.nfc()))
}

/// Counts the words and those that exactly one token covers, alone or with the space before it.
fn count_words(text: &str, ends: &[usize], counts: &mut Counts) {
    for word in WORD.find_iter(text).flatten() {
        counts.letter_words += 1;
        let last = ends.partition_point(|end| *end < word.end());
        let begins = if last == 0 { 0 } else { ends[last - 1] };
        let alone = begins == word.start() || (begins + 1 == word.start() && text.as_bytes()[begins] == b' ');
        counts.whole_words += u64::from(alone && ends.get(last) == Some(&word.end()));
    }
}
