//! A file for `parquet` to read that ends where it ends: that library makes room for as many bytes as a damaged file
//! claims, and goes on asking at its end.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};

/// The file.
pub struct Bounded(pub File);

/// What is read from a place on; an error at the end of the file, where no part of a whole Parquet file leads.
pub struct Ended<R>(R);

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(bytes)? {
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
    type T = Ended<BufReader<File>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(Ended(self.0.get_read(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} lie beyond its end")));
        }
        self.0.get_bytes(start, length)
    }
}
