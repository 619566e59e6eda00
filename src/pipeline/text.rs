//! From the manifest to token shards: documents, tokenizers, shards, fertility and balance.

use super::text_make::{make_corpus, make_shards, make_tokenizers};
use super::{Context, Pipeline, PipelineError, part, program, read_json, write_json};
use crate::artifact::{Hash, read, write_atomic};
use crate::corpus::balance::{self, LanguageBalance};
use crate::corpus::{Document, ParallelSet, read_documents};
use crate::progress::Progress;
use crate::report::Table;
use crate::tokenizer::fertility::{self, Fertility};
use crate::tokenizer::{Tokenizer, TokenizerError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) const TRAIN: &str = "corpus/train.jsonl";
pub(super) const HELD_OUT: &str = "corpus/held_out.jsonl";
pub(super) const PARALLEL: &str = "corpus/parallel.json";
pub(super) const CORPUS_REPORT: &str = "corpus/report.json";
pub(super) const TOKENIZER: &str = "tokenizer.json";
pub(super) const NAIVE_TOKENIZER: &str = "tokenizer-naive.json";
pub(super) const FERTILITY: &str = "fertility.json";
pub(super) const BALANCE: &str = "balance.json";

/// The pre-tokenizer of GPT-2, whose pattern cuts Bangla words at every vowel sign.
pub(super) const NAIVE: &str = "gpt2";

/// Fertility of one tokenizer on one set of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Name of the pre-tokenizer.
    pub pre_tokenizer: String,
    /// Tokens in the vocabulary.
    pub vocabulary: usize,
    /// `held-out`, or the id of a parallel set.
    pub texts: String,
    /// Language of the texts.
    pub language: String,
    /// What was measured.
    pub fertility: Fertility,
}

/// The balance of the languages in the training text, counted in the tokens of one tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenBalance {
    /// Name of the pre-tokenizer.
    pub pre_tokenizer: String,
    /// By language.
    pub languages: Vec<LanguageBalance>,
}

/// The path of a token shard: `part` is `train` or `held_out`.
pub(super) fn shard_path(part: &str, language: &str) -> String {
    format!("shards/{part}-{language}.bin")
}

impl Pipeline {
    /// Reads, cleans and splits the text.
    ///
    /// # Errors
    /// When a source is missing or wrong, or no text is left.
    pub fn corpus(&mut self) -> Result<String, PipelineError> {
        let table = self.documents()?;
        Ok(if self.manifest.is_streamed() { table + &self.stream()? } else { table })
    }

    /// The documents that everything but training works on: all, or the first of a text that is streamed.
    fn documents(&mut self) -> Result<String, PipelineError> {
        let inputs = [part("recipe.corpus", &self.recipe.corpus), part("recipe.mix", &self.recipe.mix), program()];
        let mut inputs = BTreeMap::from(inputs);
        inputs.insert("manifest".to_owned(), self.manifest.hash());
        let outputs = [TRAIN, HELD_OUT, PARALLEL, CORPUS_REPORT].map(str::to_owned);
        let root = self.root().to_path_buf();
        let is_streamed = self.manifest.is_streamed();
        self.stage("corpus", inputs, &outputs, |context| match is_streamed {
            true => super::stream::make_sample(context, &root),
            false => make_corpus(context, &root),
        })?;
        let report: crate::corpus::CorpusReport = read_json(&self.dir.path(CORPUS_REPORT))?;
        Ok(corpus_table(&report).to_text(super::WIDTH))
    }

    /// Trains the recipe's tokenizer, and the naive one on the same text.
    ///
    /// # Errors
    /// When training fails or a file cannot be written.
    pub fn tokenizers(&mut self) -> Result<String, PipelineError> {
        self.documents()?;
        let mut inputs =
            BTreeMap::from([self.input(TRAIN)?, part("recipe.tokenizer", &self.recipe.tokenizer), program()]);
        if let Some(file) = &self.recipe.tokenizer.file {
            inputs.insert(file.clone(), crate::artifact::hash_file(Path::new(file))?);
        }
        let outputs = [TOKENIZER, NAIVE_TOKENIZER].map(str::to_owned);
        let root = self.root().to_path_buf();
        self.stage("tokenizers", inputs, &outputs, |context| make_tokenizers(context, &root))?;
        let size = |name: &str| Ok::<_, PipelineError>(Tokenizer::load(&root.join(name))?.vocabulary_size());
        let (ours, naive) = (size(TOKENIZER)?, size(NAIVE_TOKENIZER)?);
        let name = &self.recipe.tokenizer.pre_tokenizer;
        Ok(format!("{TOKENIZER}: {name}, {ours} tokens\n{NAIVE_TOKENIZER}: {NAIVE}, {naive} tokens\n"))
    }

    /// Writes the token shards and the balance of the languages.
    ///
    /// # Errors
    /// When encoding fails or a file cannot be written.
    pub fn shards(&mut self) -> Result<(), PipelineError> {
        self.tokenizers()?;
        let artifacts = [TRAIN, HELD_OUT, TOKENIZER, NAIVE_TOKENIZER].map(|name| self.input(name));
        let mut inputs = artifacts.into_iter().collect::<Result<BTreeMap<_, _>, _>>()?;
        inputs.extend([
            part("recipe.mix", &self.recipe.mix),
            part("recipe.tokenizer", &self.recipe.tokenizer),
            program(),
        ]);
        let parts = ["train", "held_out"].into_iter();
        let mut outputs: Vec<String> =
            parts.flat_map(|part| self.recipe.mix.keys().map(move |language| shard_path(part, language))).collect();
        outputs.push(BALANCE.to_owned());
        let root = self.root().to_path_buf();
        self.stage("shards", inputs, &outputs, |context| make_shards(context, &root))?;
        Ok(())
    }

