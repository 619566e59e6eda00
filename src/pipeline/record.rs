//! A whole run as one record: what machines it sat on, what it took and what came out.

use super::evaluate::EVAL;
use super::train::{METRICS, last_checkpoint};
use super::{PipelineError, Trained, read_json};
use crate::artifact::hash_file;
use crate::eval::EvalReport;
use crate::recipe::Recipe;
use crate::statistics::Interval;
use crate::train::record::{FORMAT, HeldOut, Price, Record, Run};
use crate::train::{Sitting, Summary, deterministic_hash, read_metrics, sittings};
use std::path::Path;

/// The record of the finished run in `directory`. The machine is that of its last sitting.
///
/// # Errors
/// When the run is not finished, a file of it is missing or does not parse, or its machine was not noted.
pub fn record(directory: &Path, price: Option<Price>) -> Result<Record, PipelineError> {
    let recipe = Recipe::from_file(&directory.join("recipe.toml"))?;
    let rows = read_metrics(&directory.join(METRICS))?;
    let (done, steps) = (rows.last().map_or(0, |row| row.step), recipe.train.steps);
    if done < steps {
        return Err(PipelineError::Unfinished { directory: directory.to_path_buf(), done, steps });
    }
    let sittings = sittings(directory)?;
    let last = sittings.last().ok_or_else(|| PipelineError::NoSittings { directory: directory.to_path_buf() })?;
    let (date, source, hardware) = (last.date.clone(), last.source, last.hardware.clone());
    let log = sittings.iter().map(line).collect();
    let trained = Trained::load(directory)?;
    let evaluation = directory.join(EVAL);
    let run = Run {
        recipe: recipe.to_toml(),
        name: recipe.name.clone(),
        summary: Summary::of(&rows, trained.parameters.flat.len() as u64),
        flops_per_token: trained.config.train_flops_per_token(),
        sittings,
        verdict: read_json(&directory.join("arbiter.json"))?,
        held_out: if evaluation.exists() { held_out(&read_json(&evaluation)?) } else { Vec::new() },
        rows: Run::thinned(&rows),
        metrics: deterministic_hash(&rows),
        weights: hash_file(&directory.join(last_checkpoint(&recipe, "model.safetensors")))?,
    };
    Ok(Record { format: FORMAT, date, source, hardware, price, checked: None, timed: None, run: Some(run), log })
}

fn line(sitting: &Sitting) -> String {
    let Sitting { date, source, hardware, seconds, step, .. } = sitting;
    let took = seconds.map_or("for a time that was not noted".to_owned(), |seconds| format!("{seconds:.0} s"));
    let reached = step.map_or("killed before its first step".to_owned(), |step| format!("up to step {step}"));
    format!("{date}, program {}, {}: {took}, {reached}", source.short(), hardware.name())
}

/// Losses per token of every model, over all documents of each language.
fn held_out(report: &EvalReport) -> Vec<HeldOut> {
    let mut losses = Vec::new();
    for group in report.groups.iter().filter(|group| group.domain == "all") {
        for (model, found) in &group.models {
            let Interval { value, low, high } = found.per_token;
            losses.push(HeldOut {
                language: group.language.clone(),
                model: model.clone(),
                tokens: group.tokens,
                nats_per_token: [value, low, high],
            });
        }
    }
    losses
}
