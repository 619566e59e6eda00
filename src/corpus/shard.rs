//! Token shards: the tokens of one language in one memory-mapped file.
//!
//! Layout, little-endian: a header of [`HEADER`] bytes, then the tokens, 2 bytes each when the
//! vocabulary fits, else 4.
//!
//! | bytes | holds |
//! |---|---|
//! | 0..8 | the magic `SHIKHATK` |
//! | 8..12 | version, 1 |
//! | 12..16 | bytes of a token, 2 or 4 |
//! | 16..24 | tokens in the vocabulary |
//! | 24..32 | tokens in the shard |
//! | 32..40 | documents in the shard |
//! | 40..72 | hash of the tokenizer |
//! | 72..104 | SHA-256 of the token bytes |
//! | 104..136 | SHA-256 of bytes 0..104 |
//!
//! Both hashes are checked on opening, so that no bit of the file can change unnoticed.

use super::CorpusError;
use crate::artifact::boundary::{Guarded, guard};
use crate::artifact::{Hash, hash_bytes, write_atomic_with};
use crate::error::FileError;
use memmap2::Mmap;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes before the first token.
pub const HEADER: usize = 136;
const MAGIC: &[u8; 8] = b"SHIKHATK";
const VERSION: u32 = 1;
/// Bytes of the header that its own hash covers.
const COVERED: usize = 104;

/// What a shard holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardInfo {
    /// Tokens in the shard.
    pub tokens: u64,
    /// Documents in the shard.
    pub documents: u64,
    /// Tokens in the vocabulary.
    pub vocabulary: u64,
    /// Bytes of a token in the file: 2 or 4.
    pub width: u32,
    /// Hash of the tokenizer that made the tokens.
    pub vocabulary_hash: Hash,
    /// SHA-256 of the token bytes.
    pub content: Hash,
}

impl ShardInfo {
    fn header(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.width.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.vocabulary.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.tokens.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.documents.to_le_bytes());
        bytes[40..72].copy_from_slice(&self.vocabulary_hash.0);
        bytes[72..104].copy_from_slice(&self.content.0);
        let own = hash_bytes(&bytes[..COVERED]);
        bytes[COVERED..].copy_from_slice(&own.0);
        bytes
    }

    /// Reads a header; the reason of a refusal is for [`CorpusError::Shard`].
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let array = |at: usize| -> [u8; 8] { std::array::from_fn(|i| bytes[at + i]) };
        let hash = |at: usize| Hash(std::array::from_fn(|i| bytes[at + i]));
        let [version, width] = [8, 12].map(|at| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i])));
        if version != VERSION {
            return Err(format!("its format version is {version}, this program reads version {VERSION}"));
        }
        if hash_bytes(&bytes[..COVERED]) != hash(COVERED) {
            return Err("its header does not match the header's hash".to_owned());
        }
        let [vocabulary, tokens, documents] = [16, 24, 32].map(|at| u64::from_le_bytes(array(at)));
        if width != width_of(vocabulary) {
            return Err(format!("tokens of {width} bytes do not suit a vocabulary of {vocabulary}"));
        }
        Ok(ShardInfo { tokens, documents, vocabulary, width, vocabulary_hash: hash(40), content: hash(72) })
    }
}

/// Bytes of a token for a vocabulary of this size.
fn width_of(vocabulary: u64) -> u32 {
    if vocabulary <= 1 << 16 { 2 } else { 4 }
}

/// Writes a shard document by document, holding none of them.
///
/// Tokens go to an unnamed file beside the target first: the header, which stands before them,
/// needs their count and hash.
pub struct ShardWriter {
    path: PathBuf,
    spool: BufWriter<Guarded<File>>,
    hasher: Sha256,
    info: ShardInfo,
    scratch: Vec<u8>,
}

impl ShardWriter {
    /// Starts a shard that will be at `path` once finished.
    ///
    /// # Errors
    /// [`CorpusError::File`] when the directory cannot be written.
    pub fn create(path: &Path, vocabulary_hash: Hash, vocabulary: usize) -> Result<Self, CorpusError> {
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(FileError::at("create the directory", directory))?;
        let spool = guard(|| tempfile::tempfile_in(directory)).map_err(FileError::at("write in", directory))?;
        let vocabulary = vocabulary as u64;
        let width = width_of(vocabulary);
        let content = Hash([0; 32]);
        Ok(ShardWriter {
            path: path.to_path_buf(),
            spool: BufWriter::with_capacity(1 << 16, Guarded(spool)),
            hasher: Sha256::new(),
            info: ShardInfo { tokens: 0, documents: 0, vocabulary, width, vocabulary_hash, content },
            scratch: Vec::new(),
        })
    }

    /// Adds one document: its tokens, the end-of-text token last.
    ///
    /// # Errors
    /// [`CorpusError::TokenOutOfRange`] when a token is not in the vocabulary, or
    /// [`CorpusError::File`] when writing fails.
    pub fn push(&mut self, tokens: &[u32]) -> Result<(), CorpusError> {
        self.scratch.clear();
        for &id in tokens {
            if u64::from(id) >= self.info.vocabulary {
                return Err(CorpusError::TokenOutOfRange { id, vocabulary: self.info.vocabulary as usize });
            }
            self.scratch.extend_from_slice(&id.to_le_bytes()[..self.info.width as usize]);
        }
        self.hasher.update(&self.scratch);
        self.spool.write_all(&self.scratch).map_err(FileError::at("write", &self.path))?;
        self.info.tokens += tokens.len() as u64;
        self.info.documents += 1;
        Ok(())
    }

