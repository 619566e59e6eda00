//! How the languages share a corpus, by characters, bytes and tokens: a tokenizer that cuts one
//! language finer than another moves the balance of what is trained on.

use super::Document;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Size and share of one language.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageBalance {
    /// Language code.
    pub language: String,
    /// Documents.
    pub documents: u64,
    /// Code points.
    pub characters: u64,
    /// Bytes of UTF-8.
    pub bytes: u64,
    /// Tokens.
    pub tokens: u64,
    /// Share of all characters, from 0 to 1.
    pub character_share: f64,
    /// Share of all bytes, from 0 to 1.
    pub byte_share: f64,
    /// Share of all tokens, from 0 to 1; 0 when no tokens were given.
    pub token_share: f64,
}

/// Which documents give the shares of a mix in characters: all of the language that is short, and of the
/// others every so many, so that all parts of them stay. Languages outside the mix are left out.
pub struct MixFilter<'a> {
    mix: &'a BTreeMap<String, f64>,
    /// Characters that there are, that were seen and that were taken, by language.
    there: BTreeMap<String, f64>,
    seen: BTreeMap<String, f64>,
    taken: BTreeMap<String, f64>,
    whole: f64,
}

impl<'a> MixFilter<'a> {
    /// A filter for documents that have so many characters `there` by language.
    pub fn new(mix: &'a BTreeMap<String, f64>, there: BTreeMap<String, f64>) -> Self {
        let of = |language: &str| there.get(language).copied().unwrap_or(0.0);
        let whole = mix.iter().map(|(language, share)| of(language) / share).fold(f64::INFINITY, f64::min);
        MixFilter { mix, there, seen: BTreeMap::new(), taken: BTreeMap::new(), whole }
    }

    /// Whether the next document is taken.
    pub fn takes(&mut self, document: &Document) -> bool {
        let Some(share) = self.mix.get(&document.language) else { return false };
        let size = document.text.chars().count() as f64;
        let seen = self.seen.entry(document.language.clone()).or_default();
        let taken = self.taken.entry(document.language.clone()).or_default();
        *seen += size;
        let there = self.there.get(&document.language).copied().unwrap_or(0.0);
        // Half a document of play, so that the sum errs to neither side.
        let is_taken = *taken + size / 2.0 <= *seen * (self.whole * share / there).min(1.0);
        *taken += if is_taken { size } else { 0.0 };
        is_taken
    }
}

/// As many of `documents` as [`MixFilter`] takes.
pub fn to_mix<'a>(documents: &'a [Document], mix: &BTreeMap<String, f64>) -> Vec<&'a Document> {
    let mut there: BTreeMap<String, f64> = BTreeMap::new();
    for document in documents {
        *there.entry(document.language.clone()).or_default() += document.text.chars().count() as f64;
    }
    let mut filter = MixFilter::new(mix, there);
    documents.iter().filter(|document| filter.takes(document)).collect()
}

/// The balance of `documents`, one row a language in alphabetical order; `tokens` is the number of
/// tokens of each language (those of its shard).
pub fn measure(documents: &[Document], tokens: &BTreeMap<String, u64>) -> Vec<LanguageBalance> {
    let mut sizes = BTreeMap::new();
    documents.iter().for_each(|document| count(&mut sizes, document));
    shares(sizes, tokens)
}

/// Adds a document to the sizes by language.
pub fn count(sizes: &mut BTreeMap<String, LanguageBalance>, document: &Document) {
    if !sizes.contains_key(&document.language) {
        sizes.insert(document.language.clone(), LanguageBalance::default());
    }
    if let Some(row) = sizes.get_mut(&document.language) {
        row.documents += 1;
        row.characters += document.text.chars().count() as u64;
        row.bytes += document.text.len() as u64;
    }
}

/// The balance of documents that were counted, as [`measure`].
pub fn shares(mut sizes: BTreeMap<String, LanguageBalance>, tokens: &BTreeMap<String, u64>) -> Vec<LanguageBalance> {
    for (language, &count) in tokens {
        sizes.entry(language.clone()).or_default().tokens = count;
    }
    let mut rows: Vec<_> = sizes.into_iter().map(|(language, row)| LanguageBalance { language, ..row }).collect();
    let total = |size: fn(&LanguageBalance) -> u64| rows.iter().map(size).sum::<u64>().max(1) as f64;
    let (characters, bytes, tokens) = (total(|r| r.characters), total(|r| r.bytes), total(|r| r.tokens));
    for row in &mut rows {
        row.character_share = row.characters as f64 / characters;
        row.byte_share = row.bytes as f64 / bytes;
        row.token_share = row.tokens as f64 / tokens;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_characters_bytes_and_tokens() {
        let document = |language: &str, text: &str| Document {
            id: text.to_owned(),
            source: "s".to_owned(),
            language: language.to_owned(),
            domain: "d".to_owned(),
            text: text.to_owned(),
        };
        let documents = [document("en", "abcd"), document("bn", "কখ"), document("bn", "গঘ")];
        let tokens = BTreeMap::from([("bn".to_owned(), 30), ("en".to_owned(), 10)]);
        let rows = measure(&documents, &tokens);
        assert_eq!(rows[0].language, "bn");
        assert_eq!((rows[0].documents, rows[0].characters, rows[0].bytes, rows[0].tokens), (2, 4, 12, 30));
        assert_eq!((rows[0].character_share, rows[0].byte_share, rows[0].token_share), (0.5, 0.75, 0.75));
        assert_eq!((rows[1].character_share, rows[1].byte_share, rows[1].token_share), (0.5, 0.25, 0.25));
        assert_eq!(measure(&[], &BTreeMap::new()), []);
    }
}
