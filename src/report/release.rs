//! The card of the released tokenizer, and the table it was chosen from.

use super::claims::number;
use super::{ReportError, Table, sources};
use crate::corpus::source::Manifest;
use crate::model::{Config, Parameters};
use crate::recipe::Recipe;
use crate::statistics::Interval;
use crate::tokenizer::study::release::{CHARACTERS_PER_TOKEN, TOKENS_PER_WORD, VOCABULARY};
use crate::tokenizer::study::{Candidate, Known, Measured, RARE, Release, Study};

pub use crate::tokenizer::study::release::SET;

/// The candidates, the chosen one marked.
pub fn candidates(release: &Release) -> Table {
    let header = [
        "pattern",
        "Bangla share",
        "vocabulary",
        "bn tokens/word",
        "bn chars/token",
        "en chars/token",
        "margin",
        "doubles",
        "released",
    ];
    let mut table = Table::new("candidates", &header);
    for (i, row) in release.candidates.iter().enumerate() {
        let mut cells = vec![row.pre_tokenizer.clone(), format!("{:.2}", row.share), row.vocabulary.to_string()];
        cells.extend(on_set(&row.measured));
        cells.push(row.margin().map_or("-".to_owned(), |margin| format!("{:+.2} %", 100.0 * margin)));
        cells.push(percent(row.doubles.share()));
        cells.push(if i == release.chosen { "yes" } else { "" }.to_owned());
        table.push(cells);
    }
    table
}

/// What the released tokenizer reaches, in a sentence.
pub fn headline(release: &Release) -> String {
    let Some(chosen) = release.candidates.get(release.chosen) else { return String::new() };
    let [words, bangla, english] = on_set(&chosen.measured);
    format!(
        "{} tokens, pattern `{}`, measured on {SET}: {words} tokens per Bangla word, {bangla} characters per Bangla token, \
         {english} characters per English token.\n",
        chosen.vocabulary, chosen.pre_tokenizer
    )
}

/// The card as a document.
///
/// # Errors
/// [`ReportError::Table`] when the measurements name a candidate that there is not.
pub fn card(release: &Release, study: &Study, manifest: &Manifest, recipe: &Recipe) -> Result<String, ReportError> {
    let chosen = release.candidates.get(release.chosen).ok_or_else(|| ReportError::Table {
        name: "candidates".to_owned(),
        message: format!("candidate {} was chosen of {}", release.chosen, release.candidates.len()),
    })?;
    let parts = [
        head(release, chosen),
        format!("## Measured\n\n{}", measured(chosen).to_markdown()),
        format!("## Beside others, on {SET}\n\n{}", beside(release, study).to_markdown()),
        choice(release, chosen),
        size(recipe),
        format!(
            "## Training text\n\nManifest `{}`, SHA-256 `{}`; what is read: {} Bangla and {} English characters.\n\n{}",
            recipe.corpus.manifest,
            release.manifest,
            chosen.bangla,
            chosen.english,
            sources(manifest).to_markdown()
        ),
        LAYOUT.to_owned(),
    ];
    Ok(parts.join("\n"))
}

fn head(release: &Release, chosen: &Candidate) -> String {
    format!(
        "# A Bangla-first tokenizer, with English\n\n\
         Written by `shikha fertility release`; do not edit. Square brackets are 95 % bootstrap intervals over \
         sentences.\n\n\
         Byte-level BPE, {} tokens, NFC, pattern `{}`, trained on public text with {:.0} % of its characters in Bangla. \
         The news set, whose licence is less sure, is not in it.\n\n\
         - `tokenizer.json`: {:.1} MB, SHA-256 `{}`\n\
         - named `{}` in token shards and checkpoints (the digest of the same content with line breaks)\n",
        chosen.vocabulary,
        chosen.pre_tokenizer,
        100.0 * chosen.share,
        release.bytes as f64 / 1e6,
        release.file,
        release.identity
    )
}

fn measured(chosen: &Candidate) -> Table {
    let header = ["set", "language", "sentences", "tokens/word", "chars/token", "tokens/sentence", "over en", "lost"];
    let mut table = Table::new("measured", &header);
    for row in &chosen.measured {
        let f = &row.fertility;
        table.push(vec![
            row.texts.clone(),
            row.language.clone(),
            f.texts.to_string(),
            spread(f.tokens_per_word),
            spread(f.characters_per_token),
            spread(f.tokens_per_text),
            format!("{:.2}", row.premium),
            f.round_trip_failures.to_string(),
        ]);
    }
    table
}

