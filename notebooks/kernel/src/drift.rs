//! Whether a fresh execution says what is stored, and where it first does not.

use crate::failure::Failure;
use crate::notebook::{CodeCell, Notebook, text};
use serde_json::Value;

/// Puts the stored outputs back into the fresh notebook wherever a cell's tags call them equal, so that a number that may
/// vary in its last digit does not change the file.
pub fn settle(stored: &Notebook, fresh: &mut Notebook) {
    for cell in fresh.code_cells() {
        let (old, new) = (stored.outputs(cell.index), fresh.outputs(cell.index));
        if old != new && same(old, new, cell.tolerance()) {
            let old = old.to_vec();
            fresh.set_outputs(&cell, old);
        }
    }
}

/// The first cell whose outputs are not what is stored.
pub fn drift(stored: &Notebook, fresh: &Notebook) -> Option<Failure> {
    let cell = fresh.code_cells().into_iter().find(|cell| {
        let (old, new) = (flat(stored.outputs(cell.index)), flat(fresh.outputs(cell.index)));
        old != new
    })?;
    Some(describe(stored, fresh, &cell))
}

fn describe(stored: &Notebook, fresh: &Notebook, cell: &CodeCell) -> Failure {
    let (old, new) = (flat(stored.outputs(cell.index)), flat(fresh.outputs(cell.index)));
    if old.is_empty() {
        return Failure::of_cell(&fresh.name, cell.number, None, "has no output stored: run `make notebooks`");
    }
    let (at, old, new) = match (0..old.len().max(new.len())).find(|&at| old.get(at) != new.get(at)) {
        Some(at) => (at, old.get(at), new.get(at)),
        None => (0, None, None),
    };
    let part = old.or(new).map_or("", |(part, _)| part.as_str());
    let (old, new) = (old.map_or("", |(_, text)| text.as_str()), new.map_or("", |(_, text)| text.as_str()));
    let line = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    let shown = |text: &str| text.lines().nth(line).unwrap_or("(nothing)").chars().take(200).collect::<String>();
    let what = format!("output {} ({part}) drifted at its line {}", at + 1, line + 1);
    let detail = format!("stored: {}\nnow:    {}", shown(old), shown(new));
    Failure::of_cell(&fresh.name, cell.number, None, what).because(detail)
}

/// Outputs as (what it is, its text) in order, whether stored as one string or as lines; without numbers of cells.
fn flat(outputs: &[Value]) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    for output in outputs {
        match output["output_type"].as_str() {
            Some("stream") => parts.push((
                output["name"].as_str().unwrap_or("stream").to_owned(),
                text(&output["text"]).unwrap_or_default(),
            )),
            Some("error") => parts.push(("error".to_owned(), text_of_lines(&output["traceback"]))),
            _ => {
                let mut data: Vec<_> = output["data"].as_object().into_iter().flatten().collect();
                data.sort_by_key(|(mime, _)| mime.as_str());
                let content = |value: &Value| text(value).unwrap_or_else(|| value.to_string());
                parts.extend(data.into_iter().map(|(mime, value)| (mime.clone(), content(value))));
            }
        }
    }
    parts
}

