//! A notebook that failed: which, in which cell, on which line, and why.

use std::fmt;

/// Why a notebook does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The notebook's file name.
    pub notebook: String,
    /// The number of the code cell, as a reader sees it in brackets; none when the file as a whole is at fault.
    pub cell: Option<usize>,
    /// The line within the cell, or within the file where no cell is named.
    pub line: Option<usize>,
    /// What happened, in a few words.
    pub what: String,
    /// The evidence: a compiler's message, a panic's text, two lines that differ.
    pub detail: String,
}

impl Failure {
    /// A failure of the file as a whole.
    pub fn of_file(notebook: &str, what: impl Into<String>) -> Self {
        Self { notebook: notebook.to_owned(), cell: None, line: None, what: what.into(), detail: String::new() }
    }

    /// A failure of one cell.
    pub fn of_cell(notebook: &str, cell: usize, line: Option<usize>, what: impl Into<String>) -> Self {
        Self { cell: Some(cell), line, ..Self::of_file(notebook, what) }
    }

    /// The same with its evidence.
    pub fn because(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.notebook)?;
        if let Some(cell) = self.cell {
            write!(formatter, ", cell [{cell}]")?;
        }
        if let Some(line) = self.line {
            write!(formatter, ", line {line}")?;
        }
        write!(formatter, ": {}", self.what)?;
        for line in self.detail.trim_end().lines() {
            write!(formatter, "\n    {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn it_names_notebook_cell_and_line() {
        let failure = Failure::of_cell("03-model.ipynb", 4, Some(2), "panicked").because("index out of bounds\n");
        assert_eq!(failure.to_string(), "03-model.ipynb, cell [4], line 2: panicked\n    index out of bounds");
        assert_eq!(Failure::of_file("a.ipynb", "is empty").to_string(), "a.ipynb: is empty");
    }
}
