//! tiktoken rank files: one token a line, in base64, a space, and its rank.

use super::any::LARGEST;
use super::merges::by_rank;
use crate::tokenizer::PreTokenizer;
use crate::tokenizer::alphabet::char_of;
use std::collections::HashSet;
use tokenizers::SplitDelimiterBehavior;
use tokenizers::Tokenizer;
use tokenizers::models::bpe::{BpeBuilder, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};

/// The pattern that goes with a file of a well-known name.
pub(super) fn pattern_of(name: &str) -> Option<PreTokenizer> {
    let known = [
        ("cl100k", PreTokenizer::Cl100k),
        ("o200k", PreTokenizer::O200k),
        ("r50k", PreTokenizer::Gpt2),
        ("p50k", PreTokenizer::Gpt2),
        ("gpt2", PreTokenizer::Gpt2),
    ];
    known.into_iter().find(|(part, _)| name.contains(part)).map(|(_, pattern)| pattern)
}

/// Reads the file as byte-level BPE: a merge for every way to make a token of two others, by rank.
pub(super) fn read(bytes: &[u8], pattern: Option<PreTokenizer>) -> Result<Tokenizer, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| "it is neither a tokenizer.json, a SentencePiece model nor lines of base64 and rank".to_owned())?;
    let ranks = parse(text)?;
    let names = || PreTokenizer::ALL.map(PreTokenizer::name).join(", ");
    let pattern = pattern.ok_or_else(|| format!("it does not say how text is cut: give --pattern {}", names()))?;
    let spelt = |token: &[u8]| token.iter().map(|byte| char_of(*byte)).collect::<String>();
    let vocabulary: Vocab = ranks.iter().map(|(token, rank)| (spelt(token), *rank)).collect();
    let pairs: Vec<(&[u8], u32)> = ranks.iter().map(|(token, rank)| (token.as_slice(), *rank)).collect();
    let merges = by_rank(&pairs).into_iter().map(|(left, right)| (spelt(left), spelt(right))).collect();
    let failed = |e: tokenizers::Error| e.to_string();
    let model = BpeBuilder::new().vocab_and_merges(vocabulary, merges).ignore_merges(true).build().map_err(failed)?;
    let split = SplitPattern::Regex(pattern.pattern().to_owned());
    let split = Split::new(split, SplitDelimiterBehavior::Isolated, false).map_err(failed)?;
    let level = ByteLevel::new(false, false, false);
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(Sequence::new(vec![split.into(), level.into()])));
    tokenizer.with_decoder(Some(level));
    Ok(tokenizer)
}

/// Tokens and ranks, each once, with every single byte among them.
fn parse(text: &str) -> Result<Vec<(Vec<u8>, u32)>, String> {
    let (mut ranks, mut tokens, mut used) = (Vec::new(), HashSet::new(), HashSet::new());
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let shown: String = line.chars().take(40).collect();
        let wrong = |what: &str| format!("line {} (`{shown}`) {what}", i + 1);
        let (token, rank) =
            line.trim_end().split_once(' ').ok_or_else(|| wrong("is not a token in base64, a space and a rank"))?;
        let token = base64(token).filter(|token| !token.is_empty()).ok_or_else(|| wrong("has no valid base64"))?;
        let rank: u32 = rank.parse().map_err(|_| wrong("has no rank"))?;
        if rank as usize >= LARGEST {
            return Err(wrong("has a rank too large for any vocabulary"));
        }
        if !used.insert(rank) {
            return Err(wrong("repeats a rank"));
        }
        if !tokens.insert(token.clone()) {
            return Err(wrong("repeats a token"));
        }
        ranks.push((token, rank));
    }
    match (0..=255u8).find(|byte| !tokens.contains(&vec![*byte])) {
        Some(byte) => Err(format!("it has no token for the byte 0x{byte:02x}; is it cut off?")),
        None => Ok(ranks),
    }
}

/// Decodes base64 (RFC 4648) with its padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let value = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values = digits.bytes().map(value).collect::<Option<Vec<u8>>>()?;
    let group = |group: &[u8]| {
        let bits = (0..4).fold(0u32, |bits, i| bits << 6 | u32::from(group.get(i).copied().unwrap_or(0)));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    Some(values.chunks(4).flat_map(group).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(base64("4KaV").as_deref(), Some("ক".as_bytes()));
        assert!(["Z", "Zg", "Zg=", "Z===", "Zm9*", "Zm=v"].iter().all(|text| base64(text).is_none()));
    }
}
