//! The training stage, and loading what it made.

use super::text::{TOKENIZER, shard_input, shard_path};
use super::{Context, Gpu, Pipeline, PipelineError, part, program, stream};
use crate::artifact::{Hash, hash_file};
use crate::corpus::loader::{Batch, Batches, Loader, validation_windows};
use crate::corpus::shard::Shard;
use crate::machine::Hardware;
use crate::model::{Config, Parameters};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::tokenizer::Tokenizer;
use crate::train::{
    Checkpoint, Identity, Interrupt, MakeEngine, Outcome, Setup, Start, Summary, TrainError, checkpoint_dir, processor,
    read_metrics, sit_down, stand_up, train_on,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

pub(super) const METRICS: &str = "metrics.jsonl";
const ARBITER: &str = "arbiter.json";

/// Windows of held-out text per language that are looked at in training.
const VALIDATION_WINDOWS: usize = 32;

/// A finished run, loaded.
pub struct Trained {
    /// The recipe it was made from.
    pub recipe: Recipe,
    /// Its tokenizer.
    pub tokenizer: Tokenizer,
    /// The model's shape.
    pub config: Config,
    /// The weights of the last step.
    pub parameters: Parameters<f32>,
}

impl Trained {
    /// Loads a finished run from its directory.
    ///
    /// # Errors
    /// When a part is missing or they do not belong together.
    pub fn load(directory: &Path) -> Result<Self, PipelineError> {
        let recipe = Recipe::from_file(&directory.join("recipe.toml"))?;
        let tokenizer = Tokenizer::load(&directory.join(TOKENIZER))?;
        let config = config(&recipe, &tokenizer)?;
        let step = recipe.train.steps;
        let Checkpoint { state, parameters, .. } = Checkpoint::load(directory, step, &config)?;
        if state.made_from.get(TOKENIZER) != Some(&hash_file(&directory.join(TOKENIZER))?) {
            let problem = format!("was trained with another {TOKENIZER}; restore that file, or run the stages again");
            return Err(TrainError::Checkpoint { path: checkpoint_dir(directory, step), problem }.into());
        }
        Ok(Trained { recipe, tokenizer, config, parameters })
    }
}

fn config(recipe: &Recipe, tokenizer: &Tokenizer) -> Result<Config, PipelineError> {
    Ok(Config::from_recipe(&recipe.model, tokenizer.vocabulary_size(), tokenizer.end_of_text())?)
}

/// Path of a file of the last checkpoint, relative to the run directory.
pub(super) fn last_checkpoint(recipe: &Recipe, file: &str) -> String {
    checkpoint_dir(Path::new(""), recipe.train.steps).join(file).to_string_lossy().into_owned()
}

impl Pipeline {
    /// Trains the model, from the last checkpoint where there is one.
    ///
    /// # Errors
    /// When a gradient is missing before the first step, the data is damaged, or the run was asked to
    /// stop (everything is saved then).
    pub fn train(&mut self) -> Result<String, PipelineError> {
        let start = if self.force { Start::Over } else { Start::Continue };
        self.train_from(start)
    }

    /// Goes on with a run that was stopped.
    ///
    /// # Errors
    /// As [`Pipeline::train`], and when there is no checkpoint.
    pub fn resume(&mut self) -> Result<String, PipelineError> {
        self.train_from(Start::Resume)
    }

    fn train_from(&mut self, start: Start) -> Result<String, PipelineError> {
        if self.manifest.is_streamed() {
            self.tokenizers()?;
        } else {
            self.shards()?;
        }
        let identity = self.identity()?;
        let mut inputs = identity.clone();
        inputs.extend([program()]);
        let mut outputs = vec![METRICS.to_owned(), ARBITER.to_owned()];
        let files = ["model.safetensors", "optimizer.safetensors", "state.json"];
        outputs.extend(files.map(|file| last_checkpoint(&self.recipe, file)));
        let root = self.root().to_path_buf();
        let gpu = self.gpu;
        self.stage("train", inputs, &outputs, |context| match gpu {
            Some(number) => run(context, &root, &identity, start, hardware(number)?, &on_gpu(number)),
            None => run(context, &root, &identity, start, Hardware::here(None), &processor),
        })?;
        let rows = read_metrics(&root.join(METRICS))?;
        let parameters = Trained::load(&root)?.parameters.flat.len();
        Ok(describe(&Summary::of(&rows, parameters as u64)))
    }

    /// Hashes of everything that decides the weights, named as a user would. The program is no part of
    /// it: a run of days may go on under a newer one; --force trains again.
    fn identity(&self) -> Result<Identity, PipelineError> {
        let recipe = &self.recipe;
        let mut identity = BTreeMap::from([
            part("recipe.train", &recipe.train),
            part("recipe.model", &recipe.model),
            part("recipe.mix", &recipe.mix),
            part("seed", &recipe.seed),
            self.input(TOKENIZER)?,
        ]);
        if self.gpu.is_some() {
            identity.extend([part("kind of machine", &"GPU")]);
        }
        if self.manifest.is_streamed() {
            identity.extend(self.stream_inputs()?);
            return Ok(identity);
        }
        for language in recipe.mix.keys() {
            identity.extend([shard_input(self, "train", language)?, shard_input(self, "held_out", language)?]);
        }
        Ok(identity)
    }
}

/// The number of a GPU that can be used; none where the processor is to stand in for it, which is said.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn usable(gpu: Gpu) -> Result<Option<usize>, PipelineError> {
    match opened(gpu.number) {
        Ok(()) => Ok(Some(gpu.number)),
        Err(error) if gpu.or_cpu => {
            eprintln!("warning: {error}; training on the processor");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(feature = "cuda")]
fn opened(number: usize) -> Result<(), TrainError> {
    use crate::ops::cuda::Device;
    Device::open(number).map(drop).map_err(|error| TrainError::Device(error.to_string()))
}

#[cfg(not(feature = "cuda"))]
fn opened(_: usize) -> Result<(), TrainError> {
    Err(TrainError::NoCuda)
}

/// This machine with a GPU of it.
#[cfg(feature = "cuda")]
fn hardware(number: usize) -> Result<Hardware, TrainError> {
    use crate::ops::cuda::Device;
    let info = Device::open(number).and_then(|device| device.info());
    Ok(Hardware::here(Some(info.map_err(|error| TrainError::Device(error.to_string()))?)))
}

#[cfg(not(feature = "cuda"))]
fn hardware(_: usize) -> Result<Hardware, TrainError> {
    Err(TrainError::NoCuda)
}

/// Side of the matrix products that a GPU's peak is measured with.
#[cfg(feature = "cuda")]
const SIDE: usize = 8192;

/// The engine on a GPU.
#[cfg(feature = "cuda")]
fn on_gpu(number: usize) -> Box<MakeEngine<'static>> {
    use crate::ops::cuda::Device;
    use crate::train::{device, measured_peak};
    Box::new(move |config, recipe, at| {
        let open = || Device::open(number).map_err(|error| TrainError::Device(error.to_string()));
        let peak = measured_peak(&mut open()?, recipe.precision, SIDE)?;
        device(open()?, peak, config, recipe, at)
    })
}

#[cfg(not(feature = "cuda"))]
fn on_gpu(_: usize) -> Box<MakeEngine<'static>> {
    Box::new(|_, _, _| Err(TrainError::NoCuda))
}

