//! A second stage of merges that may cross the spaces between words (A. Liu et al. 2025, "SuperBPE").
//!
//! The first stage is an ordinary vocabulary. Then words joined by single spaces count as one piece, and
//! more pairs are merged in it. No merge of the first stage crosses a space, so doing all merges in the
//! order of their ranks on the long pieces gives the tokens that the second stage began with.

use crate::tokenizer::fast::Quick;
use crate::tokenizer::pre_tokenizer::{STOP_SUPERWORDS, SUPERWORDS};
use crate::tokenizer::{PreTokenizer, Tokenizer, TokenizerError};
use fancy_regex::Regex;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::path::Path;

/// Words of a token, at most.
const WORDS: usize = 4;

type Pair = (u32, u32);

/// Goes on from `first`, trained with `marks` or `marks-stop`, until there are `vocabulary` tokens or no pair occurs twice.
/// The result depends on the arguments alone.
///
/// # Errors
/// [`TokenizerError::Train`] when `first` is not in the layout that is trained here.
pub fn train_superwords(first: &Tokenizer, texts: &[&str], vocabulary: usize) -> Result<Tokenizer, TokenizerError> {
    let failed = |e: String| TokenizerError::Train(e);
    let mut json: Value = serde_json::from_str(&first.to_json()?).map_err(|e| failed(e.to_string()))?;
    let cut = &mut json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
    let across = if *cut == PreTokenizer::MarksStop.pattern() { STOP_SUPERWORDS } else { SUPERWORDS };
    *cut = json!(across);
    let mut second = Merger::new(pieces(first, across, texts)?, first);
    second.run(vocabulary);
    let spelt: Vec<String> = second.tokens.iter().map(|bytes| crate::tokenizer::alphabet::spell(bytes)).collect();
    let model = &mut json["model"];
    for (id, token) in spelt.iter().enumerate().skip(first.vocabulary_size()) {
        model["vocab"][token.as_str()] = json!(id);
    }
    let merges = model["merges"].as_array_mut().ok_or_else(|| failed("it has no merges".to_owned()))?;
    merges.extend(second.merges.iter().map(|(a, b)| json!([spelt[*a as usize], spelt[*b as usize]])));
    Tokenizer::parse(json.to_string().as_bytes(), Path::new("superword tokenizer"))
}

/// The pieces of more than one word as tokens of the first stage, each once, with how often it occurs.
fn pieces(first: &Tokenizer, across: &str, texts: &[&str]) -> Result<Vec<(Vec<u32>, i64)>, TokenizerError> {
    let failed = |e: fancy_regex::Error| TokenizerError::Train(e.to_string());
    let pattern = Regex::new(across).map_err(failed)?;
    let mut counts: BTreeMap<Vec<u32>, i64> = BTreeMap::new();
    for text in texts {
        for piece in pattern.find_iter(text) {
            let ids = first.encode(piece.map_err(failed)?.as_str())?;
            if ids.len() > 1 {
                *counts.entry(ids).or_default() += 1;
            }
        }
    }
    Ok(counts.into_iter().collect())
}

struct Merger {
    pieces: Vec<(Vec<u32>, i64)>,
    tokens: Vec<Vec<u8>>,
    known: HashMap<Vec<u8>, u32, Quick>,
    merges: Vec<Pair>,
    counts: HashMap<Pair, i64, Quick>,
    /// Pieces that may hold the pair.
    places: HashMap<Pair, Vec<u32>, Quick>,
    heap: BinaryHeap<(i64, Reverse<Pair>)>,
}

impl Merger {
    fn new(pieces: Vec<(Vec<u32>, i64)>, first: &Tokenizer) -> Self {
        let tokens: Vec<Vec<u8>> =
            (0..first.vocabulary_size() as u32).map(|id| first.token_bytes(id).unwrap_or_default()).collect();
        let known = tokens.iter().enumerate().map(|(id, bytes)| (bytes.clone(), id as u32)).collect();
        let mut counts: HashMap<Pair, i64, Quick> = HashMap::default();
        let mut places: HashMap<Pair, Vec<u32>, Quick> = HashMap::default();
        for (at, (ids, count)) in pieces.iter().enumerate() {
            for pair in ids.windows(2).map(|pair| (pair[0], pair[1])) {
                *counts.entry(pair).or_default() += count;
                let places = places.entry(pair).or_default();
                if places.last() != Some(&(at as u32)) {
                    places.push(at as u32);
                }
            }
        }
        let heap = counts.iter().map(|(pair, count)| (*count, Reverse(*pair))).collect();
        Merger { pieces, tokens, known, merges: Vec::new(), counts, places, heap }
    }

    fn run(&mut self, vocabulary: usize) {
        while self.tokens.len() < vocabulary {
            let Some((count, Reverse(pair))) = self.heap.pop() else { return };
            let now = self.counts.get(&pair).copied().unwrap_or(0);
            if count < 2 {
                return;
            }
            if now != count {
                // Counts only fall while a pair waits: rises are pushed when they happen.
                if now > 1 && now < count {
                    self.heap.push((now, Reverse(pair)));
                }
                continue;
            }
            let bytes = [&self.tokens[pair.0 as usize][..], &self.tokens[pair.1 as usize][..]].concat();
            if bytes.iter().skip(1).filter(|byte| **byte == b' ').count() >= WORDS {
                continue;
            }
            let next = self.tokens.len() as u32;
            let id = *self.known.entry(bytes.clone()).or_insert(next);
            if id == next {
                self.tokens.push(bytes);
            }
            self.merges.push(pair);
            self.merge(pair, id);
        }
    }

    /// Replaces the pair everywhere and keeps the counts of its neighbours.
    fn merge(&mut self, pair: Pair, id: u32) {
        let mut risen: BTreeSet<Pair> = BTreeSet::new();
        for at in self.places.remove(&pair).unwrap_or_default() {
            let (ids, count) = &mut self.pieces[at as usize];
            let mut merged = Vec::with_capacity(ids.len());
            let mut i = 0;
            while i < ids.len() {
                if i + 1 < ids.len() && (ids[i], ids[i + 1]) == pair {
                    merged.push(id);
                    i += 2;
                } else {
                    merged.push(ids[i]);
                    i += 1;
                }
            }
            if merged.len() == ids.len() {
                continue;
            }
            for old in ids.windows(2).map(|pair| (pair[0], pair[1])) {
                if let Some(total) = self.counts.get_mut(&old) {
                    *total -= *count;
                }
            }
            for new in merged.windows(2).map(|pair| (pair[0], pair[1])) {
                *self.counts.entry(new).or_default() += *count;
                if new.0 == id || new.1 == id {
                    let places = self.places.entry(new).or_default();
                    if places.last() != Some(&at) {
                        places.push(at);
                    }
                    risen.insert(new);
                }
            }
            *ids = merged;
        }
        self.counts.remove(&pair);
        for new in risen {
            self.heap.push((self.counts[&new], Reverse(new)));
        }
    }
}