    /// Puts the whole shard in place.
    ///
    /// # Errors
    /// [`CorpusError::File`]; an old shard is left as it was.
    pub fn finish(mut self) -> Result<ShardInfo, CorpusError> {
        let path = &self.path;
        self.spool.flush().map_err(FileError::at("write", path))?;
        self.info.content = Hash(self.hasher.finalize().into());
        let spool = &mut self.spool.get_mut().0;
        write_atomic_with(path, |out| {
            out.write_all(&self.info.header())?;
            spool.seek(SeekFrom::Start(0))?;
            std::io::copy(spool, out).map(drop)
        })?;
        Ok(self.info)
    }
}

/// Writes a shard of `documents`, each the tokens of one document with the end-of-text token last.
///
/// # Errors
/// Those of [`ShardWriter`].
pub fn write_shard(
    path: &Path,
    vocabulary_hash: Hash,
    vocabulary: usize,
    mut documents: impl Iterator<Item = Vec<u32>>,
) -> Result<ShardInfo, CorpusError> {
    let mut writer = ShardWriter::create(path, vocabulary_hash, vocabulary)?;
    documents.try_for_each(|tokens| writer.push(&tokens))?;
    writer.finish()
}

/// An open shard: its tokens, read from the file as they are asked for.
#[derive(Debug)]
pub struct Shard {
    map: Mmap,
    info: ShardInfo,
}

impl Shard {
    /// Opens the shard at `path` and checks all of it.
    ///
    /// # Errors
    /// [`CorpusError::NotAShard`], [`CorpusError::Shard`] for a truncated or changed file or a token
    /// outside the vocabulary, [`CorpusError::OtherVocabulary`] when it belongs to another
    /// tokenizer than `expected`, [`CorpusError::File`] when it cannot be read.
    pub fn open(path: &Path, expected: Hash) -> Result<Self, CorpusError> {
        let file = guard(|| File::open(path)).map_err(FileError::at("open", path))?;
        let length = file.metadata().map_err(FileError::at("read", path))?.len();
        let damaged = |message: String| CorpusError::Shard { path: path.to_path_buf(), message };
        if length == 0 {
            return Err(damaged("it is empty".to_owned()));
        }
        // SAFETY: the map is read-only, and a shard is only ever replaced by renaming a new file
        // over it, never written in place, so the mapped bytes do not change while mapped.
        let map = guard(|| unsafe { Mmap::map(&file) }).map_err(FileError::at("map", path))?;
        if !map.starts_with(MAGIC) {
            return Err(CorpusError::NotAShard { path: path.to_path_buf() });
        }
        if map.len() < HEADER {
            return Err(damaged(format!("it is {length} bytes long, its header alone has {HEADER}")));
        }
        let info = ShardInfo::parse(&map[..HEADER]).map_err(damaged)?;
        let whole = u128::from(info.tokens) * u128::from(info.width) + HEADER as u128;
        if whole != u128::from(length) {
            return Err(damaged(format!("it is {length} bytes long, its header promises {whole}")));
        }
        if info.vocabulary_hash != expected {
            let found = info.vocabulary_hash;
            return Err(CorpusError::OtherVocabulary { path: path.to_path_buf(), found, expected });
        }
        let shard = Shard { map, info };
        shard.check_content().map_err(damaged)?;
        Ok(shard)
    }

    fn check_content(&self) -> Result<(), String> {
        let found = hash_bytes(&self.map[HEADER..]);
        if found != self.info.content {
            return Err(format!("its tokens have hash {}, expected {}", found.short(), self.info.content.short()));
        }
        let wrong = (0..self.len()).find(|&i| u64::from(self.get(i)) >= self.info.vocabulary);
        wrong.map_or(Ok(()), |i| Err(format!("token {i} is {}, the vocabulary {}", self.get(i), self.info.vocabulary)))
    }

    /// Tokens in the shard.
    #[expect(clippy::len_without_is_empty, reason = "`len() == 0` is a refusal of the loader, not a question")]
    pub fn len(&self) -> u64 {
        self.info.tokens
    }

    /// What the header says.
    pub fn info(&self) -> &ShardInfo {
        &self.info
    }

    /// The token at `i`.
    ///
    /// # Panics
    /// When `i` is not below [`Shard::len`].
    pub fn get(&self, i: u64) -> u32 {
        let at = HEADER + i as usize * self.info.width as usize;
        match self.info.width {
            2 => u32::from(u16::from_le_bytes([self.map[at], self.map[at + 1]])),
            _ => u32::from_le_bytes([self.map[at], self.map[at + 1], self.map[at + 2], self.map[at + 3]]),
        }
    }

    /// Copies the tokens from `start` on into `out`.
    ///
    /// # Panics
    /// When the shard ends before `out` is full.
    pub fn window(&self, start: u64, out: &mut [u32]) {
        assert!(start + out.len() as u64 <= self.len(), "a window past the end of the shard");
        for (i, token) in out.iter_mut().enumerate() {
            *token = self.get(start + i as u64);
        }
    }
}
