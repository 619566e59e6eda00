//! Document files: one JSON object a line.

use super::{CorpusError, Document};
use crate::artifact::write_atomic_with;
use crate::error::FileError;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Writes `documents` to `path`, one JSON object a line, whole or not at all.
///
/// # Errors
/// [`CorpusError::File`]; an old file is left as it was.
pub fn write_documents(path: &Path, documents: &[Document]) -> Result<(), CorpusError> {
    write_atomic_with(path, |out| {
        for document in documents {
            serde_json::to_writer(&mut *out, document)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Reads what [`write_documents`] wrote.
///
/// # Errors
/// [`CorpusError::Line`] for the first line that is no document, [`CorpusError::File`].
pub fn read_documents(path: &Path) -> Result<Vec<Document>, CorpusError> {
    let file = std::fs::File::open(path).map_err(FileError::at("open", path))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut documents, mut bytes) = (Vec::new(), Vec::new());
    for line in 1.. {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes).map_err(FileError::at("read", path))? == 0 {
            break;
        }
        let refuse = |message: String| CorpusError::Line { path: path.to_path_buf(), line, message };
        // A file that was cut at a line's end would pass unseen if the last line needed no end.
        if bytes.last() != Some(&b'\n') {
            return Err(refuse("the line is cut off: it does not end in a newline".to_owned()));
        }
        documents.push(serde_json::from_slice(&bytes).map_err(|e| refuse(e.to_string()))?);
    }
    Ok(documents)
}
