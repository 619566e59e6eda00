//! What a cell put out, as nbformat's outputs: one per stream, then the rich result; always in the same order.

use crate::notebook::lines;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// All that one cell put out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Captured {
    /// Lines of standard output.
    pub stdout: Vec<String>,
    /// Lines of standard error.
    pub stderr: Vec<String>,
    /// The value of the last expression, by MIME type.
    pub result: BTreeMap<String, String>,
    /// The message of an error, where the cell may fail.
    pub error: Option<String>,
}

impl Captured {
    /// As nbformat stores it, beside a cell of this number.
    pub fn outputs(&self, number: usize) -> Vec<Value> {
        let mut outputs = Vec::new();
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                let text: String = text.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
                outputs.push(json!({"output_type": "stream", "name": name, "text": lines(&text)}));
            }
        }
        if !self.result.is_empty() {
            let data: Map<String, Value> =
                self.result.iter().map(|(mime, content)| (mime.clone(), content_of(mime, content))).collect();
            outputs.push(json!({
                "output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data,
            }));
        }
        if let Some(message) = &self.error {
            let traceback: Vec<&str> = message.lines().collect();
            let value = traceback.first().copied().unwrap_or_default();
            outputs.push(json!({
                "output_type": "error", "ename": "Error", "evalue": value, "traceback": traceback,
            }));
        }
        outputs
    }
}

/// Text as lines, JSON as JSON, and what is base64 as one string.
fn content_of(mime: &str, content: &str) -> Value {
    if mime.contains("json") {
        return serde_json::from_str(content).unwrap_or_else(|_| json!(content));
    }
    if mime.starts_with("text/") || mime.contains("svg") || mime.contains("javascript") {
        return lines(content);
    }
    json!(content)
}

#[cfg(test)]
mod tests {
    use super::Captured;
    use serde_json::json;

    #[test]
    fn streams_merge_and_the_bundle_is_complete() {
        let captured = Captured {
            stdout: vec!["a".into(), "b".into()],
            result: [("text/plain", "x\ny"), ("image/png", "aGk="), ("application/json", "{\"k\":1}")]
                .map(|(mime, content)| (mime.to_owned(), content.to_owned()))
                .into(),
            ..Captured::default()
        };
        let expected = [
            json!({"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]}),
            json!({"output_type": "execute_result", "execution_count": 3, "metadata": {},
                "data": {"application/json": {"k": 1}, "image/png": "aGk=", "text/plain": ["x\n", "y"]}}),
        ];
        assert_eq!(captured.outputs(3), expected);
        assert_eq!(Captured::default().outputs(1), Vec::<serde_json::Value>::new());
    }

    #[test]
    fn an_expected_error_is_an_output() {
        let captured = Captured { error: Some("E0382: moved\nlet y = x;".into()), ..Captured::default() };
        let expected = json!({"output_type": "error", "ename": "Error", "evalue": "E0382: moved",
            "traceback": ["E0382: moved", "let y = x;"]});
        assert_eq!(captured.outputs(1), [expected]);
    }
}
