//! A user's tokenizer, of whatever kind, as one that can be measured.

use super::Kind;
use super::sentencepiece::UNREACHABLE;
use crate::tokenizer::alphabet::byte_of;
use crate::tokenizer::encoder::cumulative;
use crate::tokenizer::{END_OF_TEXT, Encoded, Encoder, TokenizerError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokenizers::{Encoding, ModelWrapper, Tokenizer};

/// Ids are rows of a table: no vocabulary is near this large.
pub(super) const LARGEST: usize = 1 << 23;

/// A user's tokenizer.
#[derive(Debug)]
pub struct AnyTokenizer {
    inner: Tokenizer,
    kind: Kind,
    /// What each id stands for.
    bytes: Vec<Option<Vec<u8>>>,
    /// The same tokenizer in the layout that is trained here, which encodes faster.
    own: Option<Box<crate::tokenizer::Tokenizer>>,
}

impl AnyTokenizer {
    pub(super) fn new(inner: Tokenizer, kind: Kind) -> Result<Self, String> {
        let spelling = Spelling::of(&inner);
        let special = inner.get_added_tokens_decoder();
        let rows = inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        if rows > LARGEST {
            return Err(format!("its largest id is {}, expected less than {LARGEST}", rows - 1));
        }
        let mut bytes = vec![None; rows];
        for (token, id) in inner.get_vocab(true) {
            bytes[id as usize] = match special.get(&id) {
                Some(added) if added.special => None,
                Some(_) => Some(token.replace('▁', " ").into_bytes()),
                None => spelling.bytes(&token),
            };
        }
        Ok(AnyTokenizer { inner, kind, bytes, own: None })
    }

    /// Encodes with `own`, which was read from the same file.
    pub(super) fn with_own(self, own: crate::tokenizer::Tokenizer) -> Self {
        AnyTokenizer { own: Some(Box::new(own)), ..self }
    }

    /// What `own` makes of a text: nothing where it could differ, by a special token in the text or by text
    /// that is not in NFC.
    fn encode_own(&self, text: &str) -> Option<Encoded> {
        let own = self.own.as_ref().filter(|_| !text.contains(END_OF_TEXT))?;
        let ids = own.encode(text).ok()?;
        let mut ends = Vec::with_capacity(ids.len());
        let mut end = 0;
        for id in &ids {
            let token = self.bytes.get(*id as usize)?.as_deref()?;
            if !text.as_bytes()[end..].starts_with(token) {
                return None;
            }
            end += token.len();
            ends.push(end);
        }
        Some(Encoded { ids, ends }).filter(|_| end == text.len())
    }

    /// A tokenizer made here, from its `tokenizer.json`.
    pub(in crate::tokenizer) fn from_json(json: &[u8]) -> Result<Self, String> {
        Self::new(super::hugging_face::read(json)?, Kind::TokenizerJson)
    }

    /// The kind of file it came from.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The kind of its model: `BPE`, `Unigram`, `WordPiece` or `WordLevel`.
    pub fn model(&self) -> &'static str {
        match self.inner.get_model() {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::Unigram(_) => "Unigram",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
        }
    }

    /// Ends of the tokens: exact where their bytes laid end to end are the text (after one space that
    /// many tokenizers put in front), else from the places the library gives.
    fn ends(&self, encoding: &Encoding, text: &str) -> Vec<usize> {
        let tokens: Option<Vec<&[u8]>> =
            encoding.get_ids().iter().map(|id| self.bytes.get(*id as usize)?.as_deref()).collect();
        if let Some(tokens) = tokens {
            let joined = tokens.concat();
            let added = usize::from(joined.len() == text.len() + 1 && joined[0] == b' ');
            if joined[added..] == *text.as_bytes() {
                let ends = cumulative(tokens.iter().map(|token| token.len()), joined.len());
                return ends.into_iter().map(|end| end.saturating_sub(added)).collect();
            }
        }
        self.ends_by_place(encoding, text.len())
    }

    fn is_space(&self, ids: &[u32]) -> bool {
        ids.first().and_then(|id| self.bytes.get(*id as usize)?.as_deref()) == Some(b" ")
    }

    /// Bytes of one character share its place: the k-th of them ends k bytes in.
    fn ends_by_place(&self, encoding: &Encoding, limit: usize) -> Vec<usize> {
        let (ids, mut places) = (encoding.get_ids(), encoding.get_offsets().to_vec());
        // A space that was put in front has no place of its own: the library gives it the first letter's.
        if let ([(_, end), (0, _), ..], true) = (&mut places[..], self.is_space(ids)) {
            *end = 0;
        }
        let length = |id: &u32| self.bytes.get(*id as usize).and_then(Option::as_ref).map_or(0, Vec::len);
        let mut ends: Vec<usize> = Vec::with_capacity(ids.len());
        let mut at = 0;
        while at < ids.len() {
            let place = places[at];
            let run = places[at..].iter().take_while(|other| **other == place).count();
            let lengths = ids[at..at + run].iter().map(length);
            let exact = run > 1 && lengths.clone().sum::<usize>() == place.1.saturating_sub(place.0);
            let mut end = if exact { place.0 } else { place.1 };
            for length in lengths {
                end += if exact { length } else { 0 };
                ends.push(end.min(limit).max(ends.last().copied().unwrap_or(0)));
            }
            at += run;
        }
        ends
    }
}

