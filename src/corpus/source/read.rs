//! From a manifest to documents and parallel sentences.

use super::reader::{Piece, pieces};
use super::{File, Manifest, Reader, Role, Source, SourceError, Store};
use crate::artifact::hash_bytes;
use crate::corpus::{Document, ParallelSet};
use crate::error::FileError;
use crate::progress::Progress;
use std::path::Path;

/// What reading a manifest gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// The text of the training sources, in the order of the manifest.
    pub documents: Vec<Document>,
    /// The parallel sources.
    pub parallel: Vec<ParallelSet>,
    /// The same text in many scripts: language code and text.
    pub scripts: Vec<(String, String)>,
    /// Evaluation text, which training text must not share.
    pub protected: Vec<String>,
    /// What could not be used.
    pub skipped: Vec<Skipped>,
    /// Ids of the sources whose licence risk is above the manifest's limit.
    pub not_allowed: Vec<String>,
}

/// Text that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Id of the source.
    pub source: String,
    /// Its language.
    pub language: String,
    /// File and place in it.
    pub place: String,
    /// Why.
    pub reason: String,
    /// Its size.
    pub bytes: u64,
}

/// Reads every source that the manifest's licence limit lets through, and the evaluation sources of the
/// manifest it protects.
/// `progress` advances by one for each file.
///
/// A text that is not UTF-8 is skipped and listed; everything else that is wrong is an error.
///
/// # Errors
/// [`SourceError`] when a file is missing, is another one, or does not have the format of its reader.
pub fn read(manifest: &Manifest, store: &Store, progress: &mut Progress) -> Result<ReadOutcome, SourceError> {
    let mut documents = Vec::new();
    let outcome = read_each(manifest, store, progress, &mut |document| {
        documents.push(document);
        Ok::<(), SourceError>(())
    })?;
    Ok(ReadOutcome { documents, ..outcome })
}

/// As [`read`], but gives each document to `sink` as it is read and keeps none.
///
/// # Errors
/// As [`read`], and those of `sink`.
pub fn read_each<E: From<SourceError>>(
    manifest: &Manifest,
    store: &Store,
    progress: &mut Progress,
    sink: &mut dyn FnMut(Document) -> Result<(), E>,
) -> Result<ReadOutcome, E> {
    let mut outcome = ReadOutcome::default();
    for source in &manifest.sources {
        if !manifest.allows(source) {
            outcome.not_allowed.push(source.id.clone());
            continue;
        }
        match source.role {
            Role::Train => read_training(source, store, progress, &mut outcome, sink)?,
            Role::Parallel if source.reader == Reader::DeclarationScripts => {
                read_scripts(source, store, progress, &mut outcome)?;
            }
            Role::Parallel => read_parallel(source, store, progress, &mut outcome)?,
            Role::Eval => read_protected(source, store, progress, &mut outcome)?,
        }
    }
    if let Some(name) = &manifest.protect {
        for source in Manifest::load(name)?.allowed(Role::Eval) {
            read_protected(source, store, progress, &mut outcome)?;
        }
    }
    Ok(outcome)
}

/// The evaluation text that a manifest keeps out of training: its own and that of the manifest it protects.
///
/// # Errors
/// [`SourceError`] when a file is missing, is another one, or does not have the format of its reader.
pub fn protected(manifest: &Manifest, store: &Store) -> Result<Vec<String>, SourceError> {
    let named = manifest.protect.as_deref().map(Manifest::load).transpose()?;
    let mut outcome = ReadOutcome::default();
    let mut progress = Progress::hidden(1);
    for source in [Some(manifest), named.as_ref()].into_iter().flatten().flat_map(|m| m.allowed(Role::Eval)) {
        read_protected(source, store, &mut progress, &mut outcome)?;
    }
    Ok(outcome.protected)
}

/// Files that [`read`] will read.
///
/// # Errors
/// [`SourceError`] when the manifest to protect cannot be loaded.
pub fn files_to_read(manifest: &Manifest) -> Result<u64, SourceError> {
    let own = manifest.sources.iter().filter(|s| manifest.allows(s)).map(|s| s.files.len()).sum::<usize>();
    let protected = match &manifest.protect {
        Some(name) => Manifest::load(name)?.allowed(Role::Eval).map(|s| s.files.len()).sum(),
        None => 0,
    };
    Ok((own + protected) as u64)
}

