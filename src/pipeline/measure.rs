//! What a run says to the claims of the abstract.

use super::choice::CHOICE;
use super::evaluate::EVAL;
use super::results::Results;
use super::text::{BALANCE, FERTILITY, NAIVE};
use super::train::METRICS;
use crate::report::{Measured, choice};
use crate::train::Summary;
use std::collections::BTreeMap;

/// What this run says to each claim it can speak to.
pub(super) fn measure(results: &Results, fixed: &str) -> BTreeMap<String, Measured> {
    let mut values = BTreeMap::new();
    let mut put = |id: &str, value: f64, interval: Option<[f64; 2]>, source: &str| {
        values.insert(id.to_owned(), Measured { value, interval, source: source.to_owned() });
    };
    let summary = Summary::of(&results.rows, results.parameters);
    put("parameters", results.parameters as f64, None, METRICS);
    put("training-tokens", summary.tokens as f64, None, METRICS);
    put("hours", summary.seconds / 3600.0, None, METRICS);
    if results.verdict.passed() {
        put("arbiter-parameters", results.verdict.parameters as f64, None, "arbiter.json");
    }
    if let Some(above) = results.choice.as_ref().and_then(choice::points_above_chance) {
        put("multiple-choice", above.value, Some([above.low, above.high]), CHOICE);
    }
    let (mut nats, mut tokens) = (0.0, 0.0);
    for group in results.eval.groups.iter().filter(|g| g.domain == "all") {
        nats += group.models.get("trained").map_or(f64::NAN, |l| l.per_token.value) * group.tokens as f64;
        tokens += group.tokens as f64;
    }
    put("nll-trained", nats / tokens, None, EVAL);
    put("nll-twin", results.eval.twin_per_token(), None, EVAL);
    for (id, language, pre_tokenizer) in
        [("bangla-naive", "bn", NAIVE), ("english-naive", "en", NAIVE), ("bangla-fixed", "bn", fixed)]
    {
        let mut found = results.fertility.iter().filter(|m| m.texts == "held-out");
        if let Some(m) = found.find(|m| m.language == language && m.pre_tokenizer == pre_tokenizer) {
            let ratio = m.fertility.characters_per_token;
            put(id, ratio.value, Some([ratio.low, ratio.high]), FERTILITY);
        }
    }
    for balance in &results.balance {
        let id = if balance.pre_tokenizer == NAIVE { "balance-naive" } else { "balance-fixed" };
        if let Some(bangla) = balance.languages.iter().find(|l| l.language == "bn") {
            put(id, 100.0 * bangla.token_share, None, BALANCE);
            put("balance-characters", 100.0 * bangla.character_share, None, BALANCE);
        }
    }
    values
}
