//! A notebook file: the JSON of nbformat 4, read without loss and written as Jupyter itself writes it.

use crate::failure::Failure;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// GitHub shows no larger one, and nobody wants to download it.
const LARGEST_BYTES: usize = 1_000_000;

/// A notebook in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Notebook {
    /// The name of its file, for messages.
    pub name: String,
    json: Value,
}

/// A code cell: where it is, what it says, how it is tagged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeCell {
    /// Its index among all cells.
    pub index: usize,
    /// Its number among the code cells, from one: what stands in brackets beside it.
    pub number: usize,
    /// Its source.
    pub source: String,
    /// Its tags.
    pub tags: BTreeSet<String>,
}

impl CodeCell {
    /// Whether it may write to standard error.
    pub fn allows_stderr(&self) -> bool {
        self.tags.contains("allow-stderr") || self.allows_failure()
    }

    /// Whether it may fail: to show a compiler's message, a panic or an error.
    pub fn allows_failure(&self) -> bool {
        self.tags.contains("raises-exception")
    }

    /// How far apart the numbers in its outputs may be from one run to the next, relative to the larger:
    /// `tolerance=1e-3` as a tag; infinite where the tag is `varies`.
    pub fn tolerance(&self) -> f64 {
        if self.tags.contains("varies") {
            return f64::INFINITY;
        }
        self.tags.iter().find_map(|tag| tag.strip_prefix("tolerance=")?.parse().ok()).unwrap_or(0.0)
    }
}

