//! From the files of a task to its questions, in the prompts of the field.

use super::layout::{BoolQ, Copa, HellaSwag, Labelled, Piqa, WinoGrande, rows};
use super::{Choice, Item};
use crate::corpus::source::Reader;
use crate::corpus::source::html::{Event, events};

/// The tasks by name; the manifest has the source `eval-NAME` for each.
pub use crate::recipe::TASKS;

/// Lines of a question in the text form of HellaSwag: context, gold index, four endings.
const HELLASWAG_LINES: usize = 6;

/// Reads the questions of a task from its files, each a path and its content. Every task takes the authors'
/// files and the copies that the manifest names.
///
/// | task | context | choices |
/// |---|---|---|
/// | `piqa` | `Question: GOAL⏎Answer:` | the solutions |
/// | `hellaswag` | `ACTIVITY: CONTEXT` | the endings |
/// | `arc-easy`, `arc-challenge`, `openbookqa` | `Question: QUESTION⏎Answer:` | the answers |
/// | `winogrande` | the sentence up to the blank, with each option in it | the rest of the sentence, the same for both |
/// | `copa` | the premise, then `because` or `so` in place of its full stop | the alternatives |
/// | `boolq` | `PASSAGE⏎Question: QUESTION?⏎Answer:` | `no`, `yes` |
///
/// # Errors
/// A message that names what is wrong with the files.
pub fn load(task: &str, files: &[(String, Vec<u8>)]) -> Result<Vec<Item>, String> {
    let mut texts = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        texts.push(Reader::task_text(path, bytes).map_err(|message| format!("{path}: {message}"))?);
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let items = match task {
        "piqa" => piqa(&texts),
        "hellaswag" => each(&texts, hellaswag),
        "arc-easy" | "arc-challenge" | "openbookqa" => each(&texts, |_, text| all(text, labelled)),
        "winogrande" => each(&texts, |_, text| all(text, winogrande)),
        "copa" => each(&texts, copa),
        "boolq" => each(&texts, |_, text| all(text, boolq)),
        _ => Err(format!("is no task; the tasks are {}", TASKS.join(", "))),
    }?;
    let broken = |item: &Item| item.choices.len() < 2 || item.gold >= item.choices.len();
    match items.iter().position(broken) {
        Some(at) => Err(format!("question {} has fewer than two choices, or an answer that is none of them", at + 1)),
        None if items.is_empty() => Err("holds no question".to_owned()),
        None => Ok(items),
    }
}

/// The questions of every file together.
fn each(texts: &[(&str, &str)], read: impl Fn(&str, &str) -> Result<Vec<Item>, String>) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    for (path, text) in texts {
        items.extend(read(path, text).map_err(|message| format!("{path}: {message}"))?);
    }
    Ok(items)
}

/// A question from every row.
fn all<T: serde::de::DeserializeOwned>(text: &str, item: fn(T) -> Option<Item>) -> Result<Vec<Item>, String> {
    let made = rows(text)?.into_iter().enumerate();
    made.map(|(i, row)| item(row).ok_or_else(|| format!("row {} states no answer that it has", i + 1))).collect()
}

fn question(question: &str, choices: Vec<String>, gold: usize) -> Item {
    Item::shared(format!("Question: {}\nAnswer:", question.trim()), choices, gold)
}

/// Questions in `.jsonl`, gold indices in the rows or on the lines of a `.lst` file.
fn piqa(texts: &[(&str, &str)]) -> Result<Vec<Item>, String> {
    let (labels, questions): (Vec<_>, Vec<_>) = texts.iter().partition(|(path, _)| path.ends_with(".lst"));
    let labels: Vec<usize> =
        labels.iter().flat_map(|(_, text)| text.split_whitespace()).filter_map(|word| word.parse().ok()).collect();
    let mut found = Vec::new();
    for (path, text) in questions {
        found.extend(rows::<Piqa>(text).map_err(|message| format!("{path}: {message}"))?);
    }
    if !labels.is_empty() && labels.len() != found.len() {
        return Err(format!("{} questions and {} labels", found.len(), labels.len()));
    }
    let item = |(i, row): (usize, Piqa)| {
        let gold = labels.get(i).copied().or_else(|| row.label.and_then(|label| label.value()));
        let gold = gold.ok_or_else(|| format!("question {} has no label", i + 1))?;
        Ok(question(&row.goal, vec![row.sol1, row.sol2], gold))
    };
    found.into_iter().enumerate().map(item).collect()
}

