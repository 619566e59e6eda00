//! What the numbers of the abstract imply, by arithmetic alone: no measurement, and no judgement.

use super::claims::number;
use super::{Ledger, ReportError, Table};
use crate::train::plan::{DEVICES, Device};

/// Published vocabularies that a loss of a random-initialised twin may be compared with: name and tokens.
const VOCABULARIES: [(&str, f64); 5] = [
    ("GPT-2, 50,257", 50_257.0),
    ("Llama 3, 128,256", 128_256.0),
    ("o200k, 200,019", 200_019.0),
    ("BLOOM, 250,680", 250_680.0),
    ("Gemma 3, 262,144", 262_144.0),
];

/// Published bits per character of other models, each on its own text: model, text, bits, source. Only a scale to
/// read the abstract's number by: text and language differ.
const KNOWN: [(&str, &str, f64, &str); 2] = [
    ("GPT-2 of 1.5 B parameters, not trained on it", "text8 (English)", 0.98, "A. Radford et al. 2019, table 3"),
    ("GPT-2 of 1.5 B parameters, not trained on it", "enwik8 (English)", 0.93, "A. Radford et al. 2019, table 3"),
];

/// Share of the peak that the last row reckons with.
const UTILISATION: f64 = 0.4;

/// The abstract's numbers, from the ledger.
struct Stated {
    parameters: f64,
    tokens: f64,
    hours: f64,
    dollars: f64,
    trained: f64,
    twin: f64,
    characters: f64,
}

impl Stated {
    fn of(ledger: &Ledger) -> Result<Self, ReportError> {
        let value = |id: &str| {
            let claim = ledger.claims.iter().find(|claim| claim.id == id);
            let missing = || ReportError::Ledger(format!("`{id}` states no number to reckon with"));
            claim.and_then(|claim| claim.reported).ok_or_else(missing)
        };
        Ok(Stated {
            parameters: value("parameters")?,
            tokens: value("training-tokens")?,
            hours: value("hours")?,
            dollars: value("cost")?,
            trained: value("nll-trained")?,
            twin: value("nll-twin")?,
            characters: value("bangla-fixed")?,
        })
    }

    /// Operations of the whole training: 6 for each parameter and token.
    fn flops(&self) -> f64 {
        6.0 * self.parameters * self.tokens
    }
}

/// The table: what is asked, the inputs, the formula, the result.
///
/// # Errors
/// [`ReportError::Ledger`] when a number is not in the ledger.
pub fn arithmetic(ledger: &Ledger) -> Result<Table, ReportError> {
    let stated = Stated::of(ledger)?;
    let mut table = Table::new("arithmetic", &["question", "inputs", "formula", "result"]);
    let mut row = |cells: [String; 4]| table.push(cells.into());
    twin(&stated).into_iter().for_each(&mut row);
    trained(&stated).into_iter().for_each(&mut row);
    if let Some(device) = DEVICES.iter().find(|device| device.name == "h100") {
        cost(&stated, device).into_iter().for_each(&mut row);
    }
    Ok(table)
}

/// The random-initialised twin: a uniform guess over V tokens loses ln V; logits that are independent normal
/// numbers of variance s² lose ln V + s²/2 (the mean of ln Σ exp for large V).
fn twin(stated: &Stated) -> Vec<[String; 4]> {
    let Stated { twin, .. } = *stated;
    let bounds = [twin - 0.005, twin + 0.005].map(|loss| format!("{:.0}", loss.exp()));
    let mut rows = vec![[
        "Vocabulary whose uniform guess loses as much as the twin".to_owned(),
        format!("{twin:.2} nats/token"),
        "V = exp(loss)".to_owned(),
        format!("{:.0} tokens; {} to {} for a loss that rounds to it", twin.exp(), bounds[0], bounds[1]),
    ]];
    for (name, vocabulary) in VOCABULARIES {
        let excess = twin - vocabulary.ln();
        rows.push([
            format!("Spread of the twin's logits with the vocabulary of {name}"),
            format!("{twin:.2} nats/token, V = {vocabulary}"),
            "s² = 2 (loss − ln V)".to_owned(),
            format!(
                "ln V = {:.2}, {excess:.2} below the loss: standard deviation {:.2}",
                vocabulary.ln(),
                (2.0 * excess).sqrt()
            ),
        ]);
    }
    rows
}

