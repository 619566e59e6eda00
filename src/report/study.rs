//! The tables of the fertility study.

use super::Table;
use crate::statistics::Interval;
use crate::tokenizer::study::{Known, Measured, RARE, Study, Trained};

/// Width of a terminal.
const WIDTH: usize = 118;

/// Vocabulary at which texts and patterns are set beside each other.
const SIDE_BY_SIDE: usize = 32_768;

/// The main tables for a terminal.
pub fn tables(study: &Study) -> String {
    let blocks = [trial(study), trained(study, "par-ntrex"), known(study, "par-ntrex")];
    let blocks = blocks.iter().map(|(title, table)| format!("{title}\n\n{}", table.to_text(WIDTH)));
    let cause = &study.cause;
    let tail = format!(
        "{} tokenizers measured. Marks and loss over {} languages: correlation {}; among those with marks {}.\n",
        study.measured(),
        cause.languages.len(),
        number(cause.correlation),
        number(cause.correlation_with_marks)
    );
    blocks.chain([tail]).collect::<Vec<_>>().join("\n")
}

/// All tables as a document.
pub fn markdown(study: &Study) -> String {
    let mut text =
        "# Fertility study\n\nWritten by `shikha fertility`; do not edit. Square brackets are 95 % bootstrap \
                    intervals over sentences.\nTime and memory are those of the machine that measured.\n"
            .to_owned();
    let mut put = |(title, table): (String, Table)| text += &format!("\n## {title}\n\n{}", table.to_markdown());
    put(texts(study));
    put(trial(study));
    for set in set_names(study) {
        put(trained(study, &set));
        put(known(study, &set));
    }
    put(cost(study));
    put(cause(study));
    put(walks(study));
    put(spellings(study));
    text
}

/// The tables of the report, by their ids in the registry, measured on NTREX.
pub fn generated(study: &Study) -> [(&'static str, Table); 4] {
    let set = "par-ntrex";
    [
        ("study-words", walks(study).1),
        ("study-trial", trial(study).1),
        ("study-trained", trained(study, set).1),
        ("study-known", known(study, set).1),
    ]
}

fn set_names(study: &Study) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for measured in study.trained.iter().flat_map(|row| &row.measured) {
        if !names.contains(&measured.texts) {
            names.push(measured.texts.clone());
        }
    }
    names
}

fn texts(study: &Study) -> (String, Table) {
    let mut table = Table::new("texts", &["text", "what it is", "Bangla characters", "English characters"]);
    for text in &study.texts {
        table.push(vec![text.name.clone(), text.what.clone(), text.bangla.to_string(), text.english.to_string()]);
    }
    ("Training texts".to_owned(), table)
}

/// Characters per token before and after, by training text: what the trap and the cure depend on.
fn trial(study: &Study) -> (String, Table) {
    let header = ["text", "pattern", "vocabulary", "Bangla characters/token", "English characters/token"];
    let mut table = Table::new("trial", &header);
    let rows =
        study.trained.iter().filter(|row| row.model == "BPE" && ["gpt2", "marks"].contains(&&*row.pre_tokenizer));
    for row in rows.filter(|row| row.nfc && (row.asked == SIDE_BY_SIDE || row.text == "all")) {
        let cell = |language| {
            find(&row.measured, "par-ntrex", language)
                .map_or(String::new(), |m| number(m.fertility.characters_per_token))
        };
        table.push(vec![
            row.text.clone(),
            row.pre_tokenizer.clone(),
            row.vocabulary.to_string(),
            cell("bn"),
            cell("en"),
        ]);
    }
    ("What the trap and the cure depend on (par-ntrex)".to_owned(), table)
}

const MEASURES: [&str; 8] = [
    "bn tokens/word",
    "bn chars/token",
    "en chars/token",
    "bn tokens/sentence over en",
    "bn words whole",
    "bn ends in cluster",
    "bn lone bytes",
    "bn lost",
];

fn measures(measured: &[Measured], set: &str) -> Vec<String> {
    let (Some(bn), Some(en)) = (find(measured, set, "bn"), find(measured, set, "en")) else {
        return vec![String::new(); MEASURES.len()];
    };
    let f = &bn.fertility;
    vec![
        number(f.tokens_per_word),
        number(f.characters_per_token),
        number(en.fertility.characters_per_token),
        format!("{:.2}", bn.premium),
        f.whole_words.map_or("-".to_owned(), |whole| percent(whole.value)),
        percent(f.ends_inside_cluster.value),
        percent(f.byte_fallback.value),
        f.round_trip_failures.to_string(),
    ]
}

fn find<'a>(measured: &'a [Measured], set: &str, language: &str) -> Option<&'a Measured> {
    measured.iter().find(|m| m.texts == set && m.language == language)
}

fn trained(study: &Study, set: &str) -> (String, Table) {
    let mut table = Table::new("trained", &[&["tokenizer", "vocabulary"][..], &MEASURES].concat());
    for row in &study.trained {
        table.push([vec![name(row), row.vocabulary.to_string()], measures(&row.measured, set)].concat());
    }
    (format!("Trained here, measured on {set}"), table)
}

