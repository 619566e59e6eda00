//! From documents as read to documents to train and to measure on.

use super::contamination::Protected;
use super::lines::{CHUNK, CHUNK_BYTES, chunks};
use super::normalise::{normalise, normalise_counted};
use super::prepare_report::CorpusReport;
use super::source::{Manifest, Store, files_to_read, read_each};
use super::split::is_held_out;
use super::spool::{Spool, SpoolWriter};
use super::{CorpusError, Document, ParallelSet, duplicate};
use crate::artifact::hash_bytes;
use crate::progress::Progress;
use crate::recipe::CorpusRecipe;
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::Path;

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
        self.report.require_languages(languages)
    }

    /// Collects what `prepare` gives.
    fn collect(
        prepare: impl FnOnce(&mut Sink, &mut Sink) -> Result<(Vec<ParallelSet>, CorpusReport), CorpusError>,
    ) -> Result<Self, CorpusError> {
        let (mut train, mut held_out) = (Vec::new(), Vec::new());
        let mut to_train = |document| {
            train.push(document);
            Ok(())
        };
        let mut to_held_out = |document| {
            held_out.push(document);
            Ok(())
        };
        let (parallel, report) = prepare(&mut to_train, &mut to_held_out)?;
        Ok(Prepared { train, held_out, parallel, report })
    }
}

/// What takes documents one after the other.
pub type Sink<'a> = dyn FnMut(Document) -> Result<(), CorpusError> + 'a;

/// Reads the sources of a manifest and prepares them with [`prepare_documents`], showing progress.
/// Text that is not UTF-8 is skipped, named on standard error and counted in the report.
///
/// # Errors
/// [`CorpusError::Source`] when a file is missing or wrong, [`CorpusError::Empty`] when nothing is left.
pub fn prepare(manifest: &Manifest, recipe: &CorpusRecipe, store: &Store) -> Result<Prepared, CorpusError> {
    let directory = std::env::temp_dir();
    Prepared::collect(|train, held_out| prepare_into(manifest, recipe, store, &directory, train, held_out))
}

/// As [`prepare`], for a corpus that may be larger than the memory: the documents go to `train` and `held_out`
/// in the order read, and lie in unnamed files in `directory` meanwhile. Gives the parallel sentences and the
/// report.
///
/// # Errors
/// As [`prepare`], and those of the sinks.
pub fn prepare_into(
    manifest: &Manifest,
    recipe: &CorpusRecipe,
    store: &Store,
    directory: &Path,
    train: &mut Sink,
    held_out: &mut Sink,
) -> Result<(Vec<ParallelSet>, CorpusReport), CorpusError> {
    let files = files_to_read(manifest)?;
    let mut progress = Progress::new("read", files, "files");
    let mut cleaned = Cleaned::new(directory)?;
    let outcome = read_each(manifest, store, &mut progress, &mut |document| cleaned.push(document))?;
    progress.finish(&format!("{} documents of {files} files", cleaned.read));
    for skipped in &outcome.skipped {
        eprintln!("skipped {}, {}: {}", skipped.source, skipped.place, skipped.reason);
    }
    let mut progress = Progress::new("prepare", 4 * cleaned.read, "documents");
    let made = cleaned.prepare(outcome.parallel, &outcome.protected, recipe, &mut progress, train, held_out);
    let (parallel, mut report) = made?;
    for skipped in &outcome.skipped {
        report.add_unreadable(&skipped.source, &skipped.language, 1, skipped.bytes);
    }
    let (train, held_out) = (report.total(|r| r.train).documents, report.total(|r| r.held_out).documents);
    progress.finish(&format!("{train} documents to train on, {held_out} held out"));
    Ok((parallel, report))
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
    let directory = std::env::temp_dir();
    let mut cleaned = Cleaned::new(&directory)?;
    documents.into_iter().try_for_each(|document| cleaned.push(document))?;
    Prepared::collect(|train, held_out| cleaned.prepare(parallel, protected, recipe, progress, train, held_out))
}

/// Documents that were read, normalised, and are each the first of its text; on the disk.
struct Cleaned<'a> {
    directory: &'a Path,
    read: u64,
    waiting: Vec<Document>,
    bytes: usize,
    /// The first half of each text's SHA-256: enough to tell any number of texts apart.
    seen: HashSet<u128>,
    spool: SpoolWriter,
    report: CorpusReport,
}

impl<'a> Cleaned<'a> {
    fn new(directory: &'a Path) -> Result<Self, CorpusError> {
        let (spool, report) = (SpoolWriter::create(directory)?, CorpusReport::default());
        Ok(Cleaned { directory, read: 0, waiting: Vec::new(), bytes: 0, seen: HashSet::new(), spool, report })
    }

    fn push(&mut self, document: Document) -> Result<(), CorpusError> {
        self.read += 1;
        self.bytes += document.text.len();
        self.waiting.push(document);
        if self.waiting.len() < CHUNK && self.bytes < CHUNK_BYTES {
            return Ok(());
        }
        self.clean()
    }

