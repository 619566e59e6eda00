//! The consequence of a tokenizer: small models of one shape, text and budget that differ in their tokenizer alone,
//! compared in nats per character.

use super::study_text::sets;
use super::{PipelineError, default_cache, read_json, write_json};
use crate::artifact::Hash;
use crate::corpus::balance::{self, to_mix};
use crate::corpus::loader::Loader;
use crate::corpus::shard::{Shard, write_shard};
use crate::corpus::source::{Manifest, Store};
use crate::corpus::{Document, Prepared, prepare};
use crate::error::FileError;
use crate::eval::document_nats;
use crate::model::{Config, Decoder};
use crate::progress::Progress;
use crate::recipe::{ModelRecipe, Recipe, TrainRecipe};
use crate::report::consequence::{Arm, ArmLanguage, BASE, Consequence, budget, loss};
use crate::statistics::{Interval, crossed_interval};
use crate::tokenizer::fertility::{self, Fertility};
use crate::tokenizer::study::{Usage, train_superwords};
use crate::tokenizer::{PreTokenizer, Tokenizer, Training};
use crate::train::{Checkpoint, Identity, Interrupt, Setup, Start, read_metrics, train};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const STORED: &str = "consequence.json";

/// Tokens in every vocabulary.
const VOCABULARY: usize = 8192;

/// The recipe whose model and rates every run has.
const SHAPE: &str = "pocket";

/// Which text, how long, how often, and where the measurements go.
#[derive(Debug, Clone)]
pub struct ConsequenceOptions {
    /// A folder of raw files that is looked in before anything is downloaded.
    pub mirror: Option<PathBuf>,
    /// Name or path of the recipe whose corpus is used.
    pub text: String,
    /// Optimizer steps of a model.
    pub steps: u64,
    /// Models of each tokenizer.
    pub seeds: u64,
    /// Where the measurements go.
    pub out: PathBuf,
}

/// Trains and measures every arm, stores what was measured, and gives the tables.
///
/// # Errors
/// When a text is missing or wrong, training fails or a file cannot be written.
pub fn consequence(options: &ConsequenceOptions) -> Result<String, PipelineError> {
    let text = Recipe::load(&options.text)?;
    let store = Store::new(options.mirror.clone(), default_cache());
    let prepared = prepare(&Manifest::load(&text.corpus.manifest)?, &text.corpus, &store)?;
    prepared.require_languages(text.mix.keys())?;
    let shape = Recipe::load(SHAPE)?;
    let study = Bench { text: &text, shape: &shape, prepared: &prepared, seeds: options.seeds.max(1) };
    let tokenizers = study.tokenizers()?;
    let mut work = Progress::new("consequence", (tokenizers.len() as u64 + 1) * study.seeds, "models");
    let mut runs = Vec::new();
    for (name, tokenizer) in &tokenizers {
        runs.push(study.run(name, tokenizer, options.steps, &mut work)?);
    }
    // The naive tokenizer once more, with as much text as the other had: what it costs to make up for it.
    let longer = as_much_text(&runs, options.steps);
    if let (Some(steps), Some((name, naive))) = (longer, tokenizers.first()) {
        runs.push(study.run(&format!("{name}, as much text"), naive, steps, &mut work)?);
    }
    work.finish(&format!("{} tokenizers", tokenizers.len()));
    let resamples = text.eval.bootstrap;
    let measured = study.measured(runs, resamples);
    write_json(&options.out.join(STORED), &measured)?;
    let width = super::WIDTH;
    Ok(format!("{}\n{}\n{}.\n", budget(&measured).to_text(width), loss(&measured).to_text(width), measured.scale()))
}

/// What [`consequence`] stored.
pub(super) fn load_consequence(directory: &Path) -> Result<Consequence, PipelineError> {
    read_json(&directory.join(STORED))
}

/// Steps after which the first run has seen as many characters of Bangla as the base has in `steps`.
fn as_much_text(runs: &[Run], steps: u64) -> Option<u64> {
    let seen = |run: &Run| run.languages.iter().find(|l| l.language == "bn").map(|l| l.seen);
    let base = runs.iter().find(|run| run.name == BASE)?;
    Some((steps as f64 * seen(base)? / seen(runs.first()?)?).round() as u64)
}

/// What all models share.
struct Bench<'a> {
    text: &'a Recipe,
    shape: &'a Recipe,
    prepared: &'a Prepared,
    seeds: u64,
}

/// What the models of one tokenizer did.
struct Run {
    name: String,
    config: Config,
    parameters: u64,
    steps: u64,
    rare: f64,
    seconds: f64,
    languages: Vec<RunLanguage>,
}

