//! What a slice of the text became, and where in the files it stands.

use crate::artifact::{Hash, hash_bytes, write_atomic};
use crate::corpus::CorpusError;
use crate::corpus::shard::{Shard, ShardInfo, write_shard};
use crate::error::FileError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A row: of which file, row group and place in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Number of the file in the order of the manifest.
    pub file: u64,
    /// Row group of the file.
    pub row_group: u64,
    /// Row of the row group.
    pub row: u64,
}

/// One slice of the text as tokens, on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// Its first row.
    pub from: Position,
    /// The first row after it.
    pub to: Position,
    /// Whether the text ends here.
    pub is_last: bool,
    /// Hash of the files, the tokenizer and the rules of cleaning: what other chunks must share.
    pub made_from: Hash,
    /// Hash of the training tokens.
    pub train: Hash,
    /// Hash of the held-out tokens.
    pub held_out: Hash,
    /// Training tokens.
    pub tokens: u64,
    /// Training documents.
    pub documents: u64,
    /// Held-out documents.
    pub held_out_documents: u64,
    /// Rows without text.
    pub empty: u64,
    /// Documents dropped because they share text with an evaluation.
    pub contaminated: u64,
    /// UTF-8 bytes of the training documents, normalised.
    pub bytes: u64,
    /// Characters of the training documents, normalised.
    pub characters: u64,
    /// Hash of all of the above.
    pub seal: Hash,
}

/// Tokens of the documents of a slice.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) train: Vec<Vec<u32>>,
    pub(super) held_out: Vec<Vec<u32>>,
}

fn name(number: usize, kind: &str) -> String {
    format!("{number:05}{kind}")
}

impl Chunk {
    /// Path of the training tokens of chunk `number`.
    pub fn train_path(directory: &Path, number: usize) -> PathBuf {
        directory.join(name(number, ".bin"))
    }

    /// Path of its held-out tokens.
    pub fn held_out_path(directory: &Path, number: usize) -> PathBuf {
        directory.join(name(number, ".held-out.bin"))
    }

    /// Writes the tokens, then what is said about them: a chunk that can be read is whole.
    pub(super) fn write(
        mut self,
        directory: &Path,
        number: usize,
        tokens: Tokens,
        vocabulary: (Hash, usize),
    ) -> Result<Self, CorpusError> {
        let write = |path: &Path, documents: Vec<Vec<u32>>| {
            write_shard(path, vocabulary.0, vocabulary.1, documents.into_iter())
        };
        let info: ShardInfo = write(&Self::train_path(directory, number), tokens.train)?;
        (self.train, self.tokens, self.documents) = (info.content, info.tokens, info.documents);
        let info = write(&Self::held_out_path(directory, number), tokens.held_out)?;
        (self.held_out, self.held_out_documents) = (info.content, info.documents);
        self.seal = self.sealed();
        let path = directory.join(name(number, ".json"));
        let text = serde_json::to_vec(&self).unwrap_or_else(|e| unreachable!("a chunk is plain data: {e}"));
        write_atomic(&path, &text)?;
        Ok(self)
    }

    /// Chunk `number` with its training tokens; `None` when it is not there, or not what its description says.
    pub(super) fn read(directory: &Path, number: usize, tokenizer: Hash) -> Result<Option<(Self, Shard)>, CorpusError> {
        let path = directory.join(name(number, ".json"));
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(FileError::at("read", &path)(e).into()),
        };
        let Ok(chunk) = serde_json::from_slice::<Chunk>(&text) else { return Ok(None) };
        let is_sealed = chunk.seal == chunk.sealed();
        let train = Shard::open(&Self::train_path(directory, number), tokenizer).ok();
        let held_out = Shard::open(&Self::held_out_path(directory, number), tokenizer).ok();
        let is_whole = is_sealed && held_out.is_some_and(|shard| shard.info().content == chunk.held_out);
        let train = train.filter(|shard| is_whole && shard.info().content == chunk.train);
        Ok(train.map(|shard| (chunk, shard)))
    }

    /// The hash of everything else that is said here.
    fn sealed(&self) -> Hash {
        let rest = Chunk { seal: Hash::default(), ..*self };
        hash_bytes(&serde_json::to_vec(&rest).unwrap_or_else(|e| unreachable!("a chunk is plain data: {e}")))
    }
}
