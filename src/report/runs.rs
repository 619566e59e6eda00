//! Whole runs: the abstract's, and every one that was recorded.

use super::gpu::NOT_MEASURED;
use super::{Ledger, ReportError, Table};
use crate::train::record::{Record, Run};

const NOT_KNOWN: &str = "not known";

/// One row for the abstract and one for each recorded run, or one that says that there is none.
///
/// # Errors
/// [`ReportError::Ledger`] when the abstract's numbers cannot be had.
pub fn table(ledger: &Ledger, records: &[Record]) -> Result<Table, ReportError> {
    let stated = |id: &str| ledger.reported(id);
    let (parameters, tokens, hours) = (stated("parameters")?, stated("training-tokens")?, stated("hours")?);
    let header = [
        "what",
        "device",
        "date",
        "parameters",
        "training tokens",
        "hours",
        "US$",
        "tokens/s",
        "share of the bf16 peak",
        "arbiter",
        "trained, nats a token",
        "random twin, nats a token",
    ];
    let mut table = Table::new("runs", &header);
    let mut row = |cells: [String; 12]| table.push(cells.into());
    row([
        "reported by the abstract".to_owned(),
        "one H100".to_owned(),
        String::new(),
        millions(parameters),
        millions(tokens),
        format!("{hours:.1}"),
        format!("{:.0}", stated("cost")?),
        format!("{:.0}", tokens / (3600.0 * hours)),
        String::new(),
        String::new(),
        format!("{:.2}", stated("nll-trained")?),
        format!("{:.2}", stated("nll-twin")?),
    ]);
    let runs = records.iter().filter_map(|record| Some((record, record.run.as_ref()?)));
    let mut none = true;
    for (record, run) in runs {
        row(recorded(record, run));
        none = false;
    }
    if none {
        let mut cells = [const { String::new() }; 12];
        cells.iter_mut().for_each(|cell| *cell = NOT_MEASURED.to_owned());
        cells[0] = "this program".to_owned();
        row(cells);
    }
    Ok(table)
}

fn millions(count: f64) -> String {
    format!("{:.2} M", count / 1e6)
}

fn recorded(record: &Record, run: &Run) -> [String; 12] {
    let Run { summary, flops_per_token, .. } = run;
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| NOT_KNOWN.to_owned());
    let hours = run.seconds().map(|seconds| seconds / 3600.0);
    let cost = hours.zip(record.price.as_ref());
    let share = record.peak_share(*flops_per_token, summary.tokens_per_second);
    [
        format!("this program, `{}`", run.name),
        devices(run),
        record.date.clone(),
        millions(summary.parameters as f64),
        millions(summary.tokens as f64),
        or_unknown(hours.map(|hours| format!("{hours:.2}"))),
        or_unknown(cost.map(|(hours, price)| format!("{:.2} ({})", hours * price.dollars_an_hour, price.stated_by))),
        format!("{:.0}", summary.tokens_per_second),
        or_unknown(share.map(|share| format!("{:.1} %", 100.0 * share))),
        if run.verdict.passed() { "passed".to_owned() } else { format!("{} findings", run.verdict.findings.len()) },
        losses(run, "trained"),
        losses(run, "twin"),
    ]
}

/// Every machine that the run sat on, once.
fn devices(run: &Run) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in run.sittings.iter().map(|sitting| sitting.hardware.name()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", then ")
}

/// A model's loss on each language; per token of the run's own tokenizer, so no two runs compare by it.
fn losses(run: &Run, model: &str) -> String {
    let of_model = run.held_out.iter().filter(|loss| loss.model == model);
    let cells: Vec<String> = of_model.map(|loss| format!("{} {:.2}", loss.language, loss.nats_per_token[0])).collect();
    if cells.is_empty() { NOT_MEASURED.to_owned() } else { cells.join(", ") }
}