struct RunLanguage {
    language: String,
    balance: balance::LanguageBalance,
    seen: f64,
    sentences: String,
    fertility: Fertility,
    characters: Vec<f64>,
    /// Nats of every held-out document, a row a seed.
    nats: Vec<Vec<f64>>,
}

impl Bench<'_> {
    fn model(&self) -> &ModelRecipe {
        &self.shape.model
    }

    /// The naive tokenizer, the one that keeps marks, and superwords on top of it, of one size and one text.
    fn tokenizers(&self) -> Result<Vec<(String, Tokenizer)>, PipelineError> {
        let chosen = to_mix(&self.prepared.train, &self.text.mix);
        let texts: Vec<&str> = chosen.iter().map(|d| d.text.as_str()).collect();
        let train = |pre_tokenizer, vocabulary| {
            Tokenizer::train_as(&texts, &Training { pre_tokenizer, vocabulary, compose: true })
        };
        let naive = train(PreTokenizer::Gpt2, VOCABULARY)?;
        let fixed = train(PreTokenizer::Marks, VOCABULARY)?;
        let first = train(PreTokenizer::Marks, VOCABULARY / 4 * 3)?;
        let superwords = train_superwords(&first, &texts, VOCABULARY)?;
        let name = |pre_tokenizer: PreTokenizer| pre_tokenizer.name().to_owned();
        Ok(vec![(name(PreTokenizer::Gpt2), naive), (BASE.to_owned(), fixed), ("superwords".to_owned(), superwords)])
    }

    /// Trains a model a seed with one tokenizer and scores the held-out documents.
    fn run(&self, name: &str, tokenizer: &Tokenizer, steps: u64, work: &mut Progress) -> Result<Run, PipelineError> {
        let folder = tempfile::tempdir().map_err(FileError::at("make a folder in", &std::env::temp_dir()))?;
        let config = Config::from_recipe(self.model(), tokenizer.vocabulary_size(), tokenizer.end_of_text())?;
        let counts = self.shards(tokenizer, folder.path())?;
        let mut languages = self.languages(tokenizer, &counts, steps)?;
        let (mut seconds, mut parameters) = (0.0, 0);
        for seed in 0..self.seeds {
            let trained = self.train(&config, tokenizer.hash()?, folder.path(), seed, steps)?;
            seconds += trained.1;
            parameters = trained.0.flat.len() as u64;
            let mut decoder = Decoder::new(config.clone(), false)?;
            for row in &mut languages {
                let documents = self.held_out(&row.language);
                let nats = document_nats(&mut decoder, &trained.0, tokenizer, &documents)?;
                row.nats.push(nats.into_iter().map(|nats| nats.unwrap_or(0.0)).collect());
            }
            work.advance(1, &format!("{name}, seed {seed}"));
        }
        let texts: Vec<&str> = self.prepared.train.iter().map(|d| d.text.as_str()).collect();
        let rare = Usage::of(tokenizer, &texts)?.rare;
        Ok(Run { name: name.to_owned(), config, parameters, steps, rare, seconds, languages })
    }

    /// Writes the training shards; gives the tokens of each language.
    fn shards(&self, tokenizer: &Tokenizer, folder: &Path) -> Result<BTreeMap<String, u64>, PipelineError> {
        let mut counts = BTreeMap::new();
        for language in self.text.mix.keys() {
            let own = self.prepared.train.iter().filter(|d| &d.language == language);
            let mut tokens = tokenizer.encode_all(own.map(|d| d.text.as_str()))?;
            tokens.iter_mut().for_each(|ids| ids.push(tokenizer.end_of_text()));
            counts.insert(language.clone(), tokens.iter().map(|ids| ids.len() as u64).sum());
            let path = folder.join(format!("{language}.bin"));
            write_shard(&path, tokenizer.hash()?, tokenizer.vocabulary_size(), tokens.into_iter())?;
        }
        Ok(counts)
    }

    /// The held-out documents of a language, as many as the recipe of the text evaluates on.
    fn held_out(&self, language: &str) -> Vec<&Document> {
        let own = self.prepared.held_out.iter().filter(|d| d.language == language && !d.text.trim().is_empty());
        own.take(self.text.eval.documents).collect()
    }

    /// What does not depend on the seed.
    fn languages(
        &self,
        tokenizer: &Tokenizer,
        counts: &BTreeMap<String, u64>,
        steps: u64,
    ) -> Result<Vec<RunLanguage>, PipelineError> {
        let trained = (steps * (self.shape.train.batch * self.model().context) as u64) as f64;
        let shares: f64 = self.text.mix.values().sum();
        let parallel = sets(&self.prepared.parallel);
        let mut rows = Vec::new();
        for balance in balance::measure(&self.prepared.train, counts) {
            let Some(share) = self.text.mix.get(&balance.language) else { continue };
            let documents = self.held_out(&balance.language);
            let set = parallel.iter().find(|set| set.language == balance.language);
            let (sentences, fertility) = match set {
                Some(set) => (set.name.clone(), fertility::measure(tokenizer, &set.texts)?),
                None => {
                    let texts: Vec<&str> = documents.iter().map(|d| d.text.as_str()).collect();
                    ("held-out".to_owned(), fertility::measure(tokenizer, &texts)?)
                }
            };
            rows.push(RunLanguage {
                seen: trained * share / shares * balance.characters as f64 / balance.tokens as f64,
                language: balance.language.clone(),
                balance,
                sentences,
                fertility,
                characters: documents.iter().map(|d| d.text.chars().count() as f64).collect(),
                nats: Vec::new(),
            });
        }
        Ok(rows)
    }

    /// The trained weights, and the seconds of the steps.
    fn train(
        &self,
        config: &Config,
        hash: Hash,
        folder: &Path,
        seed: u64,
        steps: u64,
    ) -> Result<(crate::model::Parameters<f32>, f64), PipelineError> {
        let TrainRecipe { batch, .. } = self.shape.train;
        let mut shards = Vec::new();
        for language in self.text.mix.keys() {
            shards.push((language.clone(), Shard::open(&folder.join(format!("{language}.bin")), hash)?));
        }
        let data = Loader::new(shards, &self.text.mix, batch, self.model().context, seed)?;
        let recipe = TrainRecipe { steps, validate_every: steps, checkpoint_every: steps, ..self.shape.train.clone() };
        let directory = folder.join(format!("seed-{seed}"));
        let setup = Setup {
            recipe: &recipe,
            config,
            seed,
            data: &data,
            validation: &BTreeMap::new(),
            directory: &directory,
            made_from: &Identity::new(),
        };
        train(&setup, Start::Over, &Interrupt::default(), &mut Progress::hidden(steps))?;
        let rows = read_metrics(&directory.join(super::train::METRICS))?;
        let seconds = rows.iter().map(|row| row.machine.seconds).sum();
        Ok((Checkpoint::load(&directory, steps, config)?.parameters, seconds))
    }

    /// The arms with their intervals; each beside the base, paired by text and seed.
    fn measured(&self, runs: Vec<Run>, resamples: usize) -> Consequence {
        let base: BTreeMap<String, Vec<Vec<f64>>> = runs
            .iter()
            .filter(|run| run.name == BASE)
            .flat_map(|run| run.languages.iter().map(|l| (l.language.clone(), l.nats.clone())))
            .collect();
        let arms = runs.iter().map(|run| arm(run, &base, resamples)).collect();
        let shares: f64 = self.text.mix.values().sum();
        Consequence {
            text: self.text.name.clone(),
            layers: self.model().layers,
            hidden: self.model().hidden,
            context: self.model().context,
            batch: self.shape.train.batch,
            mix: self.text.mix.iter().map(|(language, share)| (language.clone(), share / shares)).collect(),
            seeds: self.seeds,
            resamples,
            arms,
        }
    }
}

