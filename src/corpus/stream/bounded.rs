//! A file for `parquet` to read that ends where it ends: that library makes room for as many bytes as a damaged file
//! claims, and goes on asking at its end. What the file says of itself is walked over before the library sees it.

use super::thrift;
use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek};

/// What a Parquet file ends with: the length of its footer and four letters.
const TAIL: u64 = 8;

/// The file.
pub struct Bounded(pub File);

/// What is read from a place on; an error at the end of the file, where no part of a whole Parquet file leads.
pub struct Ended {
    reader: BufReader<File>,
    /// Whether a page's header begins here, if anything is read at all.
    is_header: bool,
}

impl Ended {
    /// Walks over the header, and goes back to where it begins.
    fn walk(&mut self) -> std::io::Result<()> {
        let start = self.reader.stream_position()?;
        thrift::walk(self, &thrift::PAGE_HEADER).map_err(std::io::Error::other)?;
        let length = self.reader.stream_position()? - start;
        self.reader.seek_relative(-(length as i64))
    }
}

impl Read for Ended {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if std::mem::take(&mut self.is_header) {
            self.walk()?;
        }
        match self.reader.read(bytes)? {
            0 if !bytes.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}

impl Length for Bounded {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Bounded {
    type T = Ended;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        // Read piece by piece are the headers of pages, and the tail.
        let is_header = start.checked_add(TAIL).is_some_and(|end| end < self.len());
        Ok(Ended { reader: self.0.get_read(start)?, is_header })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} lie beyond its end")));
        }
        let bytes = self.0.get_bytes(start, length)?;
        // Read as a whole are pages, and the footer.
        if start + length as u64 + TAIL == self.len() {
            thrift::walk(&mut bytes.as_ref(), &thrift::FOOTER)?;
        }
        Ok(bytes)
    }
}
