//! Documents between two steps: on the disk, so that a corpus may be larger than the memory.

use super::lines::{Documents, write_line};
use super::{CorpusError, Document};
use crate::artifact::boundary::{Guarded, guard};
use crate::error::FileError;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// An unnamed file of documents that is being written; it goes when it is dropped.
pub(super) struct SpoolWriter {
    directory: PathBuf,
    file: BufWriter<Guarded<File>>,
    /// Where each document begins, and where the last ends.
    starts: Vec<u64>,
}

impl SpoolWriter {
    pub(super) fn create(directory: &Path) -> Result<Self, CorpusError> {
        std::fs::create_dir_all(directory).map_err(FileError::at("create the directory", directory))?;
        let file = guard(|| tempfile::tempfile_in(directory)).map_err(FileError::at("write in", directory))?;
        let file = BufWriter::with_capacity(1 << 16, Guarded(file));
        Ok(SpoolWriter { directory: directory.to_path_buf(), file, starts: vec![0] })
    }

    pub(super) fn push(&mut self, document: &Document) -> Result<(), CorpusError> {
        let size = write_line(&mut self.file, document).map_err(FileError::at("write in", &self.directory))?;
        let end = self.starts.last().copied().unwrap_or(0) + size;
        self.starts.push(end);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Spool, CorpusError> {
        let SpoolWriter { directory, file, starts } = self;
        let flushed = file.into_inner().map_err(std::io::IntoInnerError::into_error);
        let file = flushed.map_err(FileError::at("write in", &directory))?.0;
        Ok(Spool { directory, file, starts })
    }
}

/// The whole file, to be read as often as needed.
pub(super) struct Spool {
    directory: PathBuf,
    file: File,
    starts: Vec<u64>,
}

impl Spool {
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// All documents, in order.
    pub(super) fn documents(&self) -> Result<Documents<&File>, CorpusError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(FileError::at("read in", &self.directory))?;
        Ok(Documents::new(file, &self.directory))
    }

    /// One document; the place of a running [`Spool::documents`] is put back.
    pub(super) fn get(&self, i: usize) -> Result<Document, CorpusError> {
        let at = FileError::at("read in", &self.directory);
        let size = (self.starts[i + 1] - self.starts[i]) as usize;
        let bytes = read_at(&self.file, self.starts[i], size).map_err(at)?;
        serde_json::from_slice(&bytes).map_err(|e| CorpusError::Line {
            path: self.directory.clone(),
            line: i + 1,
            message: e.to_string(),
        })
    }
}

/// `size` bytes from `start` on; the file's own place stays.
pub(super) fn read_at(mut file: &File, start: u64, size: usize) -> std::io::Result<Vec<u8>> {
    let before = file.stream_position()?;
    let mut bytes = vec![0; size];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut bytes)?;
    file.seek(SeekFrom::Start(before))?;
    Ok(bytes)
}

/// An unnamed file of numbers of equal size, a record each.
pub(super) struct Records {
    file: BufWriter<Guarded<File>>,
    path: PathBuf,
    size: usize,
}

impl Records {
    pub(super) fn create(directory: &Path, size: usize) -> Result<Self, CorpusError> {
        let file = guard(|| tempfile::tempfile_in(directory)).map_err(FileError::at("write in", directory))?;
        Ok(Records { file: BufWriter::with_capacity(1 << 16, Guarded(file)), path: directory.to_path_buf(), size })
    }

    pub(super) fn push(&mut self, record: &[u8]) -> Result<(), CorpusError> {
        Ok(self.file.write_all(record).map_err(FileError::at("write in", &self.path))?)
    }

    /// `count` records from the `first` on.
    pub(super) fn read(&mut self, first: usize, count: usize) -> Result<Vec<u8>, CorpusError> {
        self.file.flush().map_err(FileError::at("write in", &self.path))?;
        let start = first as u64 * self.size as u64;
        Ok(read_at(&self.file.get_ref().0, start, count * self.size).map_err(FileError::at("read in", &self.path))?)
    }
}
