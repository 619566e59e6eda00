//! What happened to the text on its way to training, in numbers a table can be made of.

use super::contamination::ContaminationReport;
use super::normalise::Changes;
use super::{CorpusError, Document};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A quantity of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amount {
    /// Documents.
    pub documents: u64,
    /// Code points.
    pub characters: u64,
    /// Bytes of UTF-8.
    pub bytes: u64,
}

impl Amount {
    /// Adds one document with this text.
    pub fn add(&mut self, text: &str) {
        self.documents += 1;
        self.characters += text.chars().count() as u64;
        self.bytes += text.len() as u64;
    }
}

/// What became of one source's text in one language. Sizes are of the normalised text, except
/// `read` and `skipped`, which are of the text as read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceReport {
    /// Id of the manifest source.
    pub source: String,
    /// Language code.
    pub language: String,
    /// Given by the reader.
    pub read: Amount,
    /// Not usable: invalid UTF-8 (counted in documents and bytes only) or nothing left after normalising.
    pub skipped: Amount,
    /// Dropped as the same text as an earlier document.
    pub exact_duplicates: Amount,
    /// Dropped as nearly the same text as an earlier document.
    pub near_duplicates: Amount,
    /// Dropped because it shares a window with held-out, parallel or evaluation text.
    pub contaminated: Amount,
    /// Left for training.
    pub train: Amount,
    /// Held out.
    pub held_out: Amount,
}

/// What happened to the whole corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorpusReport {
    /// A row for each source and language, in the order first read.
    pub sources: Vec<SourceReport>,
    /// What normalising changed in the documents.
    pub normalised: Changes,
    /// What the scan for protected text dropped.
    pub contamination: ContaminationReport,
    /// Parallel sentence pairs.
    pub parallel_pairs: u64,
}

impl CorpusReport {
    /// The row of a source and language, made when new.
    pub fn row(&mut self, source: &str, language: &str) -> &mut SourceReport {
        let found = self.sources.iter().position(|r| r.source == source && r.language == language);
        let at = found.unwrap_or_else(|| {
            let (source, language) = (source.to_owned(), language.to_owned());
            self.sources.push(SourceReport { source, language, ..SourceReport::default() });
            self.sources.len() - 1
        });
        &mut self.sources[at]
    }

    /// Adds a document to one step of its row.
    pub(super) fn count(&mut self, document: &Document, step: fn(&mut SourceReport) -> &mut Amount) {
        step(self.row(&document.source, &document.language)).add(&document.text);
    }

    /// Counts documents that a reader could not use.
    pub fn add_unreadable(&mut self, source: &str, language: &str, documents: u64, bytes: u64) {
        let row = self.row(source, language);
        for amount in [&mut row.read, &mut row.skipped] {
            amount.documents += documents;
            amount.bytes += bytes;
        }
    }

    /// Checks that every language of a mix has documents to train on and to measure on.
    ///
    /// # Errors
    /// [`CorpusError::MissingLanguage`] for the first that has none.
    pub fn require_languages<'a>(&self, languages: impl IntoIterator<Item = &'a String>) -> Result<(), CorpusError> {
        let present = |amount: fn(&SourceReport) -> Amount| -> BTreeSet<&str> {
            self.sources.iter().filter(|r| amount(r).documents > 0).map(|r| r.language.as_str()).collect()
        };
        let parts = [("training", present(|r| r.train)), ("held-out", present(|r| r.held_out))];
        for language in languages {
            for (part, present) in &parts {
                if !present.contains(language.as_str()) {
                    let names: Vec<&str> = present.iter().copied().collect();
                    let present = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    return Err(CorpusError::MissingLanguage { language: language.clone(), part, present });
                }
            }
        }
        Ok(())
    }

    /// One step summed over all sources.
    pub fn total(&self, step: fn(&SourceReport) -> Amount) -> Amount {
        self.sources.iter().map(step).fold(Amount::default(), |sum, amount| Amount {
            documents: sum.documents + amount.documents,
            characters: sum.characters + amount.characters,
            bytes: sum.bytes + amount.bytes,
        })
    }
}
