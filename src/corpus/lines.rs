//! Document files: one JSON object a line.

use super::{CorpusError, Document};
use crate::artifact::AtomicFile;
use crate::error::FileError;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Writes `documents` to `path`, one JSON object a line, whole or not at all.
///
/// # Errors
/// [`CorpusError::File`]; an old file is left as it was.
pub fn write_documents(path: &Path, documents: &[Document]) -> Result<(), CorpusError> {
    let mut writer = DocumentWriter::create(path)?;
    documents.iter().try_for_each(|document| writer.push(document))?;
    writer.finish()
}

/// Writes a document file document by document; it is in its place once finished.
pub struct DocumentWriter {
    path: PathBuf,
    file: AtomicFile,
}

impl DocumentWriter {
    /// Starts the file that will be at `path`.
    ///
    /// # Errors
    /// [`CorpusError::File`] when the directory cannot be written.
    pub fn create(path: &Path) -> Result<Self, CorpusError> {
        Ok(DocumentWriter { path: path.to_path_buf(), file: AtomicFile::create(path)? })
    }

    /// Adds a document.
    ///
    /// # Errors
    /// [`CorpusError::File`].
    pub fn push(&mut self, document: &Document) -> Result<(), CorpusError> {
        Ok(write_line(&mut self.file, document).map(drop).map_err(FileError::at("write", &self.path))?)
    }

    /// Puts the whole file in place.
    ///
    /// # Errors
    /// [`CorpusError::File`]; an old file is left as it was.
    pub fn finish(self) -> Result<(), CorpusError> {
        Ok(self.file.finish()?)
    }
}

/// Writes one document as a line; its bytes.
pub(super) fn write_line(out: &mut dyn Write, document: &Document) -> std::io::Result<u64> {
    let mut line = serde_json::to_vec(document)?;
    line.push(b'\n');
    out.write_all(&line)?;
    Ok(line.len() as u64)
}

/// Reads what [`write_documents`] wrote.
///
/// # Errors
/// [`CorpusError::Line`] for the first line that is no document, [`CorpusError::File`].
pub fn read_documents(path: &Path) -> Result<Vec<Document>, CorpusError> {
    documents(path)?.collect()
}

/// The documents of such a file one after the other, holding one at a time; errors as [`read_documents`].
///
/// # Errors
/// [`CorpusError::File`] when the file cannot be opened.
pub fn documents(path: &Path) -> Result<Documents<File>, CorpusError> {
    let file = File::open(path).map_err(FileError::at("open", path))?;
    Ok(Documents::new(file, path))
}

/// Documents read line by line.
pub struct Documents<R> {
    path: PathBuf,
    reader: BufReader<R>,
    line: usize,
    bytes: Vec<u8>,
}

impl<R: Read> Documents<R> {
    /// The documents of `file`, which is called `path` in messages.
    pub(super) fn new(file: R, path: &Path) -> Self {
        Documents { path: path.to_path_buf(), reader: BufReader::with_capacity(1 << 16, file), line: 0, bytes: vec![] }
    }

    fn read(&mut self) -> Result<Option<Document>, CorpusError> {
        let path = &self.path;
        self.bytes.clear();
        self.line += 1;
        if self.reader.read_until(b'\n', &mut self.bytes).map_err(FileError::at("read", path))? == 0 {
            return Ok(None);
        }
        let refuse = |message: String| CorpusError::Line { path: path.clone(), line: self.line, message };
        // A file that was cut at a line's end would pass unseen if the last line needed no end.
        if self.bytes.last() != Some(&b'\n') {
            return Err(refuse("the line is cut off: it does not end in a newline".to_owned()));
        }
        Ok(Some(serde_json::from_slice(&self.bytes).map_err(|e| refuse(e.to_string()))?))
    }
}

impl<R: Read> Iterator for Documents<R> {
    type Item = Result<Document, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Documents of a chunk, at most, and bytes of text after which it ends: what is worked on at a time.
pub(super) const CHUNK: usize = 1 << 14;
pub(super) const CHUNK_BYTES: usize = 8 << 20;

/// `documents` in pieces for all threads, in order.
pub fn chunks<E>(
    mut documents: impl Iterator<Item = Result<Document, E>>,
) -> impl Iterator<Item = Result<Vec<Document>, E>> {
    std::iter::from_fn(move || {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while chunk.len() < CHUNK && bytes < CHUNK_BYTES {
            match documents.next() {
                None => break,
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(document)) => {
                    bytes += document.text.len();
                    chunk.push(document);
                }
            }
        }
        (!chunk.is_empty()).then_some(Ok(chunk))
    })
}