fn arm(run: &Run, base: &BTreeMap<String, Vec<Vec<f64>>>, resamples: usize) -> Arm {
    let language = |row: &RunLanguage| {
        let interval = |rows: &[Vec<f64>]| crossed_interval(rows, &row.characters, resamples, 0);
        let over = base.get(&row.language).filter(|_| run.name != BASE).map(|base| interval(&minus(&row.nats, base)));
        let total: f64 = row.characters.iter().sum();
        ArmLanguage {
            balance: row.balance.clone(),
            seen: row.seen,
            sentences: row.sentences.clone(),
            tokens_per_word: row.fertility.tokens_per_word,
            tokens_per_sentence: row.fertility.tokens_per_text,
            documents: row.characters.len(),
            nats_per_character: interval(&row.nats),
            by_seed: row.nats.iter().map(|nats| nats.iter().sum::<f64>() / total).collect(),
            over_base: over as Option<Interval>,
        }
    };
    Arm {
        name: run.name.clone(),
        vocabulary: run.config.vocab_size,
        parameters: run.parameters,
        steps: run.steps,
        flops_per_token: run.config.train_flops_per_token(),
        rare: run.rare,
        seconds: run.seconds,
        languages: run.languages.iter().map(language).collect(),
    }
}

/// Differences by seed and text.
fn minus(rows: &[Vec<f64>], base: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let row = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a - b).collect();
    rows.iter().zip(base).map(row).collect()
}
