//! Every measured number that the report's prose says, by name, as the text a reader sees. The prose holds no digit
//! of a result itself.

use super::claims::number;
use super::consequence::Consequence;
use super::release::SET;
use super::{Ledger, Measurements, ReportError, speed, streaming};
use crate::arbiter::faults::{Kind, Score};
use crate::corpus::balance::LanguageBalance;
use crate::defects::meter::{Efficiency, Speed};
use crate::defects::{Matrix, Outcomes};
use crate::eval::choice::ChoiceReport;
use crate::eval::{EvalReport, MODELS};
use crate::statistics::{Interval, wilson};
use crate::tokenizer::study::{Release, Study};
use crate::train::Summary;
use std::collections::BTreeMap;

/// Names and texts, ordered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers(pub BTreeMap<String, String>);

impl Numbers {
    fn put(&mut self, name: impl Into<String>, text: impl ToString) {
        self.0.insert(name.into(), text.to_string());
    }

    /// `reported.<claim>` and `reference.<claim>`, with units; `reference.scale`.
    pub fn claims(&mut self, ledger: &Ledger, reference: &Measurements) {
        for claim in &ledger.claims {
            self.put(format!("reported.{}", claim.id), claim.reported());
            self.put(format!("reference.{}", claim.id), claim.measured(reference));
        }
        self.put("reference.scale", &reference.scale);
        self.put("reference.run", &reference.run);
    }

    /// `training.…`: the size, length and speed of the reference run.
    pub fn training(&mut self, summary: &Summary, seed: u64) {
        self.put("training.steps", summary.steps);
        self.put("training.tokens", number(summary.tokens as f64));
        self.put("training.seed", seed);
        self.put("training.minutes", format!("{:.0}", summary.seconds / 60.0));
        self.put("training.tokens-per-second", format!("{:.0}", summary.tokens_per_second));
        self.put("training.peak-share", format!("{:.0} %", 100.0 * summary.gemm_peak_share));
        let memory = summary.memory_bytes.map_or("not measured".to_owned(), |b| format!("{:.2} GB", b as f64 / 1e9));
        self.put("training.memory", memory);
    }

    /// `eval.<language>.<model>`: nats per character with its interval; the gains, paired by document.
    pub fn evaluation(&mut self, report: &EvalReport) {
        for group in report.groups.iter().filter(|g| g.domain == "all") {
            let name = |what: &str| format!("eval.{}.{what}", group.language);
            for model in MODELS {
                if let Some(losses) = group.models.get(model) {
                    self.put(name(model), spread(losses.per_character));
                    self.put(format!("{}.per-token", name(model)), spread(losses.per_token));
                }
            }
            self.put(name("documents"), group.documents);
            self.put(name("gain-over-twin"), spread(group.gain_per_character));
            self.put(name("gain-over-5-gram"), spread(group.gain_over_ngram_per_character));
        }
        for row in &report.memorisation {
            self.put(format!("eval.{}.training-text", row.language), spread(row.training.per_character));
            self.put(format!("eval.{}.memorisation-gap", row.language), spread(row.gap_per_character));
        }
        self.put("eval.chance", format!("{:.2}", report.chance));
        self.put("eval.vocabulary", report.vocabulary);
        self.put("eval.resamples", report.resamples);
        self.put("eval.twin-from-chance", format!("{:.3}", (report.twin_per_token() - report.chance).abs()));
    }

    /// `choice.…`: tasks, questions, how many are at chance by which test.
    pub fn choice(&mut self, report: &ChoiceReport) {
        let count =
            |test: &dyn Fn(&crate::eval::choice::TaskReport) -> bool| report.tasks.iter().filter(|t| test(t)).count();
        self.put("choice.tasks", report.tasks.len());
        self.put("choice.questions", report.tasks.iter().map(|t| t.items).sum::<usize>());
        self.put("choice.limit", report.limit);
        self.put("choice.at-chance", count(&|t| t.by_character.gold.at_chance));
        self.put("choice.at-chance-by-sum", count(&|t| t.by_sum.gold.at_chance));
        self.put("choice.control-at-chance", count(&|t| t.by_character.drawn.at_chance && t.by_sum.drawn.at_chance));
        self.put("choice.window", report.window);
        let dropped = report.dropped_documents.map_or("not measured".to_owned(), |count| count.to_string());
        self.put("choice.dropped", dropped);
    }

