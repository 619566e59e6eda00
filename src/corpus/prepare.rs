//! From documents as read to documents to train and to measure on.

use super::contamination::Protected;
use super::normalise::{normalise, normalise_counted};
use super::prepare_report::{Amount, CorpusReport, SourceReport};
use super::source::{Manifest, Store, files_to_read, read};
use super::split::is_held_out;
use super::{CorpusError, Document, ParallelSet, duplicate};
use crate::progress::Progress;
use crate::recipe::CorpusRecipe;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// A corpus ready for the tokenizer and the shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// Documents to train on, in the order read.
    pub train: Vec<Document>,
    /// Documents never trained on, in the order read.
    pub held_out: Vec<Document>,
    /// Parallel sentences, normalised.
    pub parallel: Vec<ParallelSet>,
    /// What happened on the way.
    pub report: CorpusReport,
}

impl Prepared {
    /// Checks that every language of a mix has documents to train on and to measure on.
    ///
    /// # Errors
    /// [`CorpusError::MissingLanguage`] for the first that has none.
    pub fn require_languages<'a>(&self, languages: impl IntoIterator<Item = &'a String>) -> Result<(), CorpusError> {
        let present = |documents: &[Document]| documents.iter().map(|d| d.language.clone()).collect::<BTreeSet<_>>();
        let parts = [("training", present(&self.train)), ("held-out", present(&self.held_out))];
        for language in languages {
            for (part, present) in &parts {
                if !present.contains(language) {
                    let names: Vec<&str> = present.iter().map(String::as_str).collect();
                    let present = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    return Err(CorpusError::MissingLanguage { language: language.clone(), part, present });
                }
            }
        }
        Ok(())
    }
}

/// Reads the sources of a manifest and prepares them with [`prepare_documents`], showing progress.
/// Text that is not UTF-8 is skipped, named on standard error and counted in the report.
///
/// # Errors
/// [`CorpusError::Source`] when a file is missing or wrong, [`CorpusError::Empty`] when nothing is left.
pub fn prepare(manifest: &Manifest, recipe: &CorpusRecipe, store: &Store) -> Result<Prepared, CorpusError> {
    let files = files_to_read(manifest)?;
    let mut progress = Progress::new("read", files, "files");
    let outcome = read(manifest, store, &mut progress)?;
    progress.finish(&format!("{} documents of {files} files", outcome.documents.len()));
    for skipped in &outcome.skipped {
        eprintln!("skipped {}, {}: {}", skipped.source, skipped.place, skipped.reason);
    }
    let mut progress = Progress::new("prepare", 4 * outcome.documents.len() as u64, "documents");
    let mut prepared =
        prepare_documents(outcome.documents, outcome.parallel, &outcome.protected, recipe, &mut progress)?;
    for skipped in &outcome.skipped {
        prepared.report.add_unreadable(&skipped.source, &skipped.language, 1, skipped.bytes);
    }
    let (train, held_out) = (prepared.train.len(), prepared.held_out.len());
    progress.finish(&format!("{train} documents to train on, {held_out} held out"));
    Ok(prepared)
}

