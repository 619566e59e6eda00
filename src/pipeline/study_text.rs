//! The text of the fertility study: five training texts from one manifest, and what is measured on.

use super::{PipelineError, study::StudyOptions};
use crate::corpus::balance::to_mix;
use crate::corpus::source::{LicenceRisk, Manifest, ReadOutcome, Store, files_to_read, read};
use crate::corpus::{Document, ParallelPair, ParallelSet, Prepared, prepare_documents};
use crate::progress::Progress;
use crate::recipe::{CorpusRecipe, Recipe};
use crate::tokenizer::study::{TextSet, TrainingText};
use std::collections::{BTreeMap, BTreeSet};

/// The recipe whose text and splits the study uses.
pub(super) const RECIPE: &str = "small";

/// Names of the training texts.
pub(super) const ALL: &str = "all";
pub(super) const BALANCED: &str = "balanced";
pub(super) const WITH_NEWS: &str = "with news";
pub(super) const AS_WRITTEN: &str = "as written";
pub(super) const LEANING: &str = "four fifths";

/// The text of the study.
pub(super) struct Texts {
    /// Training documents, with what they are.
    pub training: Vec<(TrainingText, Vec<Document>)>,
    /// Parallel sets, normalised.
    pub parallel: Vec<ParallelSet>,
    /// The same as they are written.
    pub raw_parallel: Vec<ParallelSet>,
    /// The declaration by language.
    pub scripts: Vec<(String, String)>,
}

impl Texts {
    /// The documents of a training text.
    pub(super) fn documents(&self, name: &str) -> Vec<&str> {
        let of = self.training.iter().filter(|(text, _)| text.name == name);
        of.flat_map(|(_, documents)| documents).map(|d| d.text.as_str()).collect()
    }
}

/// Reads and prepares all of it.
pub(super) fn texts(options: &StudyOptions) -> Result<Texts, PipelineError> {
    let recipe = Recipe::load(RECIPE)?.corpus;
    let mut manifest = Manifest::load(&recipe.manifest)?;
    let allowed: BTreeSet<String> =
        manifest.sources.iter().filter(|s| manifest.allows(s)).map(|s| s.id.clone()).collect();
    manifest.maximum_licence_risk = Some(LicenceRisk::Medium);
    let store = Store::new(options.mirror.clone(), super::default_cache());
    let mut progress = Progress::new("read", files_to_read(&manifest)?, "files");
    let outcome = read(&manifest, &store, &mut progress)?;
    progress.finish(&format!("{} documents", outcome.documents.len()));
    let with_news = prepared(outcome.documents.clone(), &outcome, &recipe)?.train;
    let low = outcome.documents.iter().filter(|d| allowed.contains(&d.source)).cloned().collect();
    let all = prepared(low, &outcome, &recipe)?;
    let raw: BTreeMap<&str, &str> = outcome.documents.iter().map(|d| (d.id.as_str(), d.text.as_str())).collect();
    let written = |d: &Document| Some(Document { text: (*raw.get(d.id.as_str())?).to_owned(), ..d.clone() });
    let as_written = all.train.iter().filter_map(written).collect();
    let balanced = balance(&all.train);
    let mix = BTreeMap::from([("bn".to_owned(), 0.8), ("en".to_owned(), 0.2)]);
    let leaning = to_mix(&with_news, &mix).into_iter().cloned().collect();
    let mut scripts = outcome.scripts.clone();
    if let Some(set) = all.parallel.iter().find(|set| set.id == "par-udhr") {
        let side = |of: fn(&ParallelPair) -> &str| set.pairs.iter().map(of).collect::<Vec<_>>().join("\n");
        scripts.extend([("ben".to_owned(), side(|p| &p.bn)), ("eng".to_owned(), side(|p| &p.en))]);
    }
    let training = vec![
        named(ALL, "all training text of the `small` manifest", all.train),
        named(BALANCED, "all Bangla of it, and as many characters of English", balanced),
        named(LEANING, "all Bangla with the news set, and English to a fifth of the characters", leaning),
        named(WITH_NEWS, "all, and the news set, whose licence is less sure", with_news),
        named(AS_WRITTEN, "all, before it is normalised", as_written),
    ];
    Ok(Texts { training, parallel: all.parallel, raw_parallel: outcome.parallel, scripts })
}

fn prepared(documents: Vec<Document>, outcome: &ReadOutcome, recipe: &CorpusRecipe) -> Result<Prepared, PipelineError> {
    let mut progress = Progress::new("prepare", 4 * documents.len() as u64, "documents");
    let made = prepare_documents(documents, outcome.parallel.clone(), &outcome.protected, recipe, &mut progress)?;
    progress.finish(&format!("{} documents to train on", made.train.len()));
    Ok(made)
}

fn named(name: &str, what: &str, documents: Vec<Document>) -> (TrainingText, Vec<Document>) {
    let (bangla, english) = (characters(&documents, "bn"), characters(&documents, "en"));
    (TrainingText { name: name.to_owned(), what: what.to_owned(), bangla, english }, documents)
}

pub(super) fn characters<'a>(documents: impl IntoIterator<Item = &'a Document>, language: &str) -> u64 {
    documents.into_iter().filter(|d| d.language == language).map(|d| d.text.chars().count() as u64).sum()
}

/// All documents of the language with fewer characters, and as many characters of the other: a document
/// is taken whenever what was taken is behind the share of what was seen.
fn balance(documents: &[Document]) -> Vec<Document> {
    let (bn, en) = (characters(documents, "bn") as f64, characters(documents, "en") as f64);
    let share = |language: &str| if language == "bn" { (en / bn).min(1.0) } else { (bn / en).min(1.0) };
    let mut state: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let mut kept = Vec::new();
    for document in documents {
        let size = document.text.chars().count() as f64;
        let (due, taken) = state.entry(&document.language).or_default();
        *due += size * share(&document.language);
        if *taken + size / 2.0 <= *due {
            *taken += size;
            kept.push(document.clone());
        }
    }
    kept
}

/// What is measured on. English comes first: it is what the price of Bangla is counted in.
pub(super) fn sets(parallel: &[ParallelSet]) -> Vec<TextSet<'_>> {
    let mut sets = Vec::new();
    for set in parallel {
        let side = |language: &str, of: fn(&ParallelPair) -> &str| {
            let texts = set.pairs.iter().map(of).collect();
            TextSet { name: set.id.clone(), language: language.to_owned(), texts }
        };
        sets.extend([side("en", |p| &p.en), side("bn", |p| &p.bn)]);
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balancing_keeps_the_smaller_language_and_as_much_of_the_other() {
        let document = |i: usize, language: &str, size: usize| Document {
            id: i.to_string(),
            source: "s".to_owned(),
            language: language.to_owned(),
            domain: "d".to_owned(),
            text: "a".repeat(size),
        };
        let mut documents: Vec<Document> = (0..40).map(|i| document(i, "en", 50 + i % 7)).collect();
        documents.extend((40..50).map(|i| document(i, "bn", 30)));
        let kept = balance(&documents);
        assert_eq!(characters(&kept, "bn"), 300);
        assert!((characters(&kept, "en") as i64 - 300).abs() <= 28, "{}", characters(&kept, "en"));
        assert_eq!(balance(&documents), kept);
    }
}