fn text_of_lines(value: &Value) -> String {
    let lines = value.as_array().map_or(&[][..], Vec::as_slice);
    lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// Whether the outputs are equal but for numbers within the tolerance. Pixels have no numbers to compare: they count as
/// equal where a drawing of the same output does.
fn same(old: &[Value], new: &[Value], tolerance: f64) -> bool {
    if tolerance == 0.0 {
        return false;
    }
    let (old, new) = (flat(old), flat(new));
    let drawn = new.iter().any(|(part, _)| part == "image/svg+xml");
    old.len() == new.len()
        && old.iter().zip(&new).all(|((part, old), (new_part, new))| {
            part == new_part
                && (tolerance.is_infinite() || close(old, new, tolerance) || (drawn && part == "image/png"))
        })
}

/// Whether two texts are equal but for numbers within the tolerance, relative to the larger.
fn close(old: &str, new: &str, tolerance: f64) -> bool {
    let (mut old, mut new) = (old, new);
    while !old.is_empty() && !new.is_empty() {
        match (number(old), number(new)) {
            (Some((a, old_length)), Some((b, new_length))) => {
                if (a - b).abs() > tolerance * a.abs().max(b.abs()) {
                    return false;
                }
                (old, new) = (&old[old_length..], &new[new_length..]);
            }
            (None, None) => {
                let (mut olds, mut news) = (old.chars(), new.chars());
                if olds.next() != news.next() {
                    return false;
                }
                (old, new) = (olds.as_str(), news.as_str());
            }
            _ => return false,
        }
    }
    old.is_empty() && new.is_empty()
}

/// A decimal number at the start of the text, and its length.
fn number(text: &str) -> Option<(f64, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let mut end = sign + digits(sign);
    if end == sign {
        return None;
    }
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        if bytes.len() > end + 1 + sign && digits(end + 1 + sign) > 0 {
            end += 1 + sign + digits(end + 1 + sign);
        }
    }
    Some((text[..end].parse().ok()?, end))
}

#[cfg(test)]
mod tests {
    use super::{close, drift, settle};
    use crate::notebook::Notebook;
    use serde_json::{Value, json};

    fn with(outputs: Value, tags: Value) -> Notebook {
        let json = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
            {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "t"},
            {"cell_type": "code", "id": "c", "metadata": {"tags": tags}, "source": "x", "outputs": outputs},
        ]});
        Notebook::parse("t.ipynb".into(), json.to_string().as_bytes()).unwrap()
    }

    fn printed(text: &str) -> Value {
        json!([{"output_type": "stream", "name": "stdout", "text": text}])
    }

    #[test]
    fn the_first_differing_line_is_shown() {
        let (stored, fresh) = (with(printed("a\nloss 1\n"), json!([])), with(printed("a\nloss 2\n"), json!([])));
        let failure = drift(&stored, &fresh).unwrap();
        assert_eq!((failure.cell, failure.what.as_str()), (Some(1), "output 1 (stdout) drifted at its line 2"));
        assert_eq!(failure.detail, "stored: loss 1\nnow:    loss 2");
        let lines = with(json!([{"output_type": "stream", "name": "stdout", "text": ["a\n", "loss 1\n"]}]), json!([]));
        assert_eq!(drift(&stored, &lines), None, "the same text, stored as lines");
        let failure = drift(&with(json!([]), json!([])), &fresh).unwrap();
        assert!(failure.what.contains("no output stored"), "{failure}");
    }

    #[test]
    fn a_tolerance_keeps_what_is_stored() {
        let stored = with(printed("loss 2.0001, Δ -3e-4\n"), json!([]));
        let near = printed("loss 2.0002, Δ -3.0001e-4\n");
        let mut strict = with(near.clone(), json!([]));
        settle(&stored, &mut strict);
        assert!(drift(&stored, &strict).is_some());
        let mut tolerant = with(near, json!(["tolerance=1e-3"]));
        settle(&stored, &mut tolerant);
        assert_eq!(drift(&stored, &tolerant), None);
        assert_eq!(stored.outputs(1), tolerant.outputs(1));
        let mut far = with(printed("loss 2.5, Δ -3e-4\n"), json!(["tolerance=1e-3"]));
        settle(&stored, &mut far);
        assert!(drift(&stored, &far).is_some());
        let mut varying = with(printed("another text\n"), json!(["varies"]));
        settle(&stored, &mut varying);
        assert_eq!(drift(&stored, &varying), None);
    }

    #[test]
    fn numbers_are_compared_as_numbers_and_words_as_words() {
        assert!(close("a 1.50 b", "a 1.5 b", 1e-9));
        assert!(close("1e3", "1000", 1e-9));
        assert!(!close("1 m", "1 s", 1.0));
        assert!(!close("-1", "1", 0.5));
        assert!(!close("1", "1 ", 1.0));
        assert!(close("০ 2e", "০ 2e", 1e-9));
    }
}
