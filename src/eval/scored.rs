//! Documents with their tokens, and their loss under each model.

use super::EvalError;
use super::ngram::Ngram;
use crate::corpus::Document;
use crate::model::{Decoder, Parameters, Window};
use crate::ops::IGNORE;
use crate::tokenizer::Tokenizer;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Windows evaluated at a time.
const BATCH: usize = 16;

/// One document's tokens and its loss under each model.
pub(super) struct Scored {
    pub language: String,
    pub domain: String,
    pub characters: f64,
    pub bytes: f64,
    /// End of text, then the tokens of the text.
    pub ids: Vec<u32>,
    pub nats: BTreeMap<&'static str, f64>,
}

impl Scored {
    /// Tokens scored: all but the end of text that the first follows.
    pub fn tokens(&self) -> f64 {
        (self.ids.len() - 1) as f64
    }
}

/// Encodes `documents` in their order as long as `wanted` says so; those without a token are passed over.
pub(super) fn encode<'a>(
    documents: impl Iterator<Item = &'a Document>,
    tokenizer: &Tokenizer,
    mut wanted: impl FnMut(&Document) -> bool,
) -> Result<Vec<Scored>, EvalError> {
    let mut scored = Vec::new();
    for document in documents {
        let tokens = tokenizer.encode(&document.text)?;
        if tokens.is_empty() || !wanted(document) {
            continue;
        }
        let mut ids = vec![tokenizer.end_of_text()];
        ids.extend(tokens);
        scored.push(Scored {
            language: document.language.clone(),
            domain: document.domain.clone(),
            characters: document.text.chars().count() as f64,
            bytes: document.text.len() as f64,
            ids,
            nats: BTreeMap::new(),
        });
    }
    Ok(scored)
}

/// Adds the loss of every document under a decoder, several windows at a time.
pub(super) fn by_decoder(
    decoder: &mut Decoder<f32>,
    name: &'static str,
    parameters: &Parameters<f32>,
    documents: &mut [Scored],
) -> Result<(), EvalError> {
    let context = decoder.config().max_position_embeddings;
    let starts = |(d, document): (usize, &Scored)| {
        (0..document.ids.len() - 1).step_by(context).map(move |start| (d, start)).collect::<Vec<_>>()
    };
    let windows: Vec<(usize, usize)> = documents.iter().enumerate().flat_map(starts).collect();
    for windows in windows.chunks(BATCH) {
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for (d, start) in windows {
            let ids = &documents[*d].ids;
            let end = (start + context).min(ids.len() - 1);
            inputs.extend_from_slice(&ids[*start..end]);
            targets.extend_from_slice(&ids[start + 1..=end]);
            inputs.resize(inputs.len().next_multiple_of(context), 0);
            targets.resize(inputs.len(), IGNORE);
        }
        let losses = decoder.token_losses(parameters, Window { inputs: &inputs, targets: &targets, time: context })?;
        for ((d, _), losses) in windows.iter().zip(losses.chunks(context)) {
            *documents[*d].nats.entry(name).or_default() += losses.iter().sum::<f64>();
        }
    }
    Ok(())
}

/// What the one model is called here.
const NAME: &str = "model";

/// The loss in nats of each of `documents` under a decoder, `None` for one without a token: what models with different
/// tokenizers can be compared by. Every token is scored once, in windows of the decoder's context.
///
/// # Errors
/// [`EvalError`] when tokenizer and decoder do not fit.
pub fn document_nats(
    decoder: &mut Decoder<f32>,
    parameters: &Parameters<f32>,
    tokenizer: &Tokenizer,
    documents: &[&Document],
) -> Result<Vec<Option<f64>>, EvalError> {
    let (own, model) = (tokenizer.vocabulary_size(), decoder.config().vocab_size);
    if own != model {
        return Err(EvalError::Vocabulary { tokenizer: own, model });
    }
    let (mut scored, mut places) = (Vec::new(), Vec::new());
    for (place, document) in documents.iter().enumerate() {
        let found = encode(std::iter::once(*document), tokenizer, |_| true)?;
        places.extend(found.iter().map(|_| place));
        scored.extend(found);
    }
    by_decoder(decoder, NAME, parameters, &mut scored)?;
    let mut nats = vec![None; documents.len()];
    for (place, found) in places.into_iter().zip(&scored) {
        nats[place] = found.nats.get(NAME).copied();
    }
    Ok(nats)
}

/// Adds the loss under the token frequencies of the training text, with one added to every count.
pub(super) fn by_unigram(name: &'static str, counts: &[u64], documents: &mut [Scored]) {
    let total = counts.iter().sum::<u64>() as f64 + counts.len() as f64;
    let nats = |id: &u32| (total / (counts.get(*id as usize).copied().unwrap_or(0) as f64 + 1.0)).ln();
    for document in documents {
        let sum = document.ids[1..].iter().map(nats).sum();
        document.nats.insert(name, sum);
    }
}

/// Adds the loss under the n-gram model, which sees all of a document before a token and no window.
pub(super) fn by_ngram(name: &'static str, ngram: &Ngram, documents: &mut [Scored]) {
    documents.par_iter_mut().for_each(|document| {
        let sum = ngram.nats(&document.ids);
        document.nats.insert(name, sum);
    });
}
