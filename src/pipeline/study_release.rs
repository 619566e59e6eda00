//! The released tokenizer from the text of the `small` manifest: candidates, the choice, its files and its card.

use super::study::load_study;
use super::study_text::{RECIPE, characters, sets};
use super::{PipelineError, default_cache, read_json, write_json};
use crate::artifact::{hash_bytes, write_atomic};
use crate::corpus::balance::to_mix;
use crate::corpus::source::{Manifest, Store};
use crate::corpus::{Document, prepare};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::report::release as card;
use crate::tokenizer::study::release::{PATTERN, SHARES, SIDE_SHARE, VOCABULARY, choose};
use crate::tokenizer::study::{Candidate, Doubles, Release, TextSet, Usage, measure_set};
use crate::tokenizer::{PreTokenizer, Tokenizer, TokenizerError, Training};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const STORED: &str = "release.json";
const TOKENIZER: &str = "tokenizer.json";
const CARD: &str = "tokenizer.md";

/// Where the release reads and writes.
#[derive(Debug, Clone)]
pub struct ReleaseOptions {
    /// A folder of raw files that is looked in before anything is downloaded.
    pub mirror: Option<PathBuf>,
    /// The folder of the stored study, whose well-known tokenizers the card compares with.
    pub study: PathBuf,
    /// Where the tokenizer, its measurements and its card go.
    pub out: PathBuf,
}

/// Trains the candidates, chooses one, and writes it with its measurements and its card; gives the table of the
/// candidates.
///
/// # Errors
/// When a text is missing or wrong, training fails or a file cannot be written.
pub fn release(options: &ReleaseOptions) -> Result<String, PipelineError> {
    let recipe = Recipe::load(RECIPE)?.corpus;
    let manifest = Manifest::load(&recipe.manifest)?;
    let prepared = prepare(&manifest, &recipe, &Store::new(options.mirror.clone(), default_cache()))?;
    let sets = sets(&prepared.parallel);
    let tried = SHARES.map(|share| (PATTERN, share));
    let beside = [PreTokenizer::Gpt2, PreTokenizer::Marks].map(|pattern| (pattern, SIDE_SHARE));
    let tried: Vec<(PreTokenizer, f64)> = tried.into_iter().chain(beside).collect();
    let mut work = Progress::new("release", tried.len() as u64, "tokenizers");
    let mut candidates = Vec::new();
    for (pattern, share) in &tried {
        candidates.push(candidate(*pattern, *share, &prepared.train, &sets)?.0);
        work.advance(1, &format!("{}, Bangla {share}", pattern.name()));
    }
    let none = || TokenizerError::Train(format!("no candidate was measured on {}", card::SET));
    let chosen = choose(&candidates).ok_or_else(none)?;
    // Trained again: holding all of them would take memory for nothing.
    let (pattern, share) = tried[chosen];
    let (_, tokenizer, documents) = candidate(pattern, share, &prepared.train, &sets)?;
    work.finish(&format!("{} of {} candidates", chosen + 1, candidates.len()));
    let json = tokenizer.to_compact_json()?;
    let texts: Vec<&str> = documents.iter().map(|d| d.text.as_str()).collect();
    let release = Release {
        candidates,
        chosen,
        usage: Usage::of(&tokenizer, &texts)?,
        bytes: json.len() as u64,
        file: hash_bytes(json.as_bytes()),
        identity: tokenizer.hash()?,
        manifest: manifest.hash(),
    };
    write_atomic(&options.out.join(TOKENIZER), json.as_bytes())?;
    write_json(&options.out.join(STORED), &release)?;
    write_atomic(&options.out.join(CARD), release_card(&options.out, &options.study)?.as_bytes())?;
    Ok(card::candidates(&release).to_text(super::WIDTH))
}

/// The card of the release stored in `directory`, beside the study stored in `study`.
///
/// # Errors
/// When either is missing or was changed.
pub fn release_card(directory: &Path, study: &Path) -> Result<String, PipelineError> {
    let release: Release = read_json(&directory.join(STORED))?;
    let recipe = Recipe::load(RECIPE)?;
    let manifest = Manifest::load(&recipe.corpus.manifest)?;
    Ok(card::card(&release, &load_study(study)?, &manifest, &recipe)?)
}

/// A tokenizer trained on all Bangla and as much English as the share asks for, what was measured, and its text.
fn candidate<'a>(
    pre_tokenizer: PreTokenizer,
    share: f64,
    train: &'a [Document],
    sets: &[TextSet],
) -> Result<(Candidate, Tokenizer, Vec<&'a Document>), PipelineError> {
    let mix = BTreeMap::from([("bn".to_owned(), share), ("en".to_owned(), 1.0 - share)]);
    let documents = to_mix(train, &mix);
    let texts: Vec<&str> = documents.iter().map(|d| d.text.as_str()).collect();
    let training = Training { pre_tokenizer, vocabulary: VOCABULARY, compose: true };
    let tokenizer = Tokenizer::train_as(&texts, &training)?;
    let candidate = Candidate {
        pre_tokenizer: pre_tokenizer.name().to_owned(),
        share,
        bangla: characters(documents.iter().copied(), "bn"),
        english: characters(documents.iter().copied(), "en"),
        vocabulary: tokenizer.vocabulary_size(),
        doubles: Doubles::of(&tokenizer),
        measured: measure_set(&tokenizer, sets, true)?,
    };
    Ok((candidate, tokenizer, documents))
}