/// Normalises `documents`, drops exact and near duplicates (the first in order stays), holds out a
/// share, and drops training documents that share a window with held-out text, with `parallel` or
/// with the `protected` evaluation texts. `progress` advances by one for each document and step,
/// four times the number of documents in all.
///
/// The result depends on the documents and their order alone, not on the number of threads.
///
/// # Errors
/// [`CorpusError::Empty`] when nothing was read or nothing is left for training.
pub fn prepare_documents(
    documents: Vec<Document>,
    parallel: Vec<ParallelSet>,
    protected: &[String],
    recipe: &CorpusRecipe,
    progress: &mut Progress,
) -> Result<Prepared, CorpusError> {
    let read = documents.len() as u64;
    let mut report = CorpusReport::default();
    let mut done = |message: &str| progress.advance(read, message);
    let parallel = normalise_parallel(parallel, &mut report);
    let documents = normalise_documents(documents, &mut report);
    done("normalised");
    let documents = drop_exact(documents, &mut report);
    done("exact duplicates dropped");
    let documents = drop_near(documents, recipe.near_duplicate, &mut report);
    done("near duplicates dropped");
    let (held_out, train): (Vec<_>, Vec<_>) =
        documents.into_par_iter().partition(|d| is_held_out(&d.text, recipe.held_out));
    let train = drop_contaminated(train, &held_out, &parallel, protected, recipe, &mut report);
    done("held-out text kept out");
    train.iter().for_each(|d| report.count(d, |row| &mut row.train));
    held_out.iter().for_each(|d| report.count(d, |row| &mut row.held_out));
    if train.is_empty() {
        let advice = if read == 0 {
            "check the manifest's sources"
        } else {
            "the report says what was dropped; make `corpus.held_out` smaller or add sources"
        };
        return Err(CorpusError::Empty { read, kept: 0, advice });
    }
    Ok(Prepared { train, held_out, parallel, report })
}

fn normalise_parallel(mut parallel: Vec<ParallelSet>, report: &mut CorpusReport) -> Vec<ParallelSet> {
    for pair in parallel.iter_mut().flat_map(|set| &mut set.pairs) {
        pair.bn = normalise(&pair.bn);
        pair.en = normalise(&pair.en);
        report.parallel_pairs += 1;
    }
    parallel
}

fn normalise_documents(documents: Vec<Document>, report: &mut CorpusReport) -> Vec<Document> {
    let normalised: Vec<_> = documents.par_iter().map(|d| normalise_counted(&d.text)).collect();
    let mut kept = Vec::with_capacity(documents.len());
    for (document, (text, changes)) in documents.into_iter().zip(normalised) {
        report.count(&document, |row| &mut row.read);
        report.normalised.add(&changes);
        if text.is_empty() {
            report.count(&document, |row| &mut row.skipped);
        } else {
            kept.push(Document { text, ..document });
        }
    }
    kept
}

fn drop_exact(documents: Vec<Document>, report: &mut CorpusReport) -> Vec<Document> {
    let originals = duplicate::exact(&texts(&documents));
    let dropped = originals.iter().map(Option::is_some);
    keep(documents, dropped, report, |row| &mut row.exact_duplicates)
}

fn drop_near(documents: Vec<Document>, threshold: f64, report: &mut CorpusReport) -> Vec<Document> {
    let originals = duplicate::near(&texts(&documents), threshold);
    let dropped = originals.iter().map(Option::is_some);
    keep(documents, dropped, report, |row| &mut row.near_duplicates)
}

fn drop_contaminated(
    train: Vec<Document>,
    held_out: &[Document],
    parallel: &[ParallelSet],
    protected: &[String],
    recipe: &CorpusRecipe,
    report: &mut CorpusReport,
) -> Vec<Document> {
    let evaluation: Vec<String> = protected.iter().map(|text| normalise(text)).collect();
    let pairs = parallel.iter().flat_map(|set| &set.pairs).flat_map(|pair| [pair.bn.as_str(), &pair.en]);
    let all = held_out.iter().map(|d| d.text.as_str()).chain(pairs).chain(evaluation.iter().map(String::as_str));
    let (dropped, found) = Protected::new(all, recipe.contamination_window).scan(&train);
    report.contamination = found;
    keep(train, dropped.into_iter(), report, |row| &mut row.contaminated)
}

fn texts(documents: &[Document]) -> Vec<&str> {
    documents.iter().map(|d| d.text.as_str()).collect()
}

/// Keeps the documents that are not `dropped` and counts the others in a step of the report.
fn keep(
    documents: Vec<Document>,
    dropped: impl Iterator<Item = bool>,
    report: &mut CorpusReport,
    step: fn(&mut SourceReport) -> &mut Amount,
) -> Vec<Document> {
    let mut kept = Vec::with_capacity(documents.len());
    for (document, dropped) in documents.into_iter().zip(dropped) {
        if dropped {
            report.count(&document, step);
        } else {
            kept.push(document);
        }
    }
    kept
}