/// The chosen one, `gpt2` and `marks` trained on the same text, and the best of the well-known ones that were
/// measured: on Bangla, and on English.
fn beside(release: &Release, study: &Study) -> Table {
    let header = ["tokenizer", "vocabulary", "bn tokens/word", "bn chars/token", "en chars/token"];
    let mut table = Table::new("beside", &header);
    let chosen = &release.candidates[release.chosen];
    let others = release.candidates.iter().filter(|row| row.pre_tokenizer != chosen.pre_tokenizer);
    for (name, row) in [("this one", chosen)].into_iter().chain(others.map(|row| ("same text", row))) {
        let first = vec![format!("{name}, `{}`", row.pre_tokenizer), row.vocabulary.to_string()];
        table.push([first, on_set(&row.measured).to_vec()].concat());
    }
    let mut known: Vec<(&Known, f64, f64)> =
        study.known.iter().filter_map(|k| Some((k, bangla(k)?, english(k)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let on_english = known.iter().max_by(|a, b| a.2.total_cmp(&b.2)).map(|(known, ..)| *known);
    let best = known.iter().take(3).map(|(known, ..)| *known);
    let mut shown: Vec<&Known> = best.collect();
    shown.extend(on_english.filter(|known| !shown.iter().any(|other| other.tokenizer.id == known.tokenizer.id)));
    for row in shown {
        let first = vec![row.tokenizer.name.clone(), row.vocabulary.map_or("-".to_owned(), |n| n.to_string())];
        table.push([first, on_set(&row.measured).to_vec()].concat());
    }
    table
}

fn bangla(known: &Known) -> Option<f64> {
    Some(find(&known.measured, "bn")?.fertility.tokens_per_word.value)
}

fn english(known: &Known) -> Option<f64> {
    Some(find(&known.measured, "en")?.fertility.characters_per_token.value)
}

fn find<'a>(measured: &'a [Measured], language: &str) -> Option<&'a Measured> {
    measured.iter().find(|m| m.texts == SET && m.language == language)
}

fn on_set(measured: &[Measured]) -> [String; 3] {
    let [bn, en] = ["bn", "en"].map(|language| find(measured, language).map(|m| &m.fertility));
    let cell = |found: Option<Interval>| found.map_or("-".to_owned(), spread);
    [bn.map(|f| f.tokens_per_word), bn.map(|f| f.characters_per_token), en.map(|f| f.characters_per_token)].map(cell)
}

/// Why this pattern and this mix, and what they cost.
fn choice(release: &Release, chosen: &Candidate) -> String {
    let doubles = chosen.doubles;
    format!(
        "## Why this one\n\n\
         It had to reach {TOKENS_PER_WORD} tokens per Bangla word and {CHARACTERS_PER_TOKEN} characters per English \
         token on {SET} with {VOCABULARY} tokens. With more Bangla in the mix the first gets better and the second \
         worse; the released mix is the one that is farthest inside the nearer of the two (column `margin`).\n\n{}\n\
         The margins are small beside the intervals of the sentences, and the mix was chosen on {SET} itself: the \
         sets beside it, which nothing was chosen on, are the fairer measure of it.\n\n\
         What the pattern costs: a frequent word has one token with its full stop, danda or comma and one without, \
         and so has a word with `'s`. Of {} tokens {} are a word with a stop and {} a word with a contraction that \
         are tokens without it too: {} of the vocabulary, two ids for one word, whose likeness a model has to learn. \
         `marks` at the same mix has none of that, and misses the targets. Large vocabularies are thin in any case: \
         {} of this one occurs fewer than {RARE} times in its own training text.\n",
        candidates(release).to_markdown(),
        doubles.vocabulary,
        doubles.stops,
        doubles.contractions,
        percent(doubles.share()),
        percent(release.usage.rare),
    )
}

/// Why the reference run's model has another one.
fn size(recipe: &Recipe) -> String {
    let own = recipe.tokenizer.vocabulary;
    let count = |vocabulary| match Config::from_recipe(&recipe.model, vocabulary, 0) {
        Ok(config) => (Parameters::<f32>::count(&config) as f64, (config.vocab_size * config.hidden_size) as f64),
        Err(_) => (f64::NAN, f64::NAN),
    };
    let ((small, small_table), (large, large_table)) = (count(own), count(VOCABULARY));
    format!(
        "## Why the reference run has a smaller one\n\n\
         The model of recipe `{}` (width {}) has {} parameters with its `{}` vocabulary of {own}, {} of them in the \
         embedding. With this one it would have {}, {} of them in the embedding: {:.0} % of the model, most of whose \
         rows would hardly be met in training. This tokenizer is for models whose blocks outweigh its table.\n",
        recipe.name,
        recipe.model.hidden,
        number(small),
        recipe.tokenizer.pre_tokenizer,
        number(small_table),
        number(large),
        number(large_table),
        100.0 * large_table / large
    )
}

const LAYOUT: &str = "## Layout and use\n\n\
`tokenizer.json` is the format of the `tokenizers` library (0.23), which any program that reads fast tokenizers loads:\n\n\
- `normalizer`: `NFC`, so both spellings of ড়, ঢ়, য় and of ো, ৌ are one\n\
- `pre_tokenizer`: `Sequence` of `Split` (the pattern, behaviour `Isolated`) and `ByteLevel` (no space in front, no pattern of its own)\n\
- `model`: `BPE` over the byte-level alphabet, all 256 bytes in the vocabulary: no text is unknown, none is lost\n\
- `decoder`: `ByteLevel`; no post-processor, no padding, no truncation\n\
- `added_tokens`: `<|endoftext|>`, the only special token; put it between documents\n\n\
```rust\n\
let tokenizer = shikha::tokenizer::Tokenizer::load(\"checkpoints/tokenizer/tokenizer.json\".as_ref())?;\n\
let plain = tokenizers::Tokenizer::from_file(\"checkpoints/tokenizer/tokenizer.json\")?; // the same ids\n\
```\n\n\
With Hugging Face's `transformers`: `PreTrainedTokenizerFast(tokenizer_file=\"tokenizer.json\", \
eos_token=\"<|endoftext|>\")`.\n\n\
Trained again, to the same bytes: `shikha fertility release --mirror DIR --out DIR`.\n";

fn spread(found: Interval) -> String {
    format!("{:.3} [{:.3}, {:.3}]", found.value, found.low, found.high)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
