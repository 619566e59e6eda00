//! The loop: gradients of a step's batches, one AdamW step, metrics, validation, checkpoints.

use super::checkpoint::{self, Checkpoint, Identity, State};
use super::engine::{Engine, MakeEngine, processor};
use super::metrics::{self, Machine, MetricsFile, Row};
use super::spike::Losses;
use super::{Interrupt, TrainError, learning_rate, peak_memory};
use crate::arbiter::Numbers;
use crate::arbiter::monitor::{self, Monitor};
use crate::corpus::CorpusError;
use crate::corpus::loader::{Batch, Batches};
use crate::machine::clock;
use crate::model::{Config, LossSum, Parameters, initialise};
use crate::progress::Progress;
use crate::recipe::TrainRecipe;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Steps in a row that may be skipped for a loss or gradient that is not finite, or for a loss that jumped.
const SKIPS: u32 = 5;

/// Everything a training run is made from.
pub struct Setup<'a> {
    /// Steps, rates and intervals.
    pub recipe: &'a TrainRecipe,
    /// The model's shape.
    pub config: &'a Config,
    /// Seed of the initialisation.
    pub seed: u64,
    /// Training batches.
    pub data: &'a dyn Batches,
    /// Fixed validation batches by language.
    pub validation: &'a BTreeMap<String, Vec<Batch>>,
    /// The run directory.
    pub directory: &'a Path,
    /// Hashes of what the run is made from.
    pub made_from: &'a Identity,
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// From the newest whole checkpoint, or from the seed when there is none.
    Continue,
    /// From the newest whole checkpoint; an error when there is none.
    Resume,
    /// From the seed; earlier checkpoints are removed.
    Over,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All steps are done.
    Finished,
    /// Stopped after this step as asked; everything is saved.
    Interrupted(u64),
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Parameters of the model.
    pub parameters: u64,
    /// Steps done.
    pub steps: u64,
    /// Training tokens seen.
    pub tokens: u64,
    /// Steps left out because of a loss or gradient that was not finite, or of a spike.
    pub skipped: u64,
    /// Validation loss at the last step, nats per token, by language; null when not finite.
    pub validation: BTreeMap<String, Option<f64>>,
    /// Seconds in steps, over all sittings.
    pub seconds: f64,
    /// Training tokens a second.
    pub tokens_per_second: f64,
    /// Share of the machine's matrix-product peak.
    pub gemm_peak_share: f64,
    /// Share of the time that the arbiter's monitor took.
    #[serde(default)]
    pub monitor_share: f64,
    /// Peak resident memory in bytes, where the system tells.
    pub memory_bytes: Option<u64>,
}

impl Summary {
    /// The summary of a finished run's metrics.
    pub fn of(rows: &[Row], parameters: u64) -> Self {
        let seconds: f64 = rows.iter().map(|row| row.machine.seconds).sum();
        let mean = |f: fn(&Machine) -> f64| {
            rows.iter().map(|r| f(&r.machine) * r.machine.seconds).sum::<f64>() / seconds.max(f64::MIN_POSITIVE)
        };
        Summary {
            parameters,
            steps: rows.len() as u64,
            tokens: rows.last().map_or(0, |row| row.tokens),
            skipped: rows.iter().filter(|row| row.skipped).count() as u64,
            validation: rows
                .iter()
                .rev()
                .find(|r| !r.validation.is_empty())
                .map(|r| r.validation.clone())
                .unwrap_or_default(),
            seconds,
            tokens_per_second: mean(|m| m.tokens_per_second),
            gemm_peak_share: mean(|m| m.gemm_peak_share),
            monitor_share: rows.iter().map(|row| row.machine.monitor_seconds).sum::<f64>()
                / seconds.max(f64::MIN_POSITIVE),
            memory_bytes: rows.iter().filter_map(|row| row.machine.memory_bytes).max(),
        }
    }
}

/// A run between two steps.
struct Run<'a> {
    setup: &'a Setup<'a>,
    engine: Box<dyn Engine>,
    at: Checkpoint,
    metrics: MetricsFile,
    monitor: Monitor,
    losses: Losses,
}

