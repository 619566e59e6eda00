//! The layouts in which the tasks are published, as plain data.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The rows of a JSON array, or of one JSON object a line.
///
/// # Errors
/// A message with the number of the first row that fits none of the layouts of `T`.
pub(super) fn rows<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    let read = |(i, value): (usize, serde_json::Value)| {
        serde_json::from_value(value).map_err(|_| format!("row {} has none of the layouts of the task", i + 1))
    };
    if text.trim_start().starts_with('[') {
        let values: Vec<serde_json::Value> = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
        return values.into_iter().enumerate().map(read).collect();
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parse = |(i, line): (usize, &str)| match serde_json::from_str(line) {
        Ok(value) => read((i, value)),
        Err(e) => Err(format!("line {} is no JSON: {e}", i + 1)),
    };
    lines.map(parse).collect()
}

/// The number of an answer as files state it: a number, or a number in quotes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Number {
    Plain(usize),
    Quoted(String),
}

impl Number {
    pub fn value(&self) -> Option<usize> {
        match self {
            Number::Plain(value) => Some(*value),
            Number::Quoted(text) => text.trim().parse().ok(),
        }
    }
}

/// True or false, also in quotes.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Truth {
    Plain(bool),
    Quoted(String),
}

impl Truth {
    pub fn value(&self) -> Option<bool> {
        match self {
            Truth::Plain(value) => Some(*value),
            Truth::Quoted(text) => text.trim().to_ascii_lowercase().parse().ok(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Piqa {
    pub goal: String,
    pub sol1: String,
    pub sol2: String,
    pub label: Option<Number>,
}

#[derive(Debug, Deserialize)]
pub(super) struct HellaSwag {
    pub activity_label: String,
    pub ctx: String,
    pub endings: Vec<String>,
    pub label: Option<Number>,
}

/// A question whose choices and answer have labels, of ARC and OpenBookQA.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Labelled {
    /// The authors' files.
    Official {
        question: Stem,
        #[serde(rename = "answerKey")]
        answer: String,
    },
    /// As data hubs have it.
    Columns {
        #[serde(alias = "question_stem")]
        question: String,
        choices: Columns,
        #[serde(rename = "answerKey")]
        answer: String,
    },
    Templated(Templated),
}

#[derive(Debug, Deserialize)]
pub(super) struct Stem {
    pub stem: String,
    pub choices: Vec<LabelledChoice>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LabelledChoice {
    pub text: String,
    pub label: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Columns {
    pub text: Vec<String>,
    pub label: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WinoGrande {
    Official { sentence: String, option1: String, option2: String, answer: Number },
    Templated(Templated),
}

/// A question written out as an instruction: `… question: Q\n\nAnswer1: A Answer2: B …\n\nAnswer format: …`.
#[derive(Debug, Deserialize)]
pub(super) struct Templated {
    instruction: String,
    answer: String,
}

impl Templated {
    /// The question, its choices and the index of the answer; `word` is what numbers the choices.
    pub fn parts(&self, word: &str) -> Option<(String, Vec<String>, usize)> {
        let (body, format) = self.instruction.rsplit_once("Answer format:")?;
        let (head, mut rest) = body.split_once(&format!("\n\n{word}1:"))?;
        let (_, question) = head.split_once(": ")?;
        let count = format.split('/').count();
        let mut choices = Vec::with_capacity(count);
        for next in 2..=count {
            let (choice, after) = rest.split_once(&format!(" {word}{next}:"))?;
            choices.push(choice.trim().to_owned());
            rest = after;
        }
        choices.push(rest.trim().to_owned());
        let number: usize = self.answer.strip_prefix(&word.to_ascii_lowercase())?.parse().ok()?;
        (1..=count).contains(&number).then(|| (question.trim().to_owned(), choices, number - 1))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct BoolQ {
    pub question: String,
    pub passage: String,
    #[serde(alias = "label")]
    pub answer: Truth,
}

#[derive(Debug, Deserialize)]
pub(super) struct Copa {
    pub premise: String,
    pub choice1: String,
    pub choice2: String,
    pub question: String,
    pub label: Number,
}
