//! The text of a recipe that is streamed: what is read for each language, and how far it has come.

use super::text::{CORPUS_REPORT, HELD_OUT, PARALLEL, TOKENIZER, TRAIN};
use super::{Context, Pipeline, PipelineError, write_json};
use crate::artifact::{Hash, hash_bytes};
use crate::corpus::contamination::Protected;
use crate::corpus::loader::{Batch, validation_windows};
use crate::corpus::normalise::normalise;
use crate::corpus::prepare_documents;
use crate::corpus::shard::Shard;
use crate::corpus::source::{File, Manifest, Role, Source, Store, protected};
use crate::corpus::split::is_held_out;
use crate::corpus::stream::{Chunk, Cleaning, Feed, Order, Position, Progressed, Rows, SLICE, Streamed, tokens_needed};
use crate::corpus::{CorpusError, Document, write_documents};
use crate::progress::Progress;
use crate::recipe::{Recipe, RecipeError};
use crate::report::Table;
use crate::tokenizer::Tokenizer;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of a language's chunks.
fn folder(root: &Path, language: &str) -> PathBuf {
    root.join("stream").join(language)
}

/// Bytes of each language's text that stand for it where not all of it is needed: to train the naive tokenizer, to
/// count the balance, to evaluate.
const SAMPLE: usize = 32 << 20;

/// Refuses what streamed text cannot do without, and says what is not done to it: every recipe states a threshold for
/// near-duplicates, but a text that is read once, while it is trained on, is never compared with all of itself.
pub(super) fn check(recipe: &Recipe) -> Result<(), PipelineError> {
    let Recipe { name, corpus, .. } = recipe;
    if recipe.tokenizer.file.is_none() {
        return Err(PipelineError::Recipe(RecipeError::Value {
            origin: name.clone(),
            field: "tokenizer.file",
            found: "not given".to_owned(),
            expected: "a tokenizer that was trained before: text that is streamed is not there to train one on"
                .to_owned(),
        }));
    }
    eprintln!(
        "warning: recipe {name}: near-duplicates of the training text are not looked for, since it is streamed; \
         `corpus.near_duplicate` = {} holds for its first {} MiB of each language, which it is measured on",
        corpus.near_duplicate,
        SAMPLE >> 20
    );
    Ok(())
}

/// Writes the first documents of each language, cleaned as those of any other manifest; what is held out of them is
/// held out of training too.
pub(super) fn make_sample(context: &Context, root: &Path) -> Result<(), PipelineError> {
    let (recipe, store, mut documents) = (context.recipe, context.store, Vec::new());
    for language in recipe.mix.keys() {
        let mut left = SAMPLE;
        for (source, file) in files(context.manifest, store, language)? {
            let mut rows = Rows::open(&store.path(&source, &file)?, Position::default())?;
            for (i, text) in rows.slice(left)?.texts.into_iter().enumerate() {
                let Some(text) = text else { continue };
                left = left.saturating_sub(text.len());
                let (id, source) = (format!("{}/{}#{}", source.id, file.path, i + 1), &source);
                let (source, domain) = (source.id.clone(), source.domain.clone());
                documents.push(Document { id, source, language: language.clone(), domain, text });
            }
            if left == 0 {
                break;
            }
        }
    }
    let protected = protected(context.manifest, store)?;
    let mut progress = Progress::new("prepare", 4 * documents.len() as u64, "documents");
    let mut prepared = prepare_documents(documents, Vec::new(), &protected, &recipe.corpus, &mut progress)?;
    prepared.require_languages(recipe.mix.keys())?;
    // Of a source that is read in part, fewer are held out of training: the others must not be measured on.
    let weights: BTreeMap<&str, f64> = context.manifest.sources.iter().map(|s| (s.id.as_str(), s.weight)).collect();
    let share = |document: &Document| recipe.corpus.held_out * weights.get(document.source.as_str()).unwrap_or(&1.0);
    prepared.held_out.retain(|document| is_held_out(&document.text, share(document)));
    progress.finish(&format!("{} documents to train on", prepared.train.len()));
    write_documents(&root.join(TRAIN), &prepared.train)?;
    write_documents(&root.join(HELD_OUT), &prepared.held_out)?;
    write_json(&root.join(PARALLEL), &prepared.parallel)?;
    write_json(&root.join(CORPUS_REPORT), &prepared.report)
}

/// The files of a language in order, each with its source.
fn files(manifest: &Manifest, store: &Store, language: &str) -> Result<Vec<(Source, File)>, PipelineError> {
    let mut files = Vec::new();
    for source in manifest.allowed(Role::Train).filter(|source| source.language == language) {
        files.extend(store.files(source)?.into_iter().map(|file| (source.clone(), file)));
    }
    if files.is_empty() {
        let present = manifest.allowed(Role::Train).map(|s| s.language.as_str()).collect::<Vec<_>>().join(", ");
        let language = language.to_owned();
        return Err(CorpusError::MissingLanguage { language, part: "training", present }.into());
    }
    Ok(files)
}

