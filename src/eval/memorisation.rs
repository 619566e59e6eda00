//! Does the model know text it was trained on better than text it was not?

use super::loss::{Losses, losses};
use super::scored::{Scored, by_decoder, encode};
use super::{EvalError, Evaluation};
use crate::corpus::Document;
use crate::model::Decoder;
use crate::rng::Stream;
use crate::statistics::{Interval, ratio_difference_interval};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The trained model on training text beside held-out text of one language.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memorisation {
    /// Language of the documents.
    pub language: String,
    /// Training documents drawn: as many of each domain as were held out, where there are so many.
    pub documents: usize,
    /// Their loss.
    pub training: Losses,
    /// The loss of the held-out documents.
    pub held_out: Losses,
    /// Held-out minus training in nats per character: above 0 where training text is known better.
    pub gap_per_character: Interval,
}

/// Scores a sample of the training documents, drawn by the seed to match `held_out` in domains.
pub(super) fn memorisation(
    evaluation: &Evaluation,
    decoder: &mut Decoder<f32>,
    held_out: &[Scored],
) -> Result<Vec<Memorisation>, EvalError> {
    let mut training = encode(sample(evaluation, held_out).into_iter(), evaluation.tokenizer, |_| true)?;
    by_decoder(decoder, "trained", evaluation.parameters, &mut training)?;
    let mut languages: Vec<&str> = training.iter().map(|d| d.language.as_str()).collect();
    languages.sort_unstable();
    languages.dedup();
    let (resamples, seed) = (evaluation.recipe.bootstrap, evaluation.seed);
    let of = |documents: &'_ [Scored], language: &str| -> Vec<usize> {
        (0..documents.len()).filter(|i| documents[*i].language == language).collect()
    };
    Ok(languages
        .iter()
        .map(|language| {
            let [trained, held] = [&training[..], held_out]
                .map(|all| of(all, language).into_iter().map(|i| &all[i]).collect::<Vec<&Scored>>());
            let column =
                |documents: &[&Scored], f: fn(&Scored) -> f64| documents.iter().map(|d| f(d)).collect::<Vec<_>>();
            let nats = |d: &Scored| d.nats["trained"];
            let characters = |d: &Scored| d.characters;
            let (a, b) = (column(&held, nats), column(&held, characters));
            let (c, d) = (column(&trained, nats), column(&trained, characters));
            Memorisation {
                language: (*language).to_owned(),
                documents: trained.len(),
                training: losses(&trained, "trained", resamples, seed),
                held_out: losses(&held, "trained", resamples, seed),
                gap_per_character: ratio_difference_interval((&a, &b), (&c, &d), resamples, seed),
            }
        })
        .collect())
}

/// As many training documents of each language and domain as were scored of the held-out ones, drawn
/// without replacement.
fn sample<'a>(evaluation: &Evaluation<'a>, held_out: &[Scored]) -> Vec<&'a Document> {
    let mut wanted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for document in held_out {
        *wanted.entry((&document.language, &document.domain)).or_default() += 1;
    }
    let stream = Stream::new(evaluation.seed, "memorisation");
    let count = evaluation.training.len() as u64;
    let drawn = (0..count).map(|i| &evaluation.training[stream.permute(i, count) as usize]);
    let take = |document: &&'a Document| {
        let left = wanted.get_mut(&(document.language.as_str(), document.domain.as_str()));
        left.is_some_and(|left| {
            let take = *left > 0;
            *left -= usize::from(take);
            take
        })
    };
    drawn.filter(take).collect()
}
