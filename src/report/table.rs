//! Tables: a polars frame of text, shown aligned on a terminal, as Markdown or as CSV.

use super::ReportError;
use super::page::rich;
use polars::prelude::{Column, CsvWriter, DataFrame, SerWriter};
use std::fmt::Write;

/// A table of text cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    name: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(name: &str, header: &[&str]) -> Self {
        Table { name: name.to_owned(), header: header.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new() }
    }

    /// A table from CSV with a header line; `None` for text that is none.
    pub fn from_csv(name: &str, text: &str) -> Option<Self> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header: Vec<&str> = reader.headers().ok()?.iter().collect();
        let mut table = Table::new(name, &header);
        for record in reader.records() {
            table.push(record.ok()?.iter().map(str::to_owned).collect());
        }
        Some(table)
    }

    /// Adds a row; cells that are missing stay empty, those past the header are dropped.
    pub fn push(&mut self, mut row: Vec<String>) {
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    /// The table without one of its columns; all of it when it has no such column.
    pub fn without(mut self, column: &str) -> Self {
        if let Some(at) = self.header.iter().position(|name| name == column) {
            self.header.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }

    /// The table as a polars frame of strings.
    ///
    /// # Errors
    /// [`ReportError::Table`] when two columns have one name.
    pub fn to_frame(&self) -> Result<DataFrame, ReportError> {
        let column = |(i, name): (usize, &String)| {
            let cells: Vec<&str> = self.rows.iter().map(|row| row[i].as_str()).collect();
            Column::new(name.as_str().into(), cells)
        };
        let columns = self.header.iter().enumerate().map(column).collect();
        DataFrame::new(self.rows.len(), columns).map_err(|e| self.failed(e))
    }

    /// The table as CSV with a header line.
    ///
    /// # Errors
    /// [`ReportError::Table`].
    pub fn to_csv(&self) -> Result<String, ReportError> {
        let mut bytes = Vec::new();
        CsvWriter::new(&mut bytes).finish(&mut self.to_frame()?).map_err(|e| self.failed(e))?;
        String::from_utf8(bytes).map_err(|e| self.failed(e))
    }

    /// The table as Markdown.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> = self.header.iter().map(|_| "---".to_owned()).collect();
        let mut text = line(&self.header) + &line(&rule);
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }

    /// The table as an HTML `table` element: the first cell of a row is its heading.
    pub fn to_html(&self) -> String {
        let row = |cells: &Vec<String>| {
            let (first, rest) = cells.split_first().map_or((String::new(), String::new()), |(first, rest)| {
                let rest: Vec<String> = rest.iter().map(|cell| format!("<td>{}</td>", rich(cell))).collect();
                (format!("<th scope=\"row\">{}</th>", rich(first)), rest.concat())
            });
            format!("<tr>{first}{rest}</tr>\n")
        };
        let head: Vec<String> =
            self.header.iter().map(|name| format!("<th scope=\"col\">{}</th>", rich(name))).collect();
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        format!(
            "<table>\n<thead>\n<tr>{}</tr>\n</thead>\n<tbody>\n{}</tbody>\n</table>\n",
            head.concat(),
            rows.concat()
        )
    }

    /// Rows, the header aside.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table for a terminal: columns aligned, long cells wrapped to `width` characters in all.
    pub fn to_text(&self, width: usize) -> String {
        let widths = self.widths(width);
        let mut text = String::new();
        let rule: Vec<String> = widths.iter().map(|w| "─".repeat(*w)).collect();
        write_row(&mut text, &self.header, &widths);
        let _ = writeln!(text, "{}", rule.join("  "));
        for row in &self.rows {
            write_row(&mut text, row, &widths);
        }
        text
    }

    /// Width of each column: its longest cell, shrunk from the widest down until all fit.
    fn widths(&self, total: usize) -> Vec<usize> {
        let longest = |i: usize| self.rows.iter().chain([&self.header]).map(|row| row[i].chars().count()).max();
        let mut widths: Vec<usize> = (0..self.header.len()).map(|i| longest(i).unwrap_or(0).max(1)).collect();
        let limit = total.saturating_sub(2 * widths.len().saturating_sub(1));
        while widths.iter().sum::<usize>() > limit {
            match widths.iter_mut().max() {
                Some(widest) if *widest > 12 => *widest -= 1,
                _ => break,
            }
        }
        widths
    }

    fn failed(&self, error: impl ToString) -> ReportError {
        ReportError::Table { name: self.name.clone(), message: error.to_string() }
    }
}

fn write_row(text: &mut String, cells: &[String], widths: &[usize]) {
    let wrapped: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
    for i in 0..height {
        let part = |(lines, width): (&Vec<String>, &usize)| {
            let line = lines.get(i).map_or("", String::as_str);
            format!("{line}{}", " ".repeat(width.saturating_sub(line.chars().count())))
        };
        let line = wrapped.iter().zip(widths).map(part).collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Breaks a cell at spaces into lines of at most `width` characters; a longer word stays whole.
fn wrap(cell: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in cell.split(' ') {
        let last = lines.len() - 1;
        let needed = lines[last].chars().count() + 1 + word.chars().count();
        if lines[last].is_empty() {
            lines[last] += word;
        } else if needed <= width {
            lines[last] += " ";
            lines[last] += word;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("t", &["name", "value"]);
        table.push(vec!["a, \"b\"".to_owned(), "1 | 2".to_owned()]);
        table.push(vec!["one two three four five six".to_owned()]);
        table
    }

    #[test]
    fn three_forms_of_one_table() {
        assert_eq!(table().to_csv().unwrap(), "name,value\n\"a, \"\"b\"\"\",1 | 2\none two three four five six,\"\"\n");
        assert!(table().to_markdown().contains("| a, \"b\" | 1 \\| 2 |\n"));
        let text = table().to_text(24);
        assert!(text.lines().all(|line| line.chars().count() <= 24), "{text}");
        assert!(text.contains("one two three\nfour five six"), "{text}");
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        assert!(Table::new("t", &["a", "a"]).to_csv().is_err());
    }
}