fn read_training<E: From<SourceError>>(
    source: &Source,
    store: &Store,
    progress: &mut Progress,
    outcome: &mut ReadOutcome,
    sink: &mut dyn FnMut(Document) -> Result<(), E>,
) -> Result<(), E> {
    for file in &source.files {
        let mut count = 0;
        let mut give = |text: String| {
            count += 1;
            let id = format!("{}/{}#{count}", source.id, file.path);
            if !is_sampled(&id, source.weight) {
                return Ok(());
            }
            let (source, language, domain) = (source.id.clone(), source.language.clone(), source.domain.clone());
            sink(Document { id, source, language, domain, text })
        };
        let skipped = if source.reader == Reader::Lines {
            read_lines(store, source, file, &mut give)?
        } else {
            let bytes = store.bytes(source, file)?;
            let read = source.reader.texts(&bytes).map_err(|message| wrong_format(source, file, message))?;
            read.texts.into_iter().try_for_each(&mut give)?;
            read.skipped
        };
        outcome.skip(source, &file.path, skipped);
        progress.advance(1, &source.id);
    }
    Ok(())
}

/// Reads a file that may be larger than the memory; gives what could not be used.
fn read_lines<E: From<SourceError>>(
    store: &Store,
    source: &Source,
    file: &File,
    give: &mut dyn FnMut(String) -> Result<(), E>,
) -> Result<Vec<(String, String, u64)>, E> {
    let mut skipped = Vec::new();
    for piece in pieces(store.open(source, file)?) {
        let failed = |e| SourceError::from(FileError::at("read", Path::new(&file.path))(e));
        match piece.map_err(failed)? {
            Piece::Text(text) => give(text)?,
            Piece::Skipped(place, reason, bytes) => skipped.push((place, reason, bytes)),
        }
    }
    Ok(skipped)
}

fn read_parallel(
    source: &Source,
    store: &Store,
    progress: &mut Progress,
    outcome: &mut ReadOutcome,
) -> Result<(), SourceError> {
    let mut files = Vec::with_capacity(source.files.len());
    for file in &source.files {
        files.push((file, store.bytes(source, file)?));
        progress.advance(1, &source.id);
    }
    // The first file stands for the source: a pair is of all of them.
    let first = &source.files[0];
    let read = source.reader.pairs(&files).map_err(|message| wrong_format(source, first, message))?;
    outcome.parallel.push(ParallelSet { id: source.id.clone(), pairs: read.pairs });
    outcome.skip(source, &first.path, read.skipped);
    Ok(())
}

fn read_protected(
    source: &Source,
    store: &Store,
    progress: &mut Progress,
    outcome: &mut ReadOutcome,
) -> Result<(), SourceError> {
    for file in &source.files {
        let bytes = store.bytes(source, file)?;
        let texts = Reader::task_texts(&file.path, &bytes).map_err(|message| wrong_format(source, file, message))?;
        outcome.protected.extend(texts);
        progress.advance(1, &source.id);
    }
    Ok(())
}

fn read_scripts(
    source: &Source,
    store: &Store,
    progress: &mut Progress,
    outcome: &mut ReadOutcome,
) -> Result<(), SourceError> {
    for file in &source.files {
        let bytes = store.bytes(source, file)?;
        let text = Reader::declaration(&bytes).map_err(|message| wrong_format(source, file, message))?;
        outcome.scripts.push((file.language.clone().unwrap_or_default(), text));
        progress.advance(1, &source.id);
    }
    Ok(())
}

impl ReadOutcome {
    fn skip(&mut self, source: &Source, path: &str, skipped: Vec<(String, String, u64)>) {
        self.skipped.extend(skipped.into_iter().map(|(place, reason, bytes)| Skipped {
            source: source.id.clone(),
            language: source.language.clone(),
            place: if place.is_empty() { path.to_owned() } else { format!("{path}, {place}") },
            reason,
            bytes,
        }));
    }
}

fn wrong_format(source: &Source, file: &File, message: String) -> SourceError {
    SourceError::Format { id: source.id.clone(), path: file.path.clone(), message }
}

/// Whether a document belongs to the share of its source that is used: a function of its id alone.
fn is_sampled(id: &str, weight: f64) -> bool {
    let hash = hash_bytes(id.as_bytes()).0;
    let position = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    f64::from(position) < weight * 2f64.powi(32)
}