    /// Measures both tokenizers on held-out and parallel text.
    ///
    /// # Errors
    /// When encoding fails or a file cannot be written.
    pub fn fertility(&mut self) -> Result<String, PipelineError> {
        self.tokenizers()?;
        let artifacts = [HELD_OUT, PARALLEL, TOKENIZER, NAIVE_TOKENIZER].map(|name| self.input(name));
        let mut inputs = artifacts.into_iter().collect::<Result<BTreeMap<_, _>, _>>()?;
        inputs.extend([part("recipe.tokenizer", &self.recipe.tokenizer), program()]);
        let root = self.root().to_path_buf();
        self.stage("fertility", inputs, &[FERTILITY.to_owned()], |context| make_fertility(context, &root))?;
        let measurements: Vec<Measurement> = read_json(&self.dir.path(FERTILITY))?;
        Ok(fertility_table(&measurements).to_text(super::WIDTH))
    }
}

/// Takes a tokenizer that was trained before.
pub(super) fn given(context: &Context, path: &Path, target: &Path) -> Result<(), PipelineError> {
    let (tokenizer, wanted) = (Tokenizer::load(path)?, context.recipe.tokenizer.vocabulary);
    let found = tokenizer.vocabulary_size();
    if found != wanted {
        let message = format!("it has {found} tokens, `tokenizer.vocabulary` says {wanted}; correct the recipe");
        return Err(TokenizerError::Format { path: path.to_path_buf(), message }.into());
    }
    let bytes = read(path)?;
    Ok(write_atomic(target, &bytes)?)
}

/// How the languages share `documents` in the tokens of `tokenizer`.
pub(crate) fn token_balance(
    name: &str,
    tokenizer: &Tokenizer,
    documents: &[Document],
) -> Result<TokenBalance, TokenizerError> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (document, ids) in documents.iter().zip(tokenizer.encode_all(documents.iter().map(|d| d.text.as_str()))?) {
        *counts.entry(document.language.clone()).or_default() += ids.len() as u64;
    }
    Ok(TokenBalance { pre_tokenizer: name.to_owned(), languages: balance::measure(documents, &counts) })
}

fn make_fertility(context: &Context, root: &Path) -> Result<(), PipelineError> {
    let held_out = read_documents(&root.join(HELD_OUT))?;
    let parallel: Vec<ParallelSet> = read_json(&root.join(PARALLEL))?;
    let languages: BTreeSet<&str> = held_out.iter().map(|d| d.language.as_str()).collect();
    let mut sets: Vec<(String, String, Vec<&str>)> = Vec::new();
    for language in languages {
        let texts = held_out.iter().filter(|d| d.language == language).map(|d| d.text.as_str()).collect();
        sets.push(("held-out".to_owned(), language.to_owned(), texts));
    }
    for set in &parallel {
        sets.push((set.id.clone(), "bn".to_owned(), set.pairs.iter().map(|p| p.bn.as_str()).collect()));
        sets.push((set.id.clone(), "en".to_owned(), set.pairs.iter().map(|p| p.en.as_str()).collect()));
    }
    let ours = context.recipe.tokenizer.pre_tokenizer.as_str();
    let mut progress = Progress::new("fertility", 2 * sets.len() as u64, "measurements");
    let mut measurements = Vec::new();
    for (name, path) in [(NAIVE, NAIVE_TOKENIZER), (ours, TOKENIZER)] {
        let tokenizer = Tokenizer::load(&root.join(path))?;
        for (texts, language, sentences) in &sets {
            measurements.push(Measurement {
                pre_tokenizer: name.to_owned(),
                vocabulary: tokenizer.vocabulary_size(),
                texts: texts.clone(),
                language: language.clone(),
                fertility: fertility::measure(&tokenizer, sentences)?,
            });
            progress.advance(1, texts);
        }
    }
    progress.finish(&format!("{} measurements", measurements.len()));
    write_json(&root.join(FERTILITY), &measurements)
}

/// What happened to the text of each source.
pub(crate) fn corpus_table(report: &crate::corpus::CorpusReport) -> Table {
    let header = ["source", "language", "read", "duplicates", "contaminated", "train", "held out", "characters"];
    let mut table = Table::new("corpus", &header);
    for row in &report.sources {
        let duplicates = row.exact_duplicates.documents + row.near_duplicates.documents;
        let counts =
            [row.read.documents, duplicates, row.contaminated.documents, row.train.documents, row.held_out.documents];
        let mut cells = vec![row.source.clone(), row.language.clone()];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(row.train.characters.to_string());
        table.push(cells);
    }
    table
}

fn fertility_table(measurements: &[Measurement]) -> Table {
    let header = [
        "text",
        "language",
        "pre-tokenizer",
        "vocabulary",
        "chars/token",
        "bytes/token",
        "tokens/word",
        "tokens/text",
        "inside cluster",
    ];
    let mut table = Table::new("fertility", &header);
    for m in measurements {
        let f = &m.fertility;
        table.push(vec![
            m.texts.clone(),
            m.language.clone(),
            m.pre_tokenizer.clone(),
            m.vocabulary.to_string(),
            format!("{:.2}", f.characters_per_token.value),
            format!("{:.2}", f.bytes_per_token.value),
            format!("{:.2}", f.tokens_per_word.value),
            format!("{:.1}", f.tokens_per_text.value),
            format!("{:.1} %", 100.0 * f.ends_inside_cluster.value),
        ]);
    }
    table
}

/// The hash of a shard as training names it.
pub(super) fn shard_input(pipeline: &Pipeline, part: &str, language: &str) -> Result<(String, Hash), PipelineError> {
    pipeline.input(&shard_path(part, language))
}