impl Encoder for AnyTokenizer {
    fn vocabulary_size(&self) -> usize {
        self.bytes.len()
    }

    fn encode_text(&self, text: &str) -> Result<Encoded, TokenizerError> {
        if let Some(encoded) = self.encode_own(text) {
            return Ok(encoded);
        }
        let encode = || self.inner.encode(text, false);
        let encoding = guarded("encode", encode)?;
        Ok(Encoded { ends: self.ends(&encoding, text), ids: encoding.get_ids().to_vec() })
    }

    fn decode_ids(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        guarded("decode", || self.inner.decode(ids, false))
    }

    fn bytes_of(&self, id: u32) -> Option<Vec<u8>> {
        self.bytes.get(id as usize).cloned().flatten()
    }
}

/// Runs the library on data from a file it may not have foreseen: a panic becomes an error.
fn guarded<T>(action: &'static str, run: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, TokenizerError> {
    let failed = |message: String| TokenizerError::Use { action, message };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|e| failed(e.to_string())),
        Err(_) => Err(failed("the file is damaged: its tables point outside themselves".to_owned())),
    }
}

/// How a vocabulary spells the bytes of a token.
struct Spelling {
    byte_level: bool,
    prefix: String,
    suffix: String,
}

impl Spelling {
    fn of(inner: &Tokenizer) -> Self {
        let has = |part: Result<String, serde_json::Error>| part.is_ok_and(|json| json.contains("\"ByteLevel\""));
        let byte_level = has(serde_json::to_string(&inner.get_pre_tokenizer()))
            || has(serde_json::to_string(&inner.get_normalizer()));
        let (prefix, suffix) = match inner.get_model() {
            ModelWrapper::WordPiece(model) => (Some(model.continuing_subword_prefix.clone()), None),
            ModelWrapper::BPE(model) => (model.continuing_subword_prefix.clone(), model.end_of_word_suffix.clone()),
            _ => (None, None),
        };
        Spelling { byte_level, prefix: prefix.unwrap_or_default(), suffix: suffix.unwrap_or_default() }
    }

    fn bytes(&self, token: &str) -> Option<Vec<u8>> {
        if token.starts_with(UNREACHABLE) {
            return None;
        }
        if self.byte_level {
            let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
            return bytes.or_else(|| Some(token.as_bytes().to_vec()));
        }
        let hex = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
        if let Some(byte) = hex.filter(|hex| hex.len() == 2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            return Some(vec![byte]);
        }
        let token = token.strip_prefix(self.prefix.as_str()).unwrap_or(token);
        let token = token.strip_suffix(self.suffix.as_str()).unwrap_or(token);
        Some(token.replace('▁', " ").into_bytes())
    }
}