    /// Normalises what waits, and keeps what was not seen before.
    fn clean(&mut self) -> Result<(), CorpusError> {
        self.bytes = 0;
        let documents = std::mem::take(&mut self.waiting);
        let normalised = documents.par_iter().map(|document| {
            let (text, changes) = normalise_counted(&document.text);
            let hash = hash_bytes(text.as_bytes()).0;
            (u128::from_be_bytes(std::array::from_fn(|i| hash[i])), text, changes)
        });
        let normalised: Vec<_> = normalised.collect();
        for (document, (hash, text, changes)) in documents.into_iter().zip(normalised) {
            self.report.count(&document, |row| &mut row.read);
            self.report.normalised.add(&changes);
            if text.is_empty() {
                self.report.count(&document, |row| &mut row.skipped);
                continue;
            }
            let document = Document { text, ..document };
            if self.seen.insert(hash) {
                self.spool.push(&document)?;
            } else {
                self.report.count(&document, |row| &mut row.exact_duplicates);
            }
        }
        Ok(())
    }

    fn prepare(
        mut self,
        mut parallel: Vec<ParallelSet>,
        protected: &[String],
        recipe: &CorpusRecipe,
        progress: &mut Progress,
        train: &mut Sink,
        held_out: &mut Sink,
    ) -> Result<(Vec<ParallelSet>, CorpusReport), CorpusError> {
        self.clean()?;
        let Cleaned { directory, read, seen, spool, mut report, .. } = self;
        drop(seen);
        let spool = spool.finish()?;
        normalise_parallel(&mut parallel, &mut report);
        progress.advance(2 * read, "normalised, exact duplicates dropped");
        let originals = duplicate::near_in(&spool, recipe.near_duplicate, directory)?;
        progress.advance(read, "near duplicates dropped");
        let mut guarded = Protected::empty(recipe.contamination_window);
        let pairs = parallel.iter().flat_map(|set| &set.pairs).flat_map(|pair| [pair.bn.as_str(), &pair.en]);
        pairs.for_each(|text| guarded.add(text));
        protected.iter().for_each(|text| guarded.add(&normalise(text)));
        let fates = split(&spool, &originals, recipe.held_out, &mut guarded, &mut report, held_out)?;
        drop(originals);
        guarded.seal();
        keep_out(&spool, &fates, &guarded, &mut report, train)?;
        progress.advance(read, "held-out text kept out");
        if report.total(|row| row.train).documents == 0 {
            let advice = if read == 0 {
                "check the manifest's sources"
            } else {
                "the report says what was dropped; make `corpus.held_out` smaller or add sources"
            };
            return Err(CorpusError::Empty { read, kept: 0, advice });
        }
        Ok((parallel, report))
    }
}

fn normalise_parallel(parallel: &mut [ParallelSet], report: &mut CorpusReport) {
    for pair in parallel.iter_mut().flat_map(|set| &mut set.pairs) {
        pair.bn = normalise(&pair.bn);
        pair.en = normalise(&pair.en);
        report.parallel_pairs += 1;
    }
}

/// What becomes of a document after the near duplicates are known.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Dropped,
    HeldOut,
    Train,
}

/// Gives the held-out documents to `sink` and protects them; the fate of all.
fn split(
    spool: &Spool,
    originals: &[Option<u32>],
    share: f64,
    protected: &mut Protected,
    report: &mut CorpusReport,
    sink: &mut Sink,
) -> Result<Vec<Fate>, CorpusError> {
    let mut fates = Vec::with_capacity(originals.len());
    for (document, original) in spool.documents()?.zip(originals) {
        let document = document?;
        let fate = match original {
            Some(_) => Fate::Dropped,
            None if is_held_out(&document.text, share) => Fate::HeldOut,
            None => Fate::Train,
        };
        fates.push(fate);
        match fate {
            Fate::Dropped => report.count(&document, |row| &mut row.near_duplicates),
            Fate::HeldOut => {
                report.count(&document, |row| &mut row.held_out);
                protected.add(&document.text);
                sink(document)?;
            }
            Fate::Train => {}
        }
    }
    Ok(fates)
}

/// Gives the training documents that share nothing with protected text to `sink`.
fn keep_out(
    spool: &Spool,
    fates: &[Fate],
    protected: &Protected,
    report: &mut CorpusReport,
    sink: &mut Sink,
) -> Result<(), CorpusError> {
    let mut found = protected.report();
    let to_train =
        spool.documents()?.zip(fates).filter(|(_, fate)| **fate == Fate::Train).map(|(document, _)| document);
    for chunk in chunks(to_train) {
        let chunk = chunk?;
        let dropped = protected.scan_into(&chunk, &mut found);
        for (document, dropped) in chunk.into_iter().zip(dropped) {
            if dropped {
                report.count(&document, |row| &mut row.contaminated);
            } else {
                report.count(&document, |row| &mut row.train);
                sink(document)?;
            }
        }
    }
    report.contamination = found;
    Ok(())
}

pub(super) fn texts(documents: &[Document]) -> Vec<&str> {
    documents.iter().map(|d| d.text.as_str()).collect()
}