    /// `corpus.<language>.…`: the training text.
    pub fn corpus(&mut self, languages: &[LanguageBalance]) {
        for language in languages {
            let name = |what: &str| format!("corpus.{}.{what}", language.language);
            self.put(name("characters"), number(language.characters as f64));
            self.put(name("documents"), language.documents);
        }
    }

    /// `study.…`: the fertility study.
    pub fn study(&mut self, study: &Study) {
        self.put("study.tokenizers", study.measured());
        self.put("study.known", study.known.iter().filter(|k| k.vocabulary.is_some()).count());
        self.put("study.languages", study.cause.languages.len());
        self.put("study.vocabulary", study.cause.vocabulary);
        self.put("study.correlation", spread(study.cause.correlation));
        self.put("study.correlation-with-marks", spread(study.cause.correlation_with_marks));
        for row in study.trained.iter().filter(|row| row.model != "Unigram" && row.nfc) {
            let model = if row.model == "BPE" { "" } else { "superwords." };
            for found in row.measured.iter().filter(|m| m.texts == "par-ntrex") {
                let text = row.text.replace(' ', "-");
                let name = format!("study.{model}{text}.{}.{}.{}", row.pre_tokenizer, row.asked, found.language);
                self.put(format!("{name}.characters"), spread(found.fertility.characters_per_token));
                self.put(format!("{name}.tokens-per-word"), spread(found.fertility.tokens_per_word));
            }
        }
    }

    /// `consequence.<tokenizer>.<language>`: nats per character of small models, and minus the base's.
    pub fn consequence(&mut self, models: &Consequence) {
        for arm in &models.arms {
            let tokenizer = arm.name.replace(", ", "-").replace(' ', "-");
            for row in &arm.languages {
                let name = format!("consequence.{tokenizer}.{}", row.balance.language);
                self.put(&name, spread(row.nats_per_character));
                if let Some(over) = row.over_base {
                    self.put(format!("{name}.over-base"), spread(over));
                }
            }
        }
        self.put("consequence.seeds", models.seeds);
        self.put("consequence.scale", models.scale());
    }

    /// `release.…`: the released tokenizer on NTREX.
    pub fn release(&mut self, release: &Release) {
        let Some(chosen) = release.candidates.get(release.chosen) else { return };
        self.put("release.vocabulary", chosen.vocabulary);
        self.put("release.pattern", &chosen.pre_tokenizer);
        self.put("release.share", format!("{:.0} %", 100.0 * chosen.share));
        self.put("release.doubles", format!("{:.1} %", 100.0 * chosen.doubles.share()));
        for found in chosen.measured.iter().filter(|m| m.texts == SET) {
            let name = |what: &str| format!("release.{}.{what}", found.language);
            self.put(name("characters"), exact(found.fertility.characters_per_token));
            self.put(name("tokens-per-word"), exact(found.fertility.tokens_per_word));
        }
    }

    /// `burn.…`: the catalogue of Burn, its matrix and the meter.
    pub fn burn(&mut self, outcomes: &Outcomes, matrix: &Matrix, attempts: &Matrix, meter: &Efficiency) {
        let of = |verdict: &str| outcomes.records.iter().filter(|r| r.verdict() == verdict).count();
        self.put("burn.version", &outcomes.version);
        self.put("burn.entries", outcomes.records.len());
        self.put("burn.present", of("present"));
        self.put("burn.absent", of("absent"));
        self.put("burn.not-run", of("not run here"));
        self.put("burn.silent", outcomes.silent());
        self.put("burn.caught", outcomes.caught());
        self.put("burn.versions", matrix.names().join(", "));
        let entries = attempts.entries();
        let shown = entries.iter().filter(|entry| {
            attempts.versions.values().any(|build| build.entries.get(**entry).is_some_and(|pair| pair.check.shows()))
        });
        let shown = shown.count();
        self.put("burn.vulkan", if shown == 0 { "none".to_owned() } else { format!("{shown} of {}", entries.len()) });
        let share = |speed: f64| format!("{:.0} %", 100.0 * meter.share(speed));
        if let Some(slowest) = meter.slowest("Burn") {
            self.put("burn.backward-share", share(slowest.backward));
            self.put("burn.backward-way", &slowest.way);
            self.put("burn.backward-shape", format!("{} × {}", slowest.shape.batch, slowest.shape.time));
            let flat = |s: &&Speed| s.shape == slowest.shape && s.way.contains("reshaped");
            if let Some(control) = meter.speeds.iter().find(flat) {
                self.put("burn.backward-share-reshaped", share(control.backward));
            }
        }
        self.put("burn.gemm", format!("{:.0}", meter.gemm_peak));
    }