fn hellaswag(path: &str, text: &str) -> Result<Vec<Item>, String> {
    if path.ends_with(".jsonl") || path.ends_with(".json") {
        return all(text, |row: HellaSwag| {
            let context = plain(&format!("{}: {}", row.activity_label, row.ctx));
            let endings: Vec<String> = row.endings.iter().map(|ending| plain(ending)).collect();
            Some(Item::shared(context, endings, row.label?.value()?))
        });
    }
    let lines: Vec<&str> = text.lines().collect();
    if !lines.len().is_multiple_of(HELLASWAG_LINES) {
        return Err(format!("{} lines are no multiple of {HELLASWAG_LINES}", lines.len()));
    }
    let item = |(i, lines): (usize, &[&str])| {
        let gold = lines[1].trim().parse().map_err(|_| format!("question {} has the label `{}`", i + 1, lines[1]))?;
        Ok(Item::shared(lines[0].trim().to_owned(), lines[2..].iter().map(|line| (*line).to_owned()), gold))
    };
    lines.chunks(HELLASWAG_LINES).enumerate().map(item).collect()
}

/// HellaSwag without the marks of the page it was taken from: `[title]` ends a sentence, others go.
fn plain(text: &str) -> String {
    let mut rest = &*text.trim().replace(" [title]", ". ");
    let mut result = String::with_capacity(rest.len());
    while let Some((before, after)) = rest.split_once('[') {
        result += before;
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    result += rest;
    result.replace("  ", " ").trim().to_owned()
}

fn labelled(row: Labelled) -> Option<Item> {
    let (stem, choices, labels, answer) = match row {
        Labelled::Official { question: stem, answer } => {
            let (texts, labels): (Vec<_>, Vec<_>) = stem.choices.into_iter().map(|c| (c.text, c.label)).unzip();
            (stem.stem, texts, labels, answer)
        }
        Labelled::Columns { question, choices, answer } => (question, choices.text, choices.label, answer),
        Labelled::Templated(row) => {
            let (stem, choices, gold) = row.parts("Answer")?;
            return Some(question(&stem, choices, gold));
        }
    };
    let gold = labels.iter().position(|label| *label == answer)?;
    Some(question(&stem, choices, gold))
}

fn winogrande(row: WinoGrande) -> Option<Item> {
    let (sentence, options, gold) = match row {
        WinoGrande::Official { sentence, option1, option2, answer } => {
            (sentence, vec![option1, option2], answer.value()?.checked_sub(1)?)
        }
        WinoGrande::Templated(row) => row.parts("Option")?,
    };
    let (before, after) = sentence.split_once('_')?;
    let continuation = after.trim_end().to_owned();
    let choice =
        |option: &String| Choice { context: format!("{before}{}", option.trim()), continuation: continuation.clone() };
    Some(Item { choices: options.iter().map(choice).collect(), gold })
}

fn copa(path: &str, text: &str) -> Result<Vec<Item>, String> {
    if !path.ends_with(".xml") {
        return all(text, |row: Copa| {
            let gold = row.label.value()?;
            copa_item(&row.premise, &row.question, [row.choice1, row.choice2], gold)
        });
    }
    let (mut items, mut open, mut texts) = (Vec::new(), None, Vec::new());
    for event in events(text) {
        match event {
            Event::Open(name, attributes) if name == "item" => open = Some(attributes),
            Event::Text(text) if open.is_some() && !text.trim().is_empty() => texts.push(text.trim().to_owned()),
            Event::Close(name) if name == "item" => {
                let attributes = open.take().unwrap_or_default();
                let wrong = || format!("item {} is not complete", items.len() + 1);
                let [premise, first, second] =
                    <[String; 3]>::try_from(std::mem::take(&mut texts)).map_err(|_| wrong())?;
                let kind = attribute(attributes, "asks-for").ok_or_else(wrong)?;
                let number = attribute(attributes, "most-plausible-alternative").ok_or_else(wrong)?;
                let gold = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).ok_or_else(wrong)?;
                items.push(copa_item(&premise, kind, [first, second], gold).ok_or_else(wrong)?);
            }
            _ => {}
        }
    }
    Ok(items)
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    attributes.split_once(&format!("{name}=\""))?.1.split_once('"').map(|(value, _)| value)
}

fn copa_item(premise: &str, kind: &str, choices: [String; 2], gold: usize) -> Option<Item> {
    let word = match kind {
        "cause" => "because",
        "effect" => "so",
        _ => return None,
    };
    let small = |text: String| {
        let mut letters = text.trim().chars();
        letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
    };
    let context = format!("{} {word}", premise.trim().trim_end_matches('.'));
    Some(Item::shared(context, choices.map(small), gold))
}

fn boolq(row: BoolQ) -> Option<Item> {
    let gold = usize::from(row.answer.value()?);
    let question = row.question.trim().trim_end_matches('?');
    let context = format!("{}\nQuestion: {question}?\nAnswer:", row.passage.trim());
    Some(Item::shared(context, ["no", "yes"].map(str::to_owned), gold))
}
