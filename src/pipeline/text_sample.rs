//! Which documents a tokenizer is trained on: all, or an even sample of what is too much for its trainer.

use crate::corpus::balance::MixFilter;
use crate::corpus::{CorpusError, Document, documents};
use crate::recipe::Recipe;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// Bytes of text that a tokenizer is trained on, at most.
const BYTES: f64 = 64e6;
/// Different words between spaces that it is trained on, at most: the trainer holds some 2 kB for each.
const WORDS: usize = 400_000;
/// What a share that gives too many words is multiplied by before the next is tried.
const LESS: f64 = 0.75;
/// A share of so few bytes is taken whatever its words.
const FEWEST: f64 = 1e6;

/// The share of the text that is within the limits, taken evenly from its documents.
///
/// # Errors
/// [`CorpusError`] when a document cannot be read.
pub(super) fn share(
    text: &Path,
    recipe: &Recipe,
    characters: &BTreeMap<String, f64>,
    bytes: f64,
) -> Result<f64, CorpusError> {
    let mut share = (BYTES / bytes).min(1.0);
    while share * bytes > FEWEST && has_too_many_words(text, Chosen::new(recipe, characters.clone(), share))? {
        share *= LESS;
    }
    Ok(share)
}

fn has_too_many_words(text: &Path, mut chosen: Chosen) -> Result<bool, CorpusError> {
    let hash = |word: &str| {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        hasher.finish()
    };
    let mut words = HashSet::new();
    for document in documents(text)? {
        let document = document?;
        if chosen.takes(&document) {
            words.extend(document.text.split_whitespace().map(hash));
        }
        if words.len() > WORDS {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes documents as the recipe's mix has it, and of those a share.
pub(super) struct Chosen<'a> {
    mix: &'a BTreeMap<String, f64>,
    to_mix: Option<MixFilter<'a>>,
    share: f64,
    /// Bytes that were seen and taken.
    seen: f64,
    taken: f64,
}

impl<'a> Chosen<'a> {
    /// `characters` are those of each language in all of the text.
    pub(super) fn new(recipe: &'a Recipe, characters: BTreeMap<String, f64>, share: f64) -> Self {
        let to_mix = (!recipe.tokenizer.mix.is_empty()).then(|| MixFilter::new(&recipe.tokenizer.mix, characters));
        Chosen { mix: &recipe.mix, to_mix, share, seen: 0.0, taken: 0.0 }
    }

    /// Whether the next document is among them.
    pub(super) fn takes(&mut self, document: &Document) -> bool {
        let is_wanted = match &mut self.to_mix {
            Some(filter) => filter.takes(document),
            None => self.mix.contains_key(&document.language),
        };
        is_wanted && (self.share == 1.0 || self.samples(&document.text))
    }

    fn samples(&mut self, text: &str) -> bool {
        let size = text.len() as f64;
        self.seen += size;
        if self.taken + size / 2.0 > self.seen * self.share {
            return false;
        }
        self.taken += size;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::write_documents;

    /// Documents of two languages by turns, each of so many words that stand nowhere else.
    fn text(path: &Path, count: usize, words: usize) -> f64 {
        let document = |n: usize| Document {
            id: n.to_string(),
            language: ["bn", "en"][n % 2].to_owned(),
            source: "s".to_owned(),
            domain: "d".to_owned(),
            text: (0..words).map(|i| format!("w{n}x{i} ")).collect(),
        };
        let all: Vec<Document> = (0..count).map(document).collect();
        write_documents(path, &all).unwrap();
        all.iter().map(|d| d.text.len() as f64).sum()
    }

    #[test]
    fn text_of_too_many_words_is_sampled_evenly() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text.jsonl");
        let recipe = Recipe::load("pocket").unwrap();
        let none = BTreeMap::new();
        let bytes = text(&path, 90, 4000);
        assert_eq!(share(&path, &recipe, &none, bytes).unwrap(), 1.0, "360,000 words");
        let bytes = text(&path, 200, 4000);
        let found = share(&path, &recipe, &none, bytes).unwrap();
        assert!((0.3..=0.5).contains(&found), "{found} of 800,000 words");
        let mut chosen = Chosen::new(&recipe, none, found);
        let taken: Vec<bool> = documents(&path).unwrap().map(|d| chosen.takes(&d.unwrap())).collect();
        for half in taken.chunks(100) {
            let share = half.iter().filter(|taken| **taken).count() as f64 / 100.0;
            assert!((share - found).abs() < 0.02, "{share} of one half, {found} in all");
        }
    }
}