fn run(
    context: &Context,
    root: &Path,
    identity: &Identity,
    start: Start,
    hardware: Hardware,
    engine: &MakeEngine,
) -> Result<(), PipelineError> {
    let recipe = context.recipe;
    let tokenizer = Tokenizer::load(&root.join(TOKENIZER))?;
    let hash = tokenizer.hash()?;
    let config = config(recipe, &tokenizer)?;
    let (data, validation): (Box<dyn Batches>, _) = if context.manifest.is_streamed() {
        let (data, validation) = stream::data(context, root, &tokenizer, VALIDATION_WINDOWS)?;
        (Box::new(data), validation)
    } else {
        (Box::new(loader(recipe, root, hash)?), validation(recipe, root, hash)?)
    };
    let setup = Setup {
        recipe: &recipe.train,
        config: &config,
        seed: recipe.seed,
        data: data.as_ref(),
        validation: &validation,
        directory: root,
        made_from: identity,
    };
    sit_down(root, hardware, start == Start::Over)?;
    let began = Instant::now();
    let mut progress = Progress::new("train", recipe.train.steps, "steps");
    let interrupt = Interrupt::from_signals();
    let outcome = train_on(engine, &setup, start, &interrupt, &mut progress);
    interrupt.disarm();
    let noted = stand_up(root, began.elapsed().as_secs_f64());
    // Why training stopped is told before why that could not be noted.
    let outcome = outcome?;
    noted?;
    match outcome {
        Outcome::Finished => {
            progress.finish(&format!("{} steps", recipe.train.steps));
            Ok(())
        }
        Outcome::Interrupted(step) => Err(PipelineError::Interrupted { step, run_dir: root.display().to_string() }),
    }
}

fn loader(recipe: &Recipe, root: &Path, hash: Hash) -> Result<Loader, PipelineError> {
    let mut shards = Vec::new();
    for language in recipe.mix.keys() {
        shards.push((language.clone(), Shard::open(&root.join(shard_path("train", language)), hash)?));
    }
    Ok(Loader::new(shards, &recipe.mix, recipe.train.batch, recipe.model.context, recipe.seed)?)
}

fn validation(recipe: &Recipe, root: &Path, hash: Hash) -> Result<BTreeMap<String, Vec<Batch>>, PipelineError> {
    let mut validation = BTreeMap::new();
    for language in recipe.mix.keys() {
        let shard = Shard::open(&root.join(shard_path("held_out", language)), hash)?;
        let (batch, context) = (recipe.train.batch, recipe.model.context);
        let windows = validation_windows(language, &shard, batch, context, VALIDATION_WINDOWS)?;
        validation.insert(language.clone(), windows);
    }
    Ok(validation)
}

fn describe(summary: &Summary) -> String {
    let losses: Vec<String> = summary
        .validation
        .iter()
        .map(|(language, loss)| format!("{language} {:.3}", loss.unwrap_or(f64::NAN)))
        .collect();
    let memory =
        summary.memory_bytes.map_or("not measured".to_owned(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6));
    format!(
        "{} parameters, {} steps, {} tokens in {:.1} s\n{:.0} tokens/s, {:.0} % of the matrix-product peak, peak memory {memory}, the monitor took {:.3} % of the time\nvalidation, nats per token: {}\n",
        summary.parameters,
        summary.steps,
        summary.tokens,
        summary.seconds,
        summary.tokens_per_second,
        100.0 * summary.gemm_peak_share,
        100.0 * summary.monitor_share,
        losses.join(", "),
    )
}
