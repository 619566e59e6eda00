//! From Parquet files to chunks of tokens, on all cores, from wherever an earlier program stopped.

use super::chunk::Tokens;
use super::{Chunk, Position, Rows, Slice};
use crate::artifact::{Hash, hash_bytes};
use crate::corpus::CorpusError;
use crate::corpus::contamination::Protected;
use crate::corpus::normalise::normalise;
use crate::corpus::shard::Shard;
use crate::corpus::source::{File, Source, SourceError, Store};
use crate::corpus::split::is_held_out;
use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Changes when the same text gives other tokens.
const RULES: u32 = 1;

/// Bytes of text in a slice: a second of encoding on a few cores, some 3 M tokens.
pub const SLICE: usize = 32 << 20;

/// Which documents are trained on.
#[derive(Debug, Clone)]
pub struct Cleaning {
    /// Share of the documents held out.
    pub held_out: f64,
    /// Windows that no training document may have.
    pub protected: Arc<Protected>,
    /// Hash of the protected text.
    pub protected_hash: Hash,
}

/// What is streamed for one language, and where it goes.
#[derive(Debug, Clone)]
pub struct Order {
    /// Language code.
    pub language: String,
    /// The files in order, each with its source.
    pub files: Vec<(Source, File)>,
    /// Where they come from.
    pub store: Store,
    /// The folder of the chunks.
    pub directory: PathBuf,
    /// Bytes of text in a chunk, as they stand in the file; the last row goes over.
    pub slice: usize,
    /// Which documents are trained on.
    pub cleaning: Cleaning,
    /// Hash of the tokenizer.
    pub tokenizer: Hash,
    /// Tokens in its vocabulary.
    pub vocabulary: usize,
    /// The token that ends a document.
    pub end_of_text: u32,
}

impl Order {
    /// Hash of everything that decides the tokens.
    pub fn made_from(&self) -> Hash {
        let files: Vec<_> = self.files.iter().map(|(s, f)| (&s.id, s.weight, &f.path, f.sha256)).collect();
        let cleaning = (self.cleaning.held_out, self.cleaning.protected_hash);
        let all = (RULES, &self.language, files, self.slice, cleaning, self.tokenizer, self.end_of_text);
        hash_bytes(&serde_json::to_vec(&all).unwrap_or_else(|e| unreachable!("plain data: {e}")))
    }
}

/// Token ids of a text.
pub type Encode = dyn Fn(&str) -> Result<Vec<u32>, String> + Send + Sync;

/// Sums over chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progressed {
    /// Chunks.
    pub chunks: usize,
    /// Training documents.
    pub documents: u64,
    /// Training tokens.
    pub tokens: u64,
    /// UTF-8 bytes of the training documents.
    pub bytes: u64,
    /// Characters of the training documents.
    pub characters: u64,
    /// Held-out documents.
    pub held_out: u64,
    /// Documents that share text with an evaluation.
    pub contaminated: u64,
}

impl Progressed {
    /// Adds a chunk.
    pub fn add(&mut self, chunk: &Chunk) {
        self.chunks += 1;
        self.documents += chunk.documents;
        self.tokens += chunk.tokens;
        self.bytes += chunk.bytes;
        self.characters += chunk.characters;
        self.held_out += chunk.held_out_documents;
        self.contaminated += chunk.contaminated;
    }
}

/// Makes the chunks of one language, one after the other.
pub struct Feed {
    order: Arc<Order>,
    encode: Arc<Encode>,
    reading: Reading,
    made_from: Hash,
    number: usize,
    /// The slice that was read while the one before it was encoded, or why it could not be.
    pending: Option<Result<Slice, CorpusError>>,
    is_done: bool,
}

impl Feed {
    /// Takes up the work where whole chunks of the same text end, and gives those chunks.
    ///
    /// # Errors
    /// [`CorpusError`] when the folder cannot be read.
    pub fn open(order: Order, encode: Arc<Encode>) -> Result<(Self, Vec<(Chunk, Shard)>), CorpusError> {
        let (made_from, mut found, mut at, mut is_done) = (order.made_from(), Vec::new(), Position::default(), false);
        while !is_done
            && let Some((chunk, shard)) = Chunk::read(&order.directory, found.len(), order.tokenizer)?
            && (chunk.made_from, chunk.from) == (made_from, at)
        {
            (at, is_done) = (chunk.to, chunk.is_last);
            found.push((chunk, shard));
        }
        let order = Arc::new(order);
        let reading = Reading { order: order.clone(), at, rows: None, ahead: None };
        let number = found.len();
        Ok((Feed { order, encode, reading, made_from, number, pending: None, is_done }, found))
    }