fn name(row: &Trained) -> String {
    let nfc = if row.nfc { "" } else { ", no NFC" };
    let model = if row.model == "BPE" { String::new() } else { format!("{}, ", row.model) };
    format!("{model}{}, {}{nfc}", row.pre_tokenizer, row.text)
}

fn known(study: &Study, set: &str) -> (String, Table) {
    let mut table = Table::new("known", &[&["tokenizer", "vocabulary"][..], &MEASURES].concat());
    for row in &study.known {
        let cells = match &row.why_not {
            Some(why) => vec![format!("not measured: {why}")],
            None => measures(&row.measured, set),
        };
        table.push([vec![title(row), row.vocabulary.map_or("-".to_owned(), |n| n.to_string())], cells].concat());
    }
    (format!("Well-known tokenizers, measured on {set}"), table)
}

fn title(known: &Known) -> String {
    known.tokenizer.name.clone()
}

/// What training and a large vocabulary cost.
fn cost(study: &Study) -> (String, Table) {
    let rare = format!("vocabulary met < {RARE} times");
    let header = ["tokenizer", "vocabulary", "training tokens", &rare, "Rényi, bn", "Rényi, en", "train s", "peak MB"];
    let mut table = Table::new("cost", &header);
    for row in &study.trained {
        let renyi = |language| {
            let found = find(&row.measured, "par-ntrex", language);
            found.map_or(String::new(), |m| format!("{:.3}", m.fertility.renyi_efficiency.value))
        };
        table.push(vec![
            name(row),
            row.vocabulary.to_string(),
            row.usage.tokens.to_string(),
            percent(row.usage.rare),
            renyi("bn"),
            renyi("en"),
            format!("{:.1}", row.machine.train_seconds),
            row.machine.train_memory.map_or("-".to_owned(), |bytes| (bytes >> 20).to_string()),
        ]);
    }
    ("What it costs (a cut vocabulary has the time of the whole one)".to_owned(), table)
}

fn cause(study: &Study) -> (String, Table) {
    let header = ["language", "characters", "marks", "gpt2, chars/token", "marks, chars/token", "loss"];
    let mut table = Table::new("cause", &header);
    let mut languages: Vec<_> = study.cause.languages.iter().collect();
    languages.sort_by(|a, b| b.marks.total_cmp(&a.marks));
    for language in languages {
        let loss = language.loss;
        table.push(vec![
            language.language.clone(),
            language.characters.to_string(),
            percent(language.marks),
            number(language.gpt2),
            number(language.kept),
            format!("{} [{}, {}]", percent(loss.value), percent(loss.low), percent(loss.high)),
        ]);
    }
    let cause = &study.cause;
    let title = format!(
        "Cause: marks against loss over {} languages, {} tokens each; correlation {}, among those with marks {}",
        cause.languages.len(),
        cause.vocabulary,
        number(cause.correlation),
        number(cause.correlation_with_marks)
    );
    (title, table)
}

fn walks(study: &Study) -> (String, Table) {
    let header = ["word", "code points (M: mark)", "bytes", "pattern", "pieces", "tokens", "number"];
    let mut table = Table::new("walks", &header);
    for walk in &study.walks {
        let points = walk.code_points.iter().map(|(c, mark)| if *mark { format!("{c} M") } else { c.clone() });
        table.push(vec![
            walk.word.clone(),
            points.collect::<Vec<_>>().join(", "),
            walk.bytes.to_string(),
            walk.pre_tokenizer.clone(),
            shown(&walk.pieces),
            shown(&walk.tokens),
            walk.tokens.len().to_string(),
        ]);
    }
    ("Words step by step".to_owned(), table)
}

fn spellings(study: &Study) -> (String, Table) {
    let header = ["case", "word", "code points", "NFC", "tokens", "number", "lone bytes"];
    let mut table = Table::new("spellings", &header);
    for row in &study.spellings {
        table.push(vec![
            row.case.clone(),
            row.word.clone(),
            row.code_points.clone(),
            if row.nfc { "yes" } else { "no" }.to_owned(),
            shown(&row.tokens),
            row.tokens.len().to_string(),
            row.lone_bytes.to_string(),
        ]);
    }
    ("Letters with two spellings".to_owned(), table)
}

/// Pieces with bars between them; a mark on its own gets a dotted circle to stand on.
fn shown(pieces: &[String]) -> String {
    let stand = |piece: &String| match piece.chars().next() {
        Some(c) if unicode_normalization::char::is_combining_mark(c) => format!("\u{25cc}{piece}"),
        _ => piece.clone(),
    };
    pieces.iter().map(stand).collect::<Vec<_>>().join(" · ")
}

fn number(found: Interval) -> String {
    format!("{:.2} [{:.2}, {:.2}]", found.value, found.low, found.high)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
