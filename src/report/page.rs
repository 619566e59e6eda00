//! The results as one HTML page that opens from disk: no script, no network, figures inline, readable on a phone.
//! It is well-formed XML too, so that any parser can check it.

use super::figure::{Figure, Words};
use super::registry::{Entry, Kind, REGISTRY};
use super::{Numbers, Table};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows of a table that are shown without being asked for.
const SHORT: usize = 24;
/// Rows of a figure's numbers that are still a table to read; more are left to its CSV file.
const MANY: usize = 150;

const TITLE: &str = "Shikha: what was reported and what was measured";

/// The results in a few sentences; `{name}` stands for a number.
const SUMMARY: [&str; 7] = [
    "Scale: the reference run has {reference.scale}; the abstract's has {reported.parameters} parameters and {reported.training-tokens} tokens. A small run can show what a defect or a tokenizer does; it says nothing of a large model's losses.",
    "Fertility: held-out Bangla has {reference.bangla-naive} under a naive pattern and {reference.bangla-fixed} where marks stay with their letters. The abstract has {reported.bangla-naive} and {reported.bangla-fixed}.",
    "Loss on held-out text, in nats per character: Bangla {eval.bn.trained} beside {eval.bn.5-gram} of a 5-gram model of the same text, English {eval.en.trained} beside {eval.en.5-gram}. The random twin lies {eval.twin-from-chance} nats per token from the logarithm of its vocabulary.",
    "Multiple choice: {choice.at-chance} of {choice.tasks} English tasks are at chance by length-normalised log-probability, {choice.at-chance-by-sum} by the sum, and {choice.control-at-chance} when the right answers are drawn at random.",
    "The gradient-flow arbiter caught {arbiter.caught} of {arbiter.trials} trials of planted faults ({arbiter.caught-interval}) and flagged {arbiter.false-alarms} of {arbiter.healthy-trials} healthy ones ({arbiter.false-alarms-interval}); the loss curve gave away {arbiter.curve-caught}.",
    "Candle {defects.candle} as a training backend: {defects.present} of {defects.entries} catalogued defects are present, and {defects.silent} of them give nothing away in the loss curve.",
    "Speed on two CPU cores: {speed.times-composed} times that of the same model composed from Candle's ops, over {speed.steps} steps.",
];

/// The last section.
const AGAIN: &str = "<section id=\"again\">\n<h2>Reproduce, cite, licences</h2>\n<ul>\n\
    <li><a href=\"../REPRODUCING.md\">REPRODUCING.md</a>: for each claim a command, an expected value, a tolerance, minutes and hardware.</li>\n\
    <li><a href=\"../CITATION.cff\">CITATION.cff</a>: how to cite.</li>\n\
    <li><a href=\"../LICENSES.md\">LICENSES.md</a>: the licences of the code, of the weights and of the text, each by itself.</li>\n\
    <li><a href=\"../checkpoints/reference/model/README.md\">Model card</a> of the reference run.</li>\n\
    </ul>\n</section>\n";

