//! Log-probabilities of the choices under a decoder, many at a time.

use super::{Choice, Item};
use crate::eval::EvalError;
use crate::model::{Decoder, ModelError, Parameters, Window};
use crate::ops::IGNORE;
use crate::progress::Progress;
use crate::tokenizer::Tokenizer;
use rayon::prelude::*;

/// Positions evaluated at a time, about.
const POSITIONS: usize = 4096;

/// Window lengths are rounded up to a multiple of this, so that few sizes of buffers are made.
const GRAIN: usize = 16;

/// The scores of the choices of one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Log-probability of each choice in nats.
    pub sums: Vec<f64>,
    /// The same, divided by the characters of the choice.
    pub by_character: Vec<f64>,
}

/// A choice as tokens: `ids[start..]` are scored.
struct Sequence {
    ids: Vec<u32>,
    start: usize,
}

/// A stretch of a sequence that is read at once; the tokens from `from` on are scored.
struct Span {
    sequence: usize,
    begin: usize,
    from: usize,
    end: usize,
}

/// Scores every choice of every question. A text starts after an end-of-text token, as in training; what is
/// too long for the model's window is cut from the left.
///
/// # Errors
/// [`EvalError`] when encoding fails, a token is outside the model's vocabulary, or a score is not finite.
pub fn score(
    decoder: &mut Decoder<f32>,
    parameters: &Parameters<f32>,
    tokenizer: &Tokenizer,
    items: &[Item],
    progress: &mut Progress,
) -> Result<Vec<Scores>, EvalError> {
    let choices: Vec<&Choice> = items.iter().flat_map(|item| &item.choices).collect();
    let encoded: Result<Vec<Sequence>, EvalError> =
        choices.par_iter().map(|choice| encode(tokenizer, choice)).collect();
    let sums = log_probabilities(decoder, parameters, &encoded?, progress)?;
    if sums.iter().any(|sum| !sum.is_finite()) {
        return Err(ModelError::NotFinite.into());
    }
    let mut rest = choices.iter().zip(sums);
    let of = |item: &Item| {
        let (mut sums, mut by_character) = (Vec::new(), Vec::new());
        for (choice, sum) in rest.by_ref().take(item.choices.len()) {
            sums.push(sum);
            by_character.push(sum / choice.continuation.trim().chars().count().max(1) as f64);
        }
        Scores { sums, by_character }
    };
    Ok(items.iter().map(of).collect())
}

/// The tokens of context and continuation together, as the model met such text in training. Where a token
/// spans their border it is scored with the continuation.
fn encode(tokenizer: &Tokenizer, choice: &Choice) -> Result<Sequence, EvalError> {
    let context = tokenizer.encode(&choice.context)?;
    let whole = tokenizer.encode(&format!("{}{}", choice.context, choice.continuation))?;
    let shared = context.iter().zip(&whole).take_while(|(a, b)| a == b).count();
    let mut ids = vec![tokenizer.end_of_text()];
    ids.extend(whole);
    Ok(Sequence { ids, start: shared + 1 })
}

/// Stretches of at most `context` inputs that score each token from `start` on once, from the end, so that
/// the cut is on the left; more than one only where the choice alone is longer than the window.
fn spans(at: usize, sequence: &Sequence, context: usize) -> Vec<Span> {
    let (mut spans, mut end) = (Vec::new(), sequence.ids.len());
    while end > sequence.start {
        let begin = end.saturating_sub(context + 1);
        let from = sequence.start.max(begin + 1);
        spans.push(Span { sequence: at, begin, from, end });
        end = from;
    }
    spans
}

fn log_probabilities(
    decoder: &mut Decoder<f32>,
    parameters: &Parameters<f32>,
    sequences: &[Sequence],
    progress: &mut Progress,
) -> Result<Vec<f64>, EvalError> {
    let context = decoder.config().max_position_embeddings;
    let mut all: Vec<Span> = sequences.iter().enumerate().flat_map(|(i, s)| spans(i, s, context)).collect();
    let length = |span: &Span| span.end - span.begin - 1;
    all.sort_by_key(|span| std::cmp::Reverse(length(span)));
    let mut sums = vec![0.0; sequences.len()];
    let mut rest = &all[..];
    while let Some(longest) = rest.first() {
        let time = length(longest).next_multiple_of(GRAIN).min(context);
        let (batch, after) = rest.split_at((POSITIONS / time).clamp(1, rest.len()));
        rest = after;
        let (mut inputs, mut targets) = (Vec::new(), Vec::new());
        for span in batch {
            let ids = &sequences[span.sequence].ids;
            inputs.extend_from_slice(&ids[span.begin..span.end - 1]);
            targets.resize(inputs.len() - (span.end - span.from), IGNORE);
            targets.extend_from_slice(&ids[span.from..span.end]);
            inputs.resize(inputs.len().next_multiple_of(time), 0);
            targets.resize(inputs.len(), IGNORE);
        }
        let losses = decoder.token_losses(parameters, Window { inputs: &inputs, targets: &targets, time })?;
        for (span, losses) in batch.iter().zip(losses.chunks(time)) {
            sums[span.sequence] -= losses.iter().sum::<f64>();
        }
        progress.advance(batch.len() as u64, "choices");
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_of_a_choice_is_scored_once_and_the_cut_is_on_the_left() {
        for (length, start, context) in [(5, 3, 8), (9, 3, 8), (30, 28, 8), (30, 3, 8), (2, 1, 1), (10, 1, 3)] {
            let sequence = Sequence { ids: vec![0; length], start };
            let spans = spans(0, &sequence, context);
            let mut scored: Vec<usize> = spans.iter().flat_map(|s| s.from..s.end).collect();
            scored.sort_unstable();
            assert_eq!(scored, (start..length).collect::<Vec<_>>(), "{length} {start} {context}");
            assert!(spans.iter().all(|s| s.end - s.begin - 1 <= context && s.from > s.begin));
            assert_eq!(spans[0].begin, length.saturating_sub(context + 1));
        }
    }
}
