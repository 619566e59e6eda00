//! The stages of a run, in order, from the recipe to the claims table.
//!
//! recipe → documents → tokenizers → token shards → arbiter pre-flight → training → evaluation →
//! figures and claims. Each stage names everything that can change its outputs; when none of it
//! changed, the stage is skipped. Artifacts are compared by content, so deleting one redoes the
//! stage that makes it, and the stages after it only if the new content differs.

mod choice;
mod error;
mod evaluate;
mod export;
mod kept;
mod measure;
mod record;
mod redraw;
mod report;
mod results;
mod stream;
mod study;
mod study_consequence;
mod study_release;
mod study_text;
mod text;
mod text_make;
mod text_sample;
mod train;

pub use error::PipelineError;
pub use export::Exported;
pub use kept::{check_kept, keep};
pub use record::record;
pub use redraw::{Drawn, check_drawn, redraw, redraw_into};
pub use report::stored_claims;
pub(crate) use results::shares;
pub use study::{StudyOptions, draw_study, load_study, study};
pub use study_consequence::{ConsequenceOptions, consequence};
pub use study_release::{ReleaseOptions, release, release_card};
pub use text::{Measurement, TokenBalance};
pub(crate) use text::{corpus_table, token_balance};
pub use train::Trained;

use crate::artifact::{Hash, Made, RunDir, Stage, hash_bytes, hash_file, read, write_atomic};
use crate::corpus::source::{Manifest, Store};
use crate::recipe::Recipe;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Columns of a terminal that the tables are laid out for.
const WIDTH: usize = 118;

/// Where a run happens and what it may reuse.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The run directory; `runs/<recipe name>` when not given.
    pub run_dir: Option<PathBuf>,
    /// A folder of raw files that is looked in before anything is downloaded.
    pub mirror: Option<PathBuf>,
    /// Redo every stage.
    pub force: bool,
    /// Train on a GPU.
    pub gpu: Option<Gpu>,
}

/// A GPU to train on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu {
    /// Its number, from 0.
    pub number: usize,
    /// Whether the processor will do where it cannot be used.
    pub or_cpu: bool,
}

/// A run in progress: its recipe, its manifest and its directory, held for this process.
pub struct Pipeline {
    recipe: Recipe,
    manifest: Manifest,
    store: Store,
    dir: RunDir,
    force: bool,
    /// The number of the GPU that trains.
    gpu: Option<usize>,
    /// What each stage did, in order.
    log: Vec<(String, Made)>,
}

impl Pipeline {
    /// Opens the run directory of `recipe` and writes the resolved recipe into it. What of the recipe does not hold
    /// for text that is streamed is said on standard error.
    ///
    /// # Errors
    /// When the manifest is wrong, the directory cannot be held or written, or it holds checkpoints of
    /// another recipe (nothing is written then).
    pub fn open(recipe: Recipe, options: &Options) -> Result<Self, PipelineError> {
        let manifest = Manifest::load(&recipe.corpus.manifest)?;
        if manifest.is_streamed() {
            stream::check(&recipe)?;
        }
        let gpu = options.gpu.map(train::usable).transpose()?.flatten();
        let root = options.run_dir.clone().unwrap_or_else(|| Path::new("runs").join(&recipe.name));
        let dir = RunDir::open(&root, options.force)?;
        if !options.force {
            refuse_other_recipe(&recipe, dir.root())?;
        }
        write_atomic(&dir.path("recipe.toml"), recipe.to_toml().as_bytes())?;
        let store = Store::new(options.mirror.clone(), default_cache());
        Ok(Pipeline { recipe, manifest, store, dir, force: options.force, gpu, log: Vec::new() })
    }

    /// Every stage in order, ending with the claims table as text.
    ///
    /// # Errors
    /// The first stage's error; what earlier stages made stays.
    pub fn reproduce(&mut self) -> Result<String, PipelineError> {
        self.figures()?;
        self.claims()
    }

    /// The run directory.
    pub fn root(&self) -> &Path {
        self.dir.root()
    }

    /// What each stage did so far, in order.
    pub fn log(&self) -> &[(String, Made)] {
        &self.log
    }

    /// Runs one stage if it is due and notes what happened; later calls in the same run only ask once.
    fn stage(
        &mut self,
        name: &str,
        inputs: BTreeMap<String, Hash>,
        outputs: &[String],
        make: impl FnOnce(&Context) -> Result<(), PipelineError>,
    ) -> Result<Made, PipelineError> {
        if let Some((_, made)) = self.log.iter().find(|(done, _)| done == name) {
            return Ok(*made);
        }
        let stage = Stage { name, inputs, outputs: outputs.to_vec() };
        let context = Context { recipe: &self.recipe, manifest: &self.manifest, store: &self.store };
        let made = self.dir.stage(&stage, |_| make(&context))?;
        self.log.push((name.to_owned(), made));
        Ok(made)
    }

    /// The hash of an artifact that an earlier stage made.
    fn input(&self, artifact: &str) -> Result<(String, Hash), PipelineError> {
        let hash = match self.dir.recorded(artifact) {
            Some(hash) => hash,
            None => hash_file(&self.dir.path(artifact))?,
        };
        Ok((artifact.to_owned(), hash))
    }
}

/// Days of training may lie in a run directory: another recipe must not go over them unasked.
fn refuse_other_recipe(new: &Recipe, root: &Path) -> Result<(), PipelineError> {
    let path = root.join("recipe.toml");
    if !path.exists() || !root.join("checkpoints").exists() {
        return Ok(());
    }
    let old = Recipe::from_file(&path)?;
    let parts = [
        ("corpus", old.corpus != new.corpus),
        ("tokenizer", old.tokenizer != new.tokenizer),
        ("mix", old.mix != new.mix),
        ("model", old.model != new.model),
        ("train", old.train != new.train),
        ("seed", old.seed != new.seed),
    ];
    let changed: Vec<&str> = parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect();
    if changed.is_empty() {
        return Ok(());
    }
    Err(PipelineError::OtherRecipe { directory: root.to_path_buf(), changed })
}

/// What a stage may look at beside its input artifacts.
struct Context<'a> {
    recipe: &'a Recipe,
    manifest: &'a Manifest,
    store: &'a Store,
}

/// The hash of a part of the recipe, or of anything else that is plain data.
fn part(name: &str, value: &impl Serialize) -> (String, Hash) {
    let text = serde_json::to_vec(value).unwrap_or_else(|e| unreachable!("{name} is plain data: {e}"));
    (name.to_owned(), hash_bytes(&text))
}

/// The hash of the program's source: another program may make something else of the same inputs.
fn program() -> (String, Hash) {
    ("program".to_owned(), hash_bytes(env!("SHIKHA_SOURCE").as_bytes()))
}

/// Writes `value` as indented JSON with a final newline.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), PipelineError> {
    let mut text =
        serde_json::to_vec_pretty(value).map_err(|source| PipelineError::Json { path: path.to_path_buf(), source })?;
    text.push(b'\n');
    Ok(write_atomic(path, &text)?)
}

/// Reads what [`write_json`] wrote.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, PipelineError> {
    let text = read(path)?;
    serde_json::from_slice(&text).map_err(|source| PipelineError::Json { path: path.to_path_buf(), source })
}

/// Downloaded raw files are shared by all runs.
fn default_cache() -> PathBuf {
    PathBuf::from("data")
}
