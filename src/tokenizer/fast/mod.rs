//! Encoding without the `tokenizers` crate, with the same ids.
//!
//! Four things take the time there: composing text that is composed already, a backtracking regular
//! expression, a string for every piece, and merging the same word again. Here Bangla is seen to be
//! composed in one pass, the patterns of GPT-2 and `marks` are read by hand, a piece is bytes until
//! it is ids, and the ids of a word are kept for the next time. Only the layout that this program
//! trains is read; for any other the crate does the work.

mod cache;
mod class;
mod compose;
mod merge;
mod splitter;

use super::alphabet::byte_of;
use cache::Cache;
use merge::{Merges, Room};
use serde_json::Value;
use splitter::Splitter;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

pub(super) use merge::Quick;

/// An encoder of plain text.
#[derive(Debug)]
pub(super) struct Fast {
    compose: bool,
    splitter: Splitter,
    ids: Box<[u32; 256]>,
    merges: Merges,
    desks: Mutex<Vec<Desk>>,
}

/// What one thread at a time works with.
#[derive(Debug, Default)]
struct Desk {
    cache: Cache,
    room: Room,
    ids: Vec<u32>,
}

impl Fast {
    /// The encoder of a `tokenizer.json`; `None` when it says anything that this one does not do.
    pub(super) fn of(json: &Value, end_of_text: &str) -> Option<Self> {
        let compose = match &json["normalizer"] {
            Value::Null => false,
            normalizer if normalizer["type"] == "NFC" => true,
            _ => return None,
        };
        let plain = ["post_processor", "truncation", "padding"].iter().all(|part| json[*part].is_null());
        let [added] = &json["added_tokens"].as_array()?[..] else { return None };
        let flags = ["single_word", "lstrip", "rstrip", "normalized"].iter().any(|flag| added[*flag] == true);
        if !plain || flags || added["content"] != end_of_text {
            return None;
        }
        let model = &json["model"];
        let own = ["dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"];
        let simple = own.iter().all(|part| model[*part].is_null()) && model["ignore_merges"] != true;
        if model["type"] != "BPE" || !simple {
            return None;
        }
        let splitter = Splitter::new(pattern(&json["pre_tokenizer"])?)?;
        let (ids, merges) = tables(model)?;
        Some(Fast { compose, splitter, ids, merges, desks: Mutex::default() })
    }

    /// Adds the ids of `text` to `out`. The message of the pattern when it gives up.
    pub(super) fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<(), String> {
        let text = if self.compose { compose::compose(text) } else { Cow::Borrowed(text) };
        let lock = || self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut desk = lock().pop().unwrap_or_default();
        let result = self.splitter.split(&text, &mut |piece| self.encode_piece(piece.as_bytes(), &mut desk, out));
        lock().push(desk);
        result
    }

    fn encode_piece(&self, piece: &[u8], desk: &mut Desk, out: &mut Vec<u32>) {
        if let Some(ids) = desk.cache.get(piece) {
            out.extend_from_slice(ids);
            return;
        }
        desk.ids.clear();
        desk.ids.extend(piece.iter().map(|byte| self.ids[usize::from(*byte)]));
        self.merges.apply(&mut desk.ids, &mut desk.room);
        out.extend_from_slice(&desk.ids);
        desk.cache.put(piece, &desk.ids);
    }
}

/// The pattern of a pre-tokenizer as this program writes it: a split, then the byte-level alphabet.
fn pattern(pre_tokenizer: &Value) -> Option<&str> {
    let [split, bytes] = &pre_tokenizer["pretokenizers"].as_array()?[..] else { return None };
    let own = pre_tokenizer["type"] == "Sequence"
        && split["type"] == "Split"
        && split["behavior"] == "Isolated"
        && split["invert"] == false
        && bytes["type"] == "ByteLevel"
        && bytes["add_prefix_space"] == false
        && bytes["use_regex"] == false;
    split["pattern"]["Regex"].as_str().filter(|_| own)
}

/// The id of each byte, and the merges.
fn tables(model: &Value) -> Option<(Box<[u32; 256]>, Merges)> {
    let vocabulary = model["vocab"].as_object()?;
    let id = |token: &str| u32::try_from(vocabulary.get(token)?.as_u64()?).ok();
    let mut bytes: HashMap<u8, u32, Quick> = HashMap::default();
    for token in vocabulary.keys() {
        let mut letters = token.chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && let Some(byte) = byte_of(letter)
        {
            bytes.insert(byte, id(token)?);
        }
    }
    let mut ids = Box::new([0; 256]);
    for byte in 0..=255u8 {
        ids[usize::from(byte)] = *bytes.get(&byte)?;
    }
    let merge = |pair: &Value| {
        let (left, right) = match pair {
            Value::String(text) => text.split_once(' ')?,
            pair => (pair[0].as_str()?, pair[1].as_str()?),
        };
        Some((id(left)?, id(right)?, id(&format!("{left}{right}"))?))
    };
    let merges = model["merges"].as_array()?.iter().map(merge).collect::<Option<Vec<_>>>()?;
    Some((ids, Merges::new(merges.into_iter())))
}
