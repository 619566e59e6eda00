//! Batches of text that is still being read.

use super::{Chunk, Feed, Progressed};
use crate::corpus::CorpusError;
use crate::corpus::loader::{Batch, Batches, Interleave};
use crate::corpus::shard::Shard;
use crate::rng::Stream;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Windows that change places with each other: neighbouring documents of a file are often of one site.
const SHUFFLE: u64 = 1024;

/// Tokens of a language that so many windows of the whole mix need: whole blocks of its share.
pub fn tokens_needed(windows: u64, share: f64, context: usize) -> u64 {
    let windows = (windows as f64 * share).ceil() as u64 + 1;
    windows.next_multiple_of(SHUFFLE) * context as u64 + 1
}

/// The training batches of a mix of languages whose text is read while they are asked for.
///
/// The tokens of a language are one sequence, cut into windows from its beginning. Windows are taken in blocks of
/// 1,024, in an order drawn for the block, and a block is begun when all of it is there. A text that ends is read
/// again from its beginning, in other orders.
pub struct Streamed {
    languages: Vec<Language>,
    interleave: Interleave,
    batch: usize,
    context: usize,
    seed: u64,
}

struct Language {
    name: String,
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Each with the number of tokens before it.
    shards: Vec<(u64, Shard)>,
    progressed: Progressed,
    is_last: bool,
    stops: bool,
    /// Nothing more will come.
    has_ended: bool,
    failed: Option<String>,
}

impl State {
    fn add(&mut self, chunk: &Chunk, shard: Shard) {
        self.shards.push((self.progressed.tokens, shard));
        self.progressed.add(chunk);
        self.is_last |= chunk.is_last;
    }

    /// Copies the tokens from `start` on.
    fn copy(&self, start: u64, out: &mut Vec<u32>, count: usize) {
        let mut index = self.shards.partition_point(|(before, _)| *before <= start).saturating_sub(1);
        let mut at = start;
        let end = start + count as u64;
        while at < end && index < self.shards.len() {
            let (before, shard) = &self.shards[index];
            let until = end.min(before + shard.len());
            out.extend((at..until).map(|i| shard.get(i - before)));
            at = at.max(until);
            index += 1;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streamed {
    /// Batches of `batch` windows of `context` tokens, the languages in the shares of `mix`; each feed goes on in
    /// the background until it has as many tokens as its share of `batches` needs.
    ///
    /// # Errors
    /// [`CorpusError::Loader`] when feeds and mix do not name the same languages or a number is 0.
    pub fn new(
        feeds: Vec<(Feed, Vec<(Chunk, Shard)>)>,
        mix: &BTreeMap<String, f64>,
        (batch, context): (usize, usize),
        seed: u64,
        batches: u64,
    ) -> Result<Self, CorpusError> {
        let names: Vec<&str> = feeds.iter().map(|(feed, _)| feed.order().language.as_str()).collect();
        if batch == 0 || context == 0 || mix.is_empty() || !mix.keys().map(String::as_str).eq(names.iter().copied()) {
            let message = format!("batch {batch}, context {context}, text in {}", names.join(", "));
            return Err(CorpusError::Loader { message });
        }
        let total: f64 = mix.values().sum();
        let weights: Vec<f64> = mix.values().copied().collect();
        let mut languages = Vec::new();
        for ((feed, found), weight) in feeds.into_iter().zip(&weights) {
            let needed = tokens_needed(batches * batch as u64, weight / total, context);
            languages.push(Language::start(feed, found, needed));
        }
        Ok(Streamed { languages, interleave: Interleave::new(&weights), batch, context, seed })
    }

    /// Adds window `number` of a language to a batch.
    fn add(&self, language: &Language, number: u64, batch: &mut Batch) -> Result<(), CorpusError> {
        let context = self.context as u64;
        let mut state = language.shared.lock();
        loop {
            let there = state.progressed.tokens.saturating_sub(1) / context;
            let needed = (number / SHUFFLE + 1) * SHUFFLE;
            if there >= needed || (state.is_last && there > 0) {
                let (epoch, number) =
                    if there >= needed && !state.is_last { (0, number) } else { (number / there, number % there) };
                let block = number / SHUFFLE;
                let size = if state.is_last { SHUFFLE.min(there - block * SHUFFLE) } else { SHUFFLE };
                let stream = Stream::new(self.seed, &format!("stream/{}/{epoch}/{block}", language.name));
                let start = (block * SHUFFLE + stream.permute(number % SHUFFLE, size)) * context;
                let mut tokens = Vec::with_capacity(self.context + 1);
                state.copy(start, &mut tokens, self.context + 1);
                batch.inputs.extend_from_slice(&tokens[..self.context]);
                batch.targets.extend_from_slice(&tokens[1..]);
                return Ok(());
            }
            let message = match (&state.failed, state.has_ended) {
                (Some(message), _) => message.clone(),
                (None, true) => format!("{} tokens are there, too few for window {number}", state.progressed.tokens),
                (None, false) => {
                    state = language.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
            };
            return Err(CorpusError::Stream { language: language.name.clone(), message });
        }
    }
}

impl Batches for Streamed {
    fn batch(&self, n: u64) -> Result<Batch, CorpusError> {
        let mut batch = Batch::with_capacity(self.batch, self.context);
        for row in 0..self.batch as u64 {
            let (language, number) = self.interleave.place(n * self.batch as u64 + row);
            self.add(&self.languages[language], number, &mut batch)?;
        }
        Ok(batch)
    }
}

impl Language {
    fn start(mut feed: Feed, found: Vec<(Chunk, Shard)>, needed: u64) -> Self {
        let (name, shared) = (feed.order().language.clone(), Arc::new(Shared::default()));
        found.into_iter().for_each(|(chunk, shard)| shared.lock().add(&chunk, shard));
        let (theirs, told) = (shared.clone(), name.clone());
        let worker = std::thread::spawn(move || {
            // Whoever waits is told, however this thread ends.
            let _told = Told(theirs.clone());
            loop {
                let state = theirs.lock();
                if state.stops || state.is_last || state.progressed.tokens >= needed {
                    break;
                }
                drop(state);
                let made = feed.advance();
                let mut state = theirs.lock();
                match made {
                    Ok(Some((chunk, shard))) => state.add(&chunk, shard),
                    Ok(None) => state.is_last = true,
                    Err(error) => {
                        eprintln!("warning: text {told}: {error}; training goes on with what is here");
                        (state.failed, state.stops) = (Some(error.to_string()), true);
                    }
                }
                theirs.changed.notify_all();
            }
        });
        Language { name, shared, worker: Some(worker) }
    }
}

/// Ends all waiting for the thread that it belongs to.
struct Told(Arc<Shared>);

impl Drop for Told {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if std::thread::panicking() {
            state.failed.get_or_insert_with(|| "reading it broke off".to_owned());
        }
        state.has_ended = true;
        self.0.changed.notify_all();
    }
}

/// How long a program that ends waits for a chunk.
const PATIENCE: Duration = Duration::from_secs(5);

impl Drop for Language {
    /// Lets the chunk at hand be finished: it is a second of work that the next program need not do. A download may
    /// take longer than that, and is left: what came of it is kept.
    fn drop(&mut self) {
        self.shared.lock().stops = true;
        let waits = |state: &mut State| !state.has_ended;
        drop(self.shared.changed.wait_timeout_while(self.shared.lock(), PATIENCE, waits));
        if let Some(worker) = self.worker.take().filter(JoinHandle::is_finished) {
            let _ = worker.join();
        }
    }
}
