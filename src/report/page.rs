//! The results as one HTML page that opens from disk: no script, no network, figures inline, readable on a phone.
//! It is well-formed XML too, so that any parser can check it.

use super::registry::{Kind, REGISTRY};
use super::{Numbers, Table};
use crate::report::figure::Figure;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows of a table that are shown without being asked for.
const SHORT: usize = 24;

/// The sections in their order: the notebook whose registry rows they hold, the heading, what it is about. `{name}`
/// stands for a number.
const SECTIONS: [(&str, &str, &str); 7] = [
    (
        "00-tour",
        "Claims",
        "What the abstract reports and what was measured here never mix. The reference run is small ({reference.scale}); what was not measured says what it would take.",
    ),
    (
        "01-corpus",
        "The text and its balance",
        "How much of the text is Bangla depends on what is counted. A naive tokenizer gives Bangla far more tokens than its characters call for.",
    ),
    (
        "02-fertility",
        "The fertility trap",
        "Bangla vowel signs and the hasanta are combining marks. A pattern whose words are letters only cuts at each of them before merging has begun. Over {study.languages} languages, the share of marks explains the loss: correlation {study.correlation}.",
    ),
    (
        "04-arbiter",
        "The gradient-flow arbiter",
        "One forward and backward pass; every trainable parameter must get a gradient that is present, finite and not zero, right, repeatable and applied. It caught {arbiter.caught} of {arbiter.trials} trials of planted faults, with {arbiter.false-alarms} false alarms in {arbiter.healthy-trials}.",
    ),
    (
        "05-candle-defects",
        "Defects",
        "Of {defects.entries} entries of the catalogue, {defects.present} are present in Candle {defects.candle}; {defects.silent} of them train and give nothing away in the loss curve, and the arbiter catches {defects.caught} of these.",
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
:root { color-scheme: light dark; --ink: #222; --faint: #666; --line: #ddd; --paper: #fff; --card: #fff; --link: #0058a0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --faint: #aaa; --line: #444; --paper: #181818; --link: #8cc4ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 56rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); } h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
a { color: var(--link); } nav ul { padding-left: 1.2rem; } .faint { color: var(--faint); font-size: .875rem; }
figure { margin: 0; padding: .25rem; background: #fff; border: 1px solid var(--line); } figure svg { display: block; width: 100%; height: auto; }
.table { overflow-x: auto; border: 1px solid var(--line); max-width: 100%; } table { border-collapse: collapse; font-size: .85rem; min-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem; border-bottom: 1px solid var(--line); min-width: 4.5rem; max-width: 24rem; } thead th { position: sticky; top: 0; background: var(--paper); }
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

/// The page of everything in the registry that was made.
pub fn page(figures: &BTreeMap<&str, Figure>, tables: &BTreeMap<&str, Table>, numbers: &Numbers) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>Shikha: what was reported and what was measured</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Shikha: what was reported and what was measured</h1>\n\
         <p class=\"faint\">Written by <code>shikha figures</code> from the stored measurements. Square brackets are 95 % intervals.</p>\n\
         <nav aria-label=\"Sections\"><ul>\n"
    );
    for (id, heading, _) in SECTIONS {
        let _ = writeln!(html, "<li><a href=\"#s{id}\">{heading}</a></li>");
    }
    html += "</ul></nav>\n<main>\n";
    for (id, heading, words) in SECTIONS {
        let _ = write!(html, "<section id=\"s{id}\">\n<h2>{heading}</h2>\n<p>{}</p>\n", escape(&said(words, numbers)));
        for entry in REGISTRY.iter().filter(|entry| entry.notebook == id) {
            let shown = match entry.kind {
                Kind::Figure => figures.get(entry.id).map(|figure| drawn(figure, entry.title)),
                Kind::Table => tables.get(entry.id).map(listed),
            };
            let shown = shown.unwrap_or_else(|| "<p>not measured</p>\n".to_owned());
            let of = escape(&entry.inputs.join(", "));
            let title = escape(entry.title);
            let _ = write!(html, "<h3>{title}</h3>\n{shown}<p class=\"faint\">From {of}.</p>\n");
        }
        html += "</section>\n";
    }
    html + "</main>\n</body>\n</html>\n"
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

/// The SVG inline, named for those who do not see it.
fn drawn(figure: &Figure, title: &str) -> String {
    let label = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(title));
    format!("<figure>{}</figure>\n", figure.svg.trim_end().replacen("<svg ", &label, 1))
}

/// The table in a box of its own that scrolls; a long one folded.
fn listed(table: &Table) -> String {
    let html = format!(
        "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"table\">\n{}</div>\n",
        table.to_html()
    );
    if table.len() <= SHORT {
        return html;
    }
    format!("<details><summary>{} rows</summary>\n{html}</details>\n", table.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_escaped_named_and_counted() {
        let mut table = Table::new("claims", &["a < b"]);
        table.push(vec!["<script>\"x\" & 'y'".to_owned()]);
        let mut long = Table::new("ops", &["n"]);
        (0..=SHORT).for_each(|n| long.push(vec![n.to_string()]));
        let figure = Figure { id: "loss", svg: "<svg width=\"1\">\n</svg>\n".to_owned(), csv: String::new() };
        let numbers = Numbers(BTreeMap::from([("reference.scale".to_owned(), "1 < 2 M".to_owned())]));
        let html =
            page(&BTreeMap::from([("loss", figure)]), &BTreeMap::from([("claims", table), ("ops", long)]), &numbers);
        assert!(html.contains("<td>&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39;</td>"));
        assert!(html.contains("<th scope=\"col\">a &lt; b</th>") && html.contains("small (1 &lt; 2 M)"));
        assert!(html.contains("<svg role=\"img\" aria-label=\"Held-out loss beside its baselines\" width=\"1\">"));
        assert_eq!(html.matches("<details>").count(), 1, "only the long table is folded");
        assert_eq!(html.matches("<p>not measured</p>").count(), REGISTRY.len() - 3);
        assert!(!html.contains("<script"));
    }
}