/// Trains on the processor until the recipe's last step or until `interrupt` is raised.
///
/// Before the first step the arbiter looks at every gradient and its verdict is written to
/// `arbiter.json`. A step whose loss or gradient is not finite, or whose loss lies more than 2 nats and 6
/// standard deviations above the last 32, is left out and recorded; the run stops after five in a row.
///
/// # Errors
/// [`TrainError`]; the last checkpoint is unharmed then.
pub fn train(
    setup: &Setup,
    start: Start,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<Outcome, TrainError> {
    train_on(&processor, setup, start, interrupt, progress)
}

/// As [`train`], on the machine that `make` gives.
///
/// # Errors
/// As [`train`], and the machine's.
pub fn train_on(
    make: &MakeEngine,
    setup: &Setup,
    start: Start,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<Outcome, TrainError> {
    let mut run = Run::open(make, setup, start)?;
    let first = run.at.state.step;
    while run.at.state.step < setup.recipe.steps {
        let row = match run.step() {
            // The text broke off, not the run: what was done is not lost.
            Err(error @ TrainError::Corpus(_)) if run.at.state.step > first => {
                run.save()?;
                return Err(error);
            }
            done => done?,
        };
        progress.set(row.step, &message(&row));
        let stop = interrupt.is_raised();
        if stop || run.saves_at(row.step) {
            run.save()?;
        }
        if stop && row.step < setup.recipe.steps {
            return Ok(Outcome::Interrupted(row.step));
        }
    }
    if first == setup.recipe.steps {
        run.metrics.sync()?; // nothing was left to do
    }
    Ok(Outcome::Finished)
}

fn message(row: &Row) -> String {
    let mut loss = row.loss.map_or("not finite".to_owned(), |loss| format!("{loss:.3}"));
    if row.skipped {
        loss += " (step skipped)";
    }
    let Machine { tokens_per_second, gemm_peak_share, .. } = row.machine;
    format!("loss {loss}, {tokens_per_second:.0} tokens/s, {:.0} % of peak", 100.0 * gemm_peak_share)
}

impl<'a> Run<'a> {
    fn open(make: &MakeEngine, setup: &'a Setup<'a>, start: Start) -> Result<Self, TrainError> {
        let path = setup.directory.join(checkpoint::METRICS);
        if start == Start::Over {
            checkpoint::clear(setup.directory)?;
        }
        let (found, rejected) = checkpoint::latest(setup.directory, setup.config, setup.made_from)?;
        for reason in &rejected {
            eprintln!("warning: passing over {reason}");
        }
        let at = match found {
            Some(checkpoint) => checkpoint,
            None if start == Start::Resume => {
                return Err(TrainError::NothingToResume { directory: setup.directory.to_path_buf(), rejected });
            }
            None if rejected.is_empty() => begin(setup),
            None => return Err(TrainError::NothingUsable { directory: setup.directory.to_path_buf(), rejected }),
        };
        checkpoint::remove_after(setup.directory, at.state.step)?;
        for name in checkpoint::restore_companions(setup.directory, &at.state)? {
            eprintln!("warning: {name} was altered or lost; restored from the checkpoint of step {}", at.state.step);
        }
        let arbiter = setup.directory.join(checkpoint::ARBITER);
        let mut engine = make(setup.config, setup.recipe, &at)?;
        if at.state.step == 0 || !arbiter.exists() {
            let verdict = engine.verdict(&at, &setup.data.batch(0)?)?;
            super::preflight::require(&verdict, &arbiter)?;
        }
        let metrics = MetricsFile::cut(&path, at.state.step)?;
        let losses = Losses::of(&metrics::rows_until(&path, at.state.step)?);
        let names = at.parameters.tensors().iter().map(|tensor| tensor.name.clone()).collect();
        let monitor = Monitor::new(names, monitor::EVERY);
        Ok(Run { setup, engine, at, metrics, monitor, losses })
    }

    /// One step, its row written.
    fn step(&mut self) -> Result<Row, TrainError> {
        let started = Instant::now();
        let (loss, norm) = self.engine.accumulate(&self.at, &self.batches()?)?;
        let recipe = self.setup.recipe;
        let state = &mut self.at.state;
        state.step += 1;
        state.tokens += recipe.accumulate as u64 * (recipe.batch * self.setup.config.max_position_embeddings) as u64;
        let rate = learning_rate(recipe, state.step);
        let finite = loss.nats.is_finite() && norm.is_finite() && loss.tokens > 0;
        let spike = if finite { self.losses.spike(loss.mean()) } else { None };
        let is_taken = finite && spike.is_none();
        if is_taken {
            self.watch()?;
            self.losses.take(loss.mean());
            self.at.state.updates += 1;
            self.engine.update(&mut self.at, rate, norm)?;
        }
        let state = &mut self.at.state;
        state.validation = None;
        state.skipped_in_a_row = if is_taken { 0 } else { state.skipped_in_a_row + 1 };
        let seconds = started.elapsed().as_secs_f64();
        let mut row = Row {
            step: state.step,
            tokens: state.tokens,
            loss: Some(loss.mean()).filter(|x| x.is_finite()),
            gradient_norm: Some(norm).filter(|x| x.is_finite()),
            learning_rate: rate,
            skipped: !is_taken,
            validation: BTreeMap::new(),
            machine: self.machine(seconds),
        };
        if self.validates_at(row.step) {
            row.validation = self.validate()?;
            let losses = row.validation.values();
            let total: Option<f64> = losses.copied().sum();
            self.at.state.validation = total.map(|sum| sum / row.validation.len().max(1) as f64);
        }
        self.metrics.append(&row)?;
        if self.at.state.skipped_in_a_row >= SKIPS {
            let (step, count) = (row.step, SKIPS);
            return Err(match spike {
                Some(usual) => TrainError::Spike { step, count, loss: loss.mean(), usual },
                None => TrainError::NotFinite { step, count },
            });
        }
        Ok(row)
    }

    /// The batches of the next step.
    fn batches(&self) -> Result<Vec<Batch>, CorpusError> {
        let count = self.setup.recipe.accumulate as u64;
        let first = self.at.state.step * count;
        (first..first + count).map(|n| self.setup.data.batch(n)).collect()
    }

    /// The arbiter's look at the gradients, when one is due.
    fn watch(&mut self) -> Result<(), TrainError> {
        let step = self.at.state.step;
        if self.monitor.is_due(step) {
            let gradients = self.engine.gradients()?;
            let tensors = gradients.tensors();
            self.monitor.look(step, |i| Some(Numbers::F32(gradients.values(&tensors[i]))))?;
        }
        Ok(())
    }

    fn validate(&mut self) -> Result<BTreeMap<String, Option<f64>>, TrainError> {
        let mut losses = BTreeMap::new();
        for (language, batches) in self.setup.validation {
            let mut total = LossSum::default();
            for batch in batches {
                let loss = self.engine.loss(&self.at, batch)?;
                total = LossSum { nats: total.nats + loss.nats, tokens: total.tokens + loss.tokens };
            }
            losses.insert(language.clone(), Some(total.mean()).filter(|loss| loss.is_finite()));
        }
        Ok(losses)
    }

    fn machine(&mut self, seconds: f64) -> Machine {
        let recipe = self.setup.recipe;
        let tokens = (recipe.accumulate * recipe.batch * self.setup.config.max_position_embeddings) as f64;
        let tokens_per_second = tokens / seconds;
        let gemm_peak_share = tokens_per_second * self.setup.config.train_flops_per_token() / self.engine.peak();
        Machine {
            seconds,
            tokens_per_second,
            gemm_peak_share,
            monitor_seconds: self.monitor.take_seconds(),
            memory_bytes: peak_memory(),
            clock: Some(clock()),
        }
    }

    fn is_last(&self, step: u64) -> bool {
        step == self.setup.recipe.steps
    }

    fn saves_at(&self, step: u64) -> bool {
        step.is_multiple_of(self.setup.recipe.checkpoint_every) || self.is_last(step)
    }

    fn validates_at(&self, step: u64) -> bool {
        step.is_multiple_of(self.setup.recipe.validate_every) || self.saves_at(step)
    }

    /// The metrics reach the disk before the checkpoint that counts on them.
    fn save(&mut self) -> Result<(), TrainError> {
        self.engine.collect(&mut self.at)?;
        let parts = [&self.at.parameters, &self.at.first, &self.at.second];
        if !parts.iter().all(|part| part.flat.iter().all(|x| x.is_finite())) {
            return Err(TrainError::Diverged { step: self.at.state.step });
        }
        self.metrics.sync()?;
        self.at.state.metrics =
            metrics::hash_until(&self.setup.directory.join(checkpoint::METRICS), self.at.state.step)?;
        self.at.save(self.setup.directory)?;
        checkpoint::thin_out(self.setup.directory, self.setup.recipe.keep_last)
    }
}

/// The state before the first step.
fn begin(setup: &Setup) -> Checkpoint {
    let parameters: Parameters<f32> = initialise(setup.config, setup.seed);
    let (first, second) = (parameters.zeros_like(), parameters.zeros_like());
    let state = State {
        format: checkpoint::FORMAT,
        step: 0,
        tokens: 0,
        updates: 0,
        skipped_in_a_row: 0,
        validation: None,
        metrics: metrics::deterministic_hash(&[]),
        made_from: setup.made_from.clone(),
        files: BTreeMap::new(),
    };
    Checkpoint { state, parameters, first, second }
}