fn trained(stated: &Stated) -> Vec<[String; 4]> {
    let Stated { trained, characters, twin, .. } = *stated;
    let nats = trained / characters;
    let of = |what: &str| (what.to_owned(), format!("{trained} nats/token, {characters} characters/token"));
    let ((bits, inputs), (share, _)) = (of("Trained loss per character"), of("Tokens it still hesitates between"));
    let own = nats / std::f64::consts::LN_2;
    let mut rows = vec![
        [
            bits,
            inputs,
            "loss / characters per token / ln 2".to_owned(),
            format!("{nats:.3} nats = {own:.3} bits a character, if both are of one text"),
        ],
        [
            share,
            format!("{trained} and {twin:.2} nats/token"),
            "exp(loss)".to_owned(),
            format!("{:.2} of {:.0}", trained.exp(), twin.exp()),
        ],
    ];
    for (model, text, published, source) in KNOWN {
        rows.push([
            format!("Where a known model stands: {model}"),
            format!("{text}: {published} bits a character ({source})"),
            "published / reported".to_owned(),
            format!("{:.1} times as many bits; another text and language, so no ranking", published / own),
        ]);
    }
    rows
}

fn cost(stated: &Stated, device: &Device) -> Vec<[String; 4]> {
    let Stated { parameters, tokens, hours, dollars, .. } = *stated;
    let (speed, rate) = (tokens / (hours * 3600.0), stated.flops() / (hours * 3600.0));
    let (price, ideal) = (dollars / hours, stated.flops() / (UTILISATION * device.peak) / 3600.0);
    let (size, seen) = (number(parameters), number(tokens));
    let peak = format!("{:.0} TFLOP/s ({})", device.peak / 1e12, device.source);
    let row = |question: &str, inputs: String, formula: &str, result: String| {
        [question.to_owned(), inputs, formula.to_owned(), result]
    };
    vec![
        row(
            "Speed of the training",
            format!("{seen} tokens, {hours} h"),
            "tokens / time",
            format!("{speed:.0} tokens/s"),
        ),
        row(
            "Share of the device's peak",
            format!("{size} parameters, {seen} tokens, {hours} h; {peak}"),
            "6 N D / time / peak",
            format!("{:.1} TFLOP/s, {:.1} %", rate / 1e12, 100.0 * rate / device.peak),
        ),
        row("Price of an hour", format!("{dollars} US$, {hours} h"), "cost / time", format!("{price:.2} US$")),
        row(
            &format!("The same training at {:.0} % of the peak", 100.0 * UTILISATION),
            format!("{size} parameters, {seen} tokens, {price:.2} US$ an hour; {peak}"),
            &format!("6 N D / ({UTILISATION} peak), times the price"),
            format!("{ideal:.1} h, {:.0} US$", ideal * price),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_numbers_that_follow() {
        let text = arithmetic(&Ledger::built_in().unwrap()).unwrap().to_markdown();
        for part in [
            "296559 tokens; 295079 to 298045",
            "ln V = 12.48, 0.12 below the loss: standard deviation 0.50",
            "0.227 nats = 0.327 bits a character",
            "3.0 times as many bits",
            "2.8 times as many bits",
            "10175 tokens/s",
            "24.4 TFLOP/s, 2.5 %",
            "3.00 US$",
            "3.4 h, 10 US$",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_number_that_is_missing_is_named() {
        let mut ledger = Ledger::built_in().unwrap();
        ledger.claims.retain(|claim| claim.id != "hours");
        assert!(arithmetic(&ledger).unwrap_err().to_string().contains("`hours`"));
    }
}