/// The sections in their order: the notebook whose registry rows they hold, the heading, what it is about. `{name}`
/// stands for a number.
const SECTIONS: [(&str, &str, &str); 8] = [
    (
        "00-tour",
        "Claims",
        "What the abstract reports and what was measured here never mix. The reference run is small ({reference.scale}); what was not measured says what it would take. The third column, this machine now, is yours: `shikha claims` prints it.",
    ),
    (
        "01-corpus",
        "The text and its balance",
        "How much of the text is Bangla depends on what is counted. A naive tokenizer gives Bangla far more tokens than its characters call for.",
    ),
    (
        "02-fertility",
        "The fertility trap",
        "Bangla vowel signs and the hasanta are combining marks. A pattern whose words are letters only cuts at each of them before merging has begun. Over {study.languages} languages, the more marks a script writes the more such a pattern loses: correlation {study.correlation}.",
    ),
    (
        "04-arbiter",
        "The gradient-flow arbiter",
        "One forward and backward pass; every trainable parameter must get a gradient that is present, finite and not zero, right, repeatable and applied. It caught {arbiter.caught} of {arbiter.trials} trials of planted faults, with {arbiter.false-alarms} false alarms in {arbiter.healthy-trials}.",
    ),
    (
        "05-candle-defects",
        "Candle's defects",
        "Of {defects.entries} entries of the catalogue, {defects.present} are present in Candle {defects.candle}; {defects.silent} of them train and give nothing away in the loss curve, and the arbiter catches {defects.caught} of these.",
    ),
    (
        "06-burn",
        "Burn's defects, and how fast backward is",
        "Of {burn.entries} entries of the catalogue, {burn.present} are present in Burn {burn.version}; {burn.silent} of them train and give nothing away in the loss curve, and the arbiter catches {burn.caught} of these. In one shape a backward pass reaches {burn.backward-share} of the fastest matrix product, on a CPU; reshaped it reaches {burn.backward-share-reshaped}.",
    ),
    (
        "07-pretraining",
        "Training, speed and cost",
        "Loss by step of the reference run, what a step costs when a size grows, and how fast the ops are beside the same model composed from Candle's.",
    ),
    (
        "08-evaluation",
        "Evaluation",
        "Loss per character on held-out text, beside the random twin, token frequencies and a 5-gram model of the same text; multiple choice beside chance. Compare within a language only.",
    ),
];

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #222; --faint: #666; --line: #ddd; --paper: #fff; --link: #0058a0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --faint: #aaa; --line: #444; --paper: #181818; --link: #8cc4ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 56rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); } h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
a { color: var(--link); } nav ul { padding-left: 1.2rem; } .faint { color: var(--faint); font-size: .875rem; }
figure { margin: 0; padding: .5rem; background: #fff; color: #222; border: 1px solid var(--line); } figcaption { color: #555; font-size: .875rem; }
.title { margin: 0 0 .4rem; font-weight: 600; } .plot { overflow-x: auto; } .plot svg { display: block; width: 100%; min-width: 40rem; height: auto; }
.table { overflow-x: auto; border: 1px solid var(--line); max-width: 100%; } table { border-collapse: collapse; font-size: .85rem; min-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem; border-bottom: 1px solid var(--line); min-width: 4.5rem; max-width: 24rem; } tbody th { font-weight: 400; }
summary { cursor: pointer; padding: .3rem 0; }
";

/// Text for HTML, quotes included.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Text for HTML, with what lies between two backticks as code.
pub fn rich(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escape).collect();
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let part = |(i, part): (usize, &String)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part.clone() };
    parts.iter().enumerate().map(part).collect()
}

/// The page of everything in the registry that was made, for `paper/report.html`: its links are relative to `paper/`.
pub fn page(figures: &BTreeMap<&str, Figure>, tables: &BTreeMap<&str, Table>, numbers: &Numbers) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{TITLE}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{TITLE}</h1>\n\
         <p class=\"faint\">Written by <code>make page</code> from the stored measurements. Square brackets are 95 % \
         intervals.</p>\n</header>\n<nav aria-label=\"Sections\"><ul>\n<li><a href=\"#summary\">Summary</a></li>\n"
    );
    for (id, heading, _) in SECTIONS {
        let _ = writeln!(html, "<li><a href=\"#s{id}\">{heading}</a></li>");
    }
    html += "<li><a href=\"#again\">Reproduce, cite, licences</a></li>\n</ul></nav>\n<main>\n";
    html += "<section id=\"summary\">\n<h2>Summary</h2>\n<ul>\n";
    for words in SUMMARY {
        let _ = writeln!(html, "<li>{}</li>", rich(&said(words, numbers)));
    }
    html += "</ul>\n</section>\n";
    for (id, heading, words) in SECTIONS {
        let _ = write!(html, "<section id=\"s{id}\">\n<h2>{heading}</h2>\n<p>{}</p>\n", rich(&said(words, numbers)));
        for entry in REGISTRY.iter().filter(|entry| entry.notebook == id) {
            let shown = match entry.kind {
                Kind::Figure => figures.get(entry.id).map(drawn),
                Kind::Table => tables.get(entry.id).map(|table| listed(table, &anchor(entry))),
            };
            let from = if shown.is_some() { from(entry) } else { String::new() };
            let shown = shown.unwrap_or_else(|| "<p>not measured</p>\n".to_owned());
            let _ = write!(html, "<h3 id=\"{}\">{}</h3>\n{shown}{from}", anchor(entry), escape(entry.title));
        }
        html += "</section>\n";
    }
    html + AGAIN + "</main>\n</body>\n</html>\n"
}

/// The id of an entry's heading.
fn anchor(entry: &Entry) -> String {
    let kind = if entry.kind == Kind::Figure { "figure" } else { "table" };
    format!("{kind}-{}", entry.id)
}