impl Notebook {
    /// Reads a notebook.
    ///
    /// # Errors
    /// The file cannot be read, is not JSON (the line is named) or not a notebook of format 4.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let bytes = std::fs::read(path).map_err(|error| Failure::of_file(&name, format!("cannot be read: {error}")))?;
        Self::parse(name, &bytes)
    }

    /// Reads a notebook from the bytes of its file.
    ///
    /// # Errors
    /// They are not JSON, or not a notebook of format 4 whose cells have what cells must have.
    pub fn parse(name: String, bytes: &[u8]) -> Result<Self, Failure> {
        let json: Value = serde_json::from_slice(bytes).map_err(|error| {
            let failure = Failure::of_file(&name, format!("is not valid JSON: {error}"));
            Failure { line: Some(error.line()), ..failure }
        })?;
        if json["nbformat"] != json!(4) {
            return Err(Failure::of_file(&name, format!("has nbformat {}, not 4", json["nbformat"])));
        }
        let cells = json["cells"].as_array().ok_or_else(|| Failure::of_file(&name, "has no list of cells"))?;
        let mut ids = BTreeSet::new();
        for (index, cell) in cells.iter().enumerate() {
            let wrong = |what: &str| Err(Failure::of_file(&name, format!("cell {} of all cells {what}", index + 1)));
            if !matches!(cell["cell_type"].as_str(), Some("code" | "markdown" | "raw")) {
                return wrong("is neither code nor markdown nor raw");
            }
            if text(&cell["source"]).is_none() {
                return wrong("has no source");
            }
            if cell["id"].as_str().is_some_and(|id| !ids.insert(id)) {
                return wrong("has the id of an earlier one");
            }
        }
        Ok(Self { name, json })
    }

    /// Its code cells in order.
    pub fn code_cells(&self) -> Vec<CodeCell> {
        let code = self.cells().iter().enumerate().filter(|(_, cell)| cell["cell_type"] == "code");
        code.zip(1..)
            .map(|((index, cell), number)| CodeCell {
                index,
                number,
                source: text(&cell["source"]).unwrap_or_default(),
                tags: tags(cell),
            })
            .collect()
    }

    /// The outputs stored with a cell.
    pub fn outputs(&self, index: usize) -> &[Value] {
        self.cells()[index]["outputs"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Puts outputs under a cell, and its number beside it.
    pub fn set_outputs(&mut self, cell: &CodeCell, outputs: Vec<Value>) {
        let target = &mut self.json["cells"][cell.index];
        target["outputs"] = Value::Array(outputs);
        target["execution_count"] = json!(cell.number);
    }

    /// The file as it belongs in the repository: sources and texts as lists of lines, keys in order, cells numbered,
    /// nothing that tells of a time or of a program's version.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut json = self.json.clone();
        normalise_metadata(&mut json["metadata"]);
        json["nbformat_minor"] = json!(json["nbformat_minor"].as_u64().unwrap_or(0).max(5));
        if let Some(cells) = json["cells"].as_array_mut() {
            let mut number = 0;
            for (index, cell) in cells.iter_mut().enumerate() {
                number += usize::from(cell["cell_type"] == "code");
                normalise_cell(cell, index, number);
            }
        }
        json.sort_all_objects();
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        // A value in memory always serialises.
        let _ = serde::Serialize::serialize(&json, &mut serializer);
        bytes.push(b'\n');
        bytes
    }

    /// What the file as a whole must not be.
    ///
    /// # Errors
    /// It is too large, or an output names a folder of this machine.
    pub fn inspect(&self, machine_paths: &[String]) -> Result<(), Failure> {
        let bytes = self.to_bytes().len();
        if bytes > LARGEST_BYTES {
            let what = format!("is {bytes} bytes, more than {LARGEST_BYTES}: show less, or a sparser figure");
            return Err(Failure::of_file(&self.name, what));
        }
        for cell in self.code_cells() {
            let outputs = Value::from(self.outputs(cell.index)).to_string();
            if let Some(path) = machine_paths.iter().find(|path| outputs.contains(path.as_str())) {
                let what = format!("an output names a folder of this machine, {path}");
                return Err(Failure::of_cell(&self.name, cell.number, None, what));
            }
        }
        Ok(())
    }

    fn cells(&self) -> &[Value] {
        self.json["cells"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// A text of nbformat: one string, or a list of lines.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// A text as nbformat stores it: a list of lines, each with its end.
pub fn lines(text: &str) -> Value {
    text.split_inclusive('\n').collect::<Vec<_>>().into()
}

fn tags(cell: &Value) -> BTreeSet<String> {
    let tags = cell["metadata"]["tags"].as_array().map_or(&[][..], Vec::as_slice);
    tags.iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect()
}

fn normalise_metadata(metadata: &mut Value) {
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata["kernelspec"] = json!({"display_name": "Rust", "language": "rust", "name": "rust"});
    metadata["language_info"] = json!({
        "codemirror_mode": "rust", "file_extension": ".rs", "mimetype": "text/rust", "name": "Rust",
        "pygment_lexer": "rust",
    });
}

fn normalise_cell(cell: &mut Value, index: usize, number: usize) {
    let source = text(&cell["source"]).unwrap_or_default();
    cell["source"] = lines(&source);
    if cell["id"].as_str().is_none_or(str::is_empty) {
        cell["id"] = json!(format!("cell-{index:02}"));
    }
    if !cell["metadata"].is_object() {
        cell["metadata"] = Value::Object(Map::new());
    }
    if let Some(metadata) = cell["metadata"].as_object_mut() {
        // Times, and whether somebody had folded the cell.
        for key in ["execution", "ExecuteTime", "collapsed", "scrolled"] {
            metadata.shift_remove(key);
        }
    }
    if cell["cell_type"] == "code" {
        if !cell["outputs"].is_array() {
            cell["outputs"] = json!([]);
        }
        let executed = cell["outputs"].as_array().is_some_and(|outputs| !outputs.is_empty());
        let counted = !cell["execution_count"].is_null();
        cell["execution_count"] = if executed || counted { json!(number) } else { Value::Null };
    }
}

#[cfg(test)]
mod tests {
    use super::{Notebook, text};
    use serde_json::{Value, json};

    fn notebook(cells: Value) -> Notebook {
        let json = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells});
        Notebook::parse("t.ipynb".into(), json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_broken_file_is_named_with_its_line() {
        let failure = Notebook::parse("t.ipynb".into(), b"{\n \"cells\": [\n  1,,\n ]\n}").unwrap_err();
        assert_eq!((failure.notebook.as_str(), failure.line), ("t.ipynb", Some(3)));
        assert!(failure.what.contains("not valid JSON"), "{failure}");
        let failure = Notebook::parse("t.ipynb".into(), b"{\"nbformat\": 3}").unwrap_err();
        assert!(failure.what.contains("nbformat 3"), "{failure}");
    }

    #[test]
    fn code_cells_are_numbered_from_one_and_keep_their_tags() {
        let notebook = notebook(json!([
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# T"},
            {"cell_type": "code", "id": "b", "metadata": {}, "source": ["let x = 1;\n", "x"], "outputs": []},
            {"cell_type": "code", "id": "c", "metadata": {"tags": ["raises-exception", "tolerance=1e-3"]}, "source": "y",
             "outputs": []},
        ]));
        let cells = notebook.code_cells();
        assert_eq!(cells.iter().map(|cell| (cell.index, cell.number)).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
        assert_eq!(cells[0].source, "let x = 1;\nx");
        assert!(!cells[0].allows_stderr() && cells[1].allows_stderr() && cells[1].allows_failure());
        assert_eq!((cells[0].tolerance(), cells[1].tolerance()), (0.0, 1e-3));
    }

    #[test]
    fn what_is_written_is_what_jupyter_writes_without_times_and_versions() {
        let json = json!({"nbformat_minor": 5, "nbformat": 4,
            "metadata": {"language_info": {"name": "Rust", "version": "1.2"}},
            "cells": [{"source": "x\ny", "cell_type": "code", "id": "b", "execution_count": 7, "outputs": [],
                       "metadata": {"execution": {"iopub.status.busy": "now"}, "tags": ["a"]}}]});
        let notebook = Notebook::parse("t.ipynb".into(), json.to_string().as_bytes()).unwrap();
        let bytes = notebook.to_bytes();
        let expected = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 1,\n   \"id\": \"b\",\n   \
            \"metadata\": {\n    \"tags\": [\n     \"a\"\n    ]\n   },\n   \"outputs\": [],\n   \"source\": [\n    \
            \"x\\n\",\n    \"y\"\n   ]\n  }\n ],\n";
        let written = String::from_utf8(bytes.clone()).unwrap();
        assert!(written.starts_with(expected), "{written}");
        assert!(!written.contains("version") && written.ends_with("}\n"), "{written}");
        let again = Notebook::parse("t.ipynb".into(), &bytes).unwrap();
        assert_eq!(again.to_bytes(), bytes);
    }

    #[test]
    fn two_cells_of_one_id_are_refused() {
        let cell = json!({"cell_type": "markdown", "id": "a", "metadata": {}, "source": ""});
        let json = json!({"nbformat": 4, "metadata": {}, "cells": [cell, cell]});
        let failure = Notebook::parse("t.ipynb".into(), json.to_string().as_bytes()).unwrap_err();
        assert!(failure.what.contains("cell 2 of all cells has the id"), "{failure}");
    }

    #[test]
    fn a_large_file_and_a_path_of_this_machine_are_found() {
        let output = |text: &str| json!([{"output_type": "stream", "name": "stdout", "text": text}]);
        let cell = |text: &str| json!([{"cell_type": "code", "id": "a", "metadata": {}, "source": "", "outputs": output(text)}]);
        let paths = ["/home/somebody".to_owned()];
        assert_eq!(notebook(cell("fine")).inspect(&paths), Ok(()));
        let failure = notebook(cell("in /home/somebody/x")).inspect(&paths).unwrap_err();
        assert_eq!(failure.cell, Some(1));
        let failure = notebook(cell(&"x".repeat(1_100_000))).inspect(&paths).unwrap_err();
        assert!(failure.what.contains("more than 1000000"), "{failure}");
        assert_eq!(text(&json!(["a\n", "b"])).as_deref(), Some("a\nb"));
    }
}
