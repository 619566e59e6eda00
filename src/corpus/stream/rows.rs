//! The text column of Parquet files, in slices of bounded size.

use super::Position;
use super::bounded::Bounded;
use crate::corpus::CorpusError;
use crate::error::FileError;
use parquet::basic::Type as Physical;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Name of the column that holds the documents.
const COLUMN: &str = "text";

/// Documents in order, with where they end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The texts; a row without one, or with bytes that are no UTF-8, has none.
    pub texts: Vec<Option<String>>,
    /// The first row after them.
    pub end: Position,
    /// Whether that is the end of the file.
    pub is_last: bool,
}

/// The rows of one Parquet file.
pub struct Rows {
    path: PathBuf,
    reader: SerializedFileReader<Bounded>,
    column: usize,
    optional: bool,
    at: Position,
    /// The open row group, up to `at.row`.
    group: Option<ColumnReader>,
    /// Room for the row at hand: whether it has a text, and its bytes.
    levels: Vec<i16>,
    found: Vec<ByteArray>,
}

impl Rows {
    /// Opens the file at `path` at a row of a row group.
    ///
    /// # Errors
    /// [`CorpusError::Parquet`] when it is no Parquet, has no text column of that name or no such row.
    pub fn open(path: &Path, at: Position) -> Result<Self, CorpusError> {
        let file = File::open(path).map_err(FileError::at("open", path))?;
        let failed = |message: String| CorpusError::Parquet { path: path.to_path_buf(), message };
        let reader = unbroken(path, || SerializedFileReader::new(Bounded(file)))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let found = schema.columns().iter().position(|c| c.path().string() == COLUMN);
        let column = found.ok_or_else(|| failed(format!("it has no column `{COLUMN}`")))?;
        let description = schema.column(column);
        if description.physical_type() != Physical::BYTE_ARRAY || description.max_rep_level() > 0 {
            return Err(failed(format!("its column `{COLUMN}` does not hold one text a row")));
        }
        let optional = description.max_def_level() > 0;
        let (path, levels, found) = (path.to_path_buf(), Vec::new(), Vec::new());
        let mut rows = Rows { path, reader, column, optional, at, group: None, levels, found };
        if at.row_group < rows.groups() || (at.row_group, at.row) != (rows.groups(), 0) {
            rows.enter(at.row)?;
        }
        Ok(rows)
    }

    /// The next row.
    pub fn at(&self) -> Position {
        self.at
    }

    fn groups(&self) -> u64 {
        self.reader.num_row_groups() as u64
    }

    /// Rows of the file, as it says.
    pub fn total(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// Reads texts until they take `bytes` or the file ends; at least one row where there is one.
    ///
    /// # Errors
    /// [`CorpusError::Parquet`] when a page is damaged.
    pub fn slice(&mut self, bytes: usize) -> Result<Slice, CorpusError> {
        let (mut texts, mut size) = (Vec::new(), 0);
        while size < bytes {
            let Some(text) = self.next_row()? else {
                return Ok(Slice { texts, end: self.at, is_last: true });
            };
            // A damaged file can claim any number of rows without a text.
            size += size_of_val(&text) + text.as_ref().map_or(0, String::len);
            texts.push(text);
        }
        Ok(Slice { texts, end: self.at, is_last: false })
    }

    fn next_row(&mut self) -> Result<Option<Option<String>>, CorpusError> {
        loop {
            if self.group.is_none() {
                if self.at.row_group >= self.groups() {
                    return Ok(None);
                }
                self.enter(0)?;
            }
            if let Some(text) = self.decode()? {
                self.at.row += 1;
                return Ok(Some(text));
            }
            self.group = None;
            self.at = Position { row_group: self.at.row_group + 1, row: 0, ..self.at };
        }
    }

    /// Opens the row group at hand and skips its first rows.
    fn enter(&mut self, rows: u64) -> Result<(), CorpusError> {
        let index = self.at.row_group as usize;
        if index >= self.reader.num_row_groups() {
            let message = format!("it has {} row groups, row group {index} was asked for", self.groups());
            return Err(self.failed(&ParquetError::General(message)));
        }
        let open = || self.reader.get_row_group(index)?.get_column_reader(self.column);
        let mut column = unbroken(&self.path, open)?;
        let ColumnReader::ByteArrayColumnReader(values) = &mut column else {
            return Err(self.failed(&ParquetError::General("its text column has another type".to_owned())));
        };
        let skipped = unbroken(&self.path, || values.skip_records(rows as usize))? as u64;
        if skipped != rows {
            let message = format!("row group {index} has {skipped} rows, row {rows} was asked for");
            return Err(self.failed(&ParquetError::General(message)));
        }
        self.group = Some(column);
        Ok(())
    }

    /// Decodes the next row of the row group; `None` at its end. One at a time: a row may be of any size, and beside
    /// those given out no more is held than the page that it stands in.
    fn decode(&mut self) -> Result<Option<Option<String>>, CorpusError> {
        let Some(ColumnReader::ByteArrayColumnReader(values)) = &mut self.group else { return Ok(None) };
        self.levels.clear();
        self.found.clear();
        let wanted = self.optional.then_some(&mut self.levels);
        let (rows, ..) = unbroken(&self.path, || values.read_records(1, wanted, None, &mut self.found))?;
        if rows == 0 {
            return Ok(None);
        }
        // A row without a text brings no bytes.
        let text = self.found.pop().and_then(|bytes| std::str::from_utf8(bytes.data()).ok().map(str::to_owned));
        Ok(Some(text))
    }

    fn failed(&self, error: &ParquetError) -> CorpusError {
        CorpusError::Parquet { path: self.path.clone(), message: error.to_string() }
    }
}

/// Asks the library; some damaged pages make `parquet` 60.1.0 panic, which is no more than an error of the file.
fn unbroken<T>(path: &Path, ask: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, CorpusError> {
    let failed = |message: String| CorpusError::Parquet { path: path.to_path_buf(), message };
    match catch_unwind(AssertUnwindSafe(ask)) {
        Ok(answer) => answer.map_err(|error| failed(error.to_string())),
        Err(_) => Err(failed("a page is damaged, its reader broke off".to_owned())),
    }
}