/// What is streamed, by language.
pub(super) fn orders(
    recipe: &Recipe,
    manifest: &Manifest,
    store: &Store,
    root: &Path,
    tokenizer: &Tokenizer,
) -> Result<BTreeMap<String, Order>, PipelineError> {
    let texts: Vec<String> = protected(manifest, store)?.iter().map(|text| normalise(text)).collect();
    let windows = Protected::new(texts.iter().map(String::as_str), recipe.corpus.contamination_window);
    let plain = (&texts, recipe.corpus.contamination_window);
    let hash = hash_bytes(&serde_json::to_vec(&plain).unwrap_or_else(|e| unreachable!("plain data: {e}")));
    let cleaning = Cleaning { held_out: recipe.corpus.held_out, protected: Arc::new(windows), protected_hash: hash };
    let mut orders = BTreeMap::new();
    for language in recipe.mix.keys() {
        let files = files(manifest, store, language)?;
        let order = Order {
            language: language.clone(),
            files,
            store: store.clone(),
            directory: folder(root, language),
            slice: SLICE,
            cleaning: cleaning.clone(),
            tokenizer: tokenizer.hash()?,
            vocabulary: tokenizer.vocabulary_size(),
            end_of_text: tokenizer.end_of_text(),
        };
        orders.insert(language.clone(), order);
    }
    Ok(orders)
}

fn feed(order: Order, tokenizer: &Tokenizer) -> Result<(Feed, Vec<(Chunk, Shard)>), PipelineError> {
    let tokenizer = tokenizer.clone();
    Ok(Feed::open(order, Arc::new(move |text: &str| tokenizer.encode(text).map_err(|e| e.to_string())))?)
}

/// Batches of the text, and fixed ones of the documents that the first chunk of each language holds out.
pub(super) fn data(
    context: &Context,
    root: &Path,
    tokenizer: &Tokenizer,
    windows: usize,
) -> Result<(Streamed, BTreeMap<String, Vec<Batch>>), PipelineError> {
    let recipe = context.recipe;
    let (batch, length) = (recipe.train.batch, recipe.model.context);
    let (mut feeds, mut validation) = (Vec::new(), BTreeMap::new());
    for (language, order) in orders(recipe, context.manifest, context.store, root, tokenizer)? {
        let directory = order.directory.clone();
        let (mut feed, mut found) = feed(order, tokenizer)?;
        if found.is_empty() {
            found.extend(feed.advance()?);
        }
        let held_out = Shard::open(&Chunk::held_out_path(&directory, 0), tokenizer.hash()?)?;
        validation.insert(language.clone(), validation_windows(&language, &held_out, batch, length, windows)?);
        feeds.push((feed, found));
    }
    let batches = recipe.train.steps * recipe.train.accumulate as u64;
    Ok((Streamed::new(feeds, &recipe.mix, (batch, length), recipe.seed, batches)?, validation))
}

impl Pipeline {
    /// Hashes of what is streamed, by language.
    pub(super) fn stream_inputs(&self) -> Result<Vec<(String, Hash)>, PipelineError> {
        let tokenizer = Tokenizer::load(&self.dir.path(TOKENIZER))?;
        let orders = orders(&self.recipe, &self.manifest, &self.store, self.root(), &tokenizer)?;
        Ok(orders.into_iter().map(|(language, order)| (format!("text {language}"), order.made_from())).collect())
    }

    /// Brings and encodes the text that training will need, or goes on with it; a table by language.
    pub(super) fn stream(&mut self) -> Result<String, PipelineError> {
        self.tokenizers()?;
        let tokenizer = Tokenizer::load(&self.dir.path(TOKENIZER))?;
        let total: f64 = self.recipe.mix.values().sum();
        let windows = self.recipe.train.steps * self.recipe.tokens_per_step() / self.recipe.model.context as u64;
        let mut table = Table::new(
            "stream",
            &["language", "chunks", "documents", "held out", "contaminated", "tokens", "of", "MB"],
        );
        for (language, order) in orders(&self.recipe, &self.manifest, &self.store, self.root(), &tokenizer)? {
            let share = self.recipe.mix[&language] / total;
            let needed = tokens_needed(windows, share, self.recipe.model.context);
            let (mut feed, found) = feed(order, &tokenizer)?;
            let mut sum = Progressed::default();
            found.iter().for_each(|(chunk, _)| sum.add(chunk));
            drop(found);
            let mut progress = Progress::new(&language, needed, "tokens");
            while sum.tokens < needed
                && let Some((chunk, _)) = feed.advance()?
            {
                sum.add(&chunk);
                progress.set(
                    sum.tokens.min(needed),
                    &format!("row group {} of file {}", chunk.to.row_group, chunk.to.file),
                );
            }
            progress.finish(&format!("{} tokens", sum.tokens));
            let counts = [sum.documents, sum.held_out, sum.contaminated, sum.tokens, needed].map(|n| n.to_string());
            let mut row = vec![language, sum.chunks.to_string()];
            row.extend(counts);
            row.push(format!("{:.1}", sum.bytes as f64 / 1e6));
            table.push(row);
        }
        Ok(table.to_text(super::WIDTH))
    }
}