    /// `defects.…`: the catalogue and its matrix.
    pub fn defects(&mut self, outcomes: &Outcomes, matrix: &Matrix) {
        let of = |verdict: &str| outcomes.records.iter().filter(|r| r.verdict() == verdict).count();
        self.put("defects.candle", &outcomes.version);
        self.put("defects.entries", outcomes.records.len());
        self.put("defects.present", of("present"));
        self.put("defects.absent", of("absent"));
        self.put("defects.not-run", of("not run here"));
        self.put("defects.silent", outcomes.silent());
        self.put("defects.caught", outcomes.caught());
        self.put("defects.steps", outcomes.steps);
        self.put("defects.seeds", outcomes.seeds);
        self.put("defects.versions", matrix.names().join(", "));
    }

    /// `arbiter.…`: its score on the fault corpus.
    pub fn arbiter(&mut self, score: &Score) {
        let (faults, trials, caught, presence, curve) = score.in_scope();
        let (models, healthy, alarms, presence_alarms, _) = score.of(Kind::Healthy);
        let share = |hits: usize, of: usize| {
            let [low, high] = wilson(hits, of).map(|share| 100.0 * share);
            format!("{low:.1} to {high:.1} %")
        };
        self.put("arbiter.faults", faults);
        self.put("arbiter.kinds", Kind::IN_SCOPE.len());
        self.put("arbiter.trials", trials);
        self.put("arbiter.caught", caught);
        self.put("arbiter.caught-interval", share(caught, trials));
        self.put("arbiter.presence-caught", presence);
        self.put("arbiter.curve-caught", curve);
        self.put("arbiter.healthy-models", models);
        self.put("arbiter.healthy-trials", healthy);
        self.put("arbiter.false-alarms", alarms);
        self.put("arbiter.false-alarms-interval", share(alarms, healthy));
        self.put("arbiter.presence-false-alarms", presence_alarms);
        self.put("arbiter.seeds", score.seeds);
    }

    /// `speed.…`: the training benchmark; `tokens` is how many a step has.
    pub fn speed(&mut self, ways: &BTreeMap<String, speed::Way>, tokens: usize) {
        for (name, way) in ways {
            self.put(format!("speed.{name}"), format!("{:.0}", tokens as f64 / way.median()));
            self.put("speed.steps", way.seconds.len());
        }
        if let (Some(f32), Some(bf16), Some(composed)) = (ways.get("f32"), ways.get("bf16"), ways.get("composed")) {
            self.put("speed.times-composed", format!("{:.1}", composed.median() / f32.median()));
            self.put("speed.bf16-times-f32", format!("{:.1}", f32.median() / bf16.median()));
            self.put("speed.apart", format!("{:.1e}", f32.apart(composed)));
        }
    }

    /// `stream.…`: from Parquet to tokens, the first file with the most threads.
    pub fn streaming(&mut self, measured: &streaming::Streaming) {
        self.put("stream.text", &measured.text);
        self.put("stream.slice", format!("{:.0} MB", measured.slice as f64 / 1e6));
        let whole = measured.parts.iter().filter(|part| part.memory.is_some());
        if let Some(last) = whole.max_by_key(|part| part.threads) {
            self.put("stream.threads", last.threads);
            self.put("stream.megabytes", format!("{:.0}", last.bytes as f64 / 1e6));
            self.put("stream.speed", format!("{:.0}", last.speed()));
            let [peak, before] = last.memory.unwrap_or_default();
            self.put("stream.memory", format!("{:.0} MB", peak.saturating_sub(before) as f64 / 1e6));
        }
    }

    /// As a JSON object.
    ///
    /// # Errors
    /// Never for text; [`ReportError::Table`] all the same.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let failed = |e: serde_json::Error| ReportError::Table { name: "numbers".to_owned(), message: e.to_string() };
        Ok(serde_json::to_string_pretty(&self.0).map_err(failed)? + "\n")
    }
}

fn exact(i: Interval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", i.value, i.low, i.high)
}

fn spread(i: Interval) -> String {
    format!("{:.2} [{:.2}, {:.2}]", i.value, i.low, i.high)
}