/// Where what is shown comes from, and its files.
fn from(entry: &Entry) -> String {
    let link = |path: &str, text: &str| format!("<a href=\"../{}\">{}</a>", escape(path), escape(text));
    let of: Vec<String> = entry.inputs.iter().map(|path| link(path, path)).collect();
    let files = entry.files().map(|path| link(&path, path.rsplit('.').next().unwrap_or_default()));
    let by = escape(entry.function);
    format!("<p class=\"faint\">From {}, by <code>{by}</code>; as {}.</p>\n", of.join(", "), files.join(", "))
}

/// `words` with every `{name}` replaced by its number, or by `not measured`.
fn said(words: &str, numbers: &Numbers) -> String {
    let mut parts = words.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        text += numbers.0.get(name).map_or("not measured", String::as_str);
        text += rest;
    }
    text
}

/// The plot inline between its title and its caption, which wrap where the page is narrow and are its name for those
/// who do not see it; then its numbers, where they are few.
fn drawn(figure: &Figure) -> String {
    let Words { title, caption, plot } = figure.words();
    let label = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(&format!("{title}. {caption}")));
    let plot = plot.replacen("<svg ", &label, 1);
    let (title, caption) = (rich(&title), rich(&caption));
    let frame = format!(
        "<figure>\n<p class=\"title\">{title}</p>\n<div class=\"plot\" tabindex=\"0\" role=\"region\" \
         aria-label=\"plot\">{}</div>\n<figcaption>{caption}</figcaption>\n</figure>\n",
        plot.trim_end()
    );
    match Table::from_csv(figure.id, &figure.csv) {
        Some(table) if !table.is_empty() && table.len() <= MANY => {
            frame + &folded("The numbers", &boxed(&table, &format!("figure-{}", figure.id)))
        }
        _ => frame,
    }
}

/// The table, folded when it is long.
fn listed(table: &Table, heading: &str) -> String {
    let html = boxed(table, heading);
    if table.len() <= SHORT { html } else { folded(&format!("{} rows", table.len()), &html) }
}

/// The table in a box of its own that scrolls, named by the heading above it.
fn boxed(table: &Table, heading: &str) -> String {
    let html = table.to_html();
    format!("<div class=\"table\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{heading}\">\n{html}</div>\n")
}

fn folded(summary: &str, html: &str) -> String {
    format!("<details><summary>{summary}</summary>\n{html}</details>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_escaped_named_and_counted() {
        let mut table = Table::new("claims", &["a < b"]);
        table.push(vec!["<script>\"x\" & 'y' `<b>`".to_owned()]);
        let mut long = Table::new("ops", &["n"]);
        (0..=SHORT).for_each(|n| long.push(vec![n.to_string()]));
        let svg = "<svg width=\"760\" height=\"430\" viewBox=\"\">\n<text x=\"1\">\nGPT&apos;s &lt;i&gt;\n</text>\n\
                   <text>\n2 texts.\n</text>\n<text>\nkept\n</text>\n</svg>\n";
        let figure = Figure { id: "loss", svg: svg.to_owned(), csv: "a,b\n<u>,2\n".to_owned() };
        let numbers = Numbers(BTreeMap::from([("reference.scale".to_owned(), "1 < 2 M".to_owned())]));
        let html =
            page(&BTreeMap::from([("loss", figure)]), &BTreeMap::from([("claims", table), ("ops", long)]), &numbers);
        let cell = "&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39; <code>&lt;b&gt;</code>";
        assert!(html.contains(&format!("<th scope=\"row\">{cell}</th>")));
        assert!(html.contains("<th scope=\"col\">a &lt; b</th>") && html.contains("small (1 &lt; 2 M)"));
        assert!(
            html.contains("<svg role=\"img\" aria-label=\"GPT&#39;s &lt;i&gt;. 2 texts.\" viewBox=\"0 34 760 372\"")
        );
        assert!(html.contains("<p class=\"title\">GPT&#39;s &lt;i&gt;</p>"));
        assert!(html.contains("<figcaption>2 texts.</figcaption>") && html.contains("kept\n</text>"));
        assert!(html.contains("<tr><th scope=\"row\">&lt;u&gt;</th><td>2</td></tr>"), "the numbers of the figure");
        assert_eq!(html.matches("<details>").count(), 2, "the long table and the numbers are folded");
        assert_eq!(html.matches("<p>not measured</p>").count(), REGISTRY.len() - 3);
        assert!(
            html.contains("Bangla not measured beside not measured of a 5-gram"),
            "a number that is missing says so"
        );
        assert!(!html.contains("<script"));
    }

    #[test]
    fn only_paired_backticks_are_code() {
        assert_eq!(rich("a `b<c` d"), "a <code>b&lt;c</code> d");
        assert_eq!(rich("a ` b"), "a ` b");
    }
}