    /// What is streamed.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// The next chunk; `None` when the text is at its end. While one slice is encoded the next is read.
    ///
    /// # Errors
    /// [`CorpusError`] when a file cannot be had or read, or a chunk cannot be written; the chunks before it stay.
    pub fn advance(&mut self) -> Result<Option<(Chunk, Shard)>, CorpusError> {
        if self.is_done {
            return Ok(None);
        }
        let slice = match self.pending.take() {
            Some(slice) => slice?,
            None => self.reading.slice(self.reading.at)?,
        };
        let (from, to) = (self.reading.at, slice.end);
        let is_last = to.file >= self.order.files.len() as u64;
        let Feed { order, encode, reading, .. } = self;
        let (made, next) = rayon::join(
            || encoded(order, encode.as_ref(), from.file, &slice),
            || if is_last { None } else { Some(reading.slice(to)) },
        );
        let (tokens, counted) = made?;
        let chunk = Chunk { from, to, is_last, made_from: self.made_from, ..counted };
        let vocabulary = (self.order.tokenizer, self.order.vocabulary);
        let chunk = chunk.write(&self.order.directory, self.number, tokens, vocabulary)?;
        let shard = Shard::open(&Chunk::train_path(&self.order.directory, self.number), self.order.tokenizer)?;
        self.number += 1;
        self.is_done = is_last;
        self.reading.at = to;
        self.pending = next;
        Ok(Some((chunk, shard)))
    }
}

/// Cleans and encodes a slice; documents keep their order.
fn encoded(order: &Order, encode: &Encode, file: u64, slice: &Slice) -> Result<(Tokens, Chunk), CorpusError> {
    enum Fate {
        Empty,
        Contaminated,
        HeldOut(Vec<u32>),
        Train(Vec<u32>, u64, u64),
    }
    let weight = order.files.get(file as usize).map_or(1.0, |(source, _)| source.weight);
    let fate = |text: &Option<String>| -> Result<Fate, CorpusError> {
        let Some(text) = text.as_deref().map(normalise).filter(|text| !text.is_empty()) else { return Ok(Fate::Empty) };
        // The same hash decides both: a share of the documents, and a share of those held out.
        if weight < 1.0 && !is_held_out(&text, weight) {
            return Ok(Fate::Empty);
        }
        let encode = || {
            let mut ids = encode(&text).map_err(CorpusError::Encode)?;
            ids.push(order.end_of_text);
            Ok::<_, CorpusError>(ids)
        };
        if is_held_out(&text, order.cleaning.held_out * weight) {
            return Ok(Fate::HeldOut(encode()?));
        }
        if order.cleaning.protected.may_be_in(&text) && order.cleaning.protected.find(&text).is_some() {
            return Ok(Fate::Contaminated);
        }
        Ok(Fate::Train(encode()?, text.len() as u64, text.chars().count() as u64))
    };
    let fates: Vec<Fate> = slice.texts.par_iter().map(fate).collect::<Result<_, _>>()?;
    let (mut tokens, mut counted) = (Tokens::default(), Chunk::default());
    for fate in fates {
        match fate {
            Fate::Empty => counted.empty += 1,
            Fate::Contaminated => counted.contaminated += 1,
            Fate::HeldOut(ids) => tokens.held_out.push(ids),
            Fate::Train(ids, bytes, characters) => {
                tokens.train.push(ids);
                counted.bytes += bytes;
                counted.characters += characters;
            }
        }
    }
    Ok((tokens, counted))
}

/// The open file, and the next one on its way.
struct Reading {
    order: Arc<Order>,
    /// Where the next chunk begins.
    at: Position,
    rows: Option<(u64, Rows)>,
    ahead: Option<(u64, JoinHandle<Result<PathBuf, SourceError>>)>,
}

impl Reading {
    /// The slice at `at`; its end is the first row of the next file when a file ends.
    fn slice(&mut self, at: Position) -> Result<Slice, CorpusError> {
        if self.rows.as_ref().is_none_or(|(_, rows)| rows.at() != at) {
            let path = self.fetched(at.file)?;
            self.rows = Some((at.file, Rows::open(&path, at)?));
            self.ahead = self.fetch(at.file + 1).map(|handle| (at.file + 1, handle));
        }
        let Some((_, rows)) = &mut self.rows else {
            return Ok(Slice { texts: Vec::new(), end: at, is_last: true });
        };
        let slice = rows.slice(self.order.slice)?;
        let end = if slice.is_last { Position { file: at.file + 1, ..Position::default() } } else { slice.end };
        Ok(Slice { end, ..slice })
    }

    /// Starts to bring a file in a thread of its own: it waits for the network, not for the processor.
    fn fetch(&self, file: u64) -> Option<JoinHandle<Result<PathBuf, SourceError>>> {
        let (source, file) = self.order.files.get(file as usize)?.clone();
        let store = self.order.store.clone();
        Some(std::thread::spawn(move || store.path(&source, &file)))
    }

    fn fetched(&mut self, file: u64) -> Result<PathBuf, CorpusError> {
        let running = self.ahead.take().filter(|(ahead, _)| *ahead == file).map(|(_, handle)| handle);
        let is_ahead = running.is_some();
        let stopped =
            |message: &str| CorpusError::Stream { language: self.order.language.clone(), message: message.to_owned() };
        let handle = running.or_else(|| self.fetch(file)).ok_or_else(|| stopped("there are no files"))?;
        match handle.join().map_err(|_| stopped("the download broke off"))? {
            Ok(path) => Ok(path),
            // It may be long ago that it failed ahead of need.
            Err(_) if is_ahead => {
                let (source, file) = &self.order.files[file as usize];
                Ok(self.order.store.path(source, file)?)
            }
            Err(error) => Err(error.into()),
        }
    }
}
