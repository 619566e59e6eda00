//! SHA-256, as reviewers check it with `sha256sum -c`.

use super::boundary::guard;
use crate::error::FileError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Hash(pub [u8; 32]);

/// The digest of `bytes`.
pub fn hash_bytes(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

/// The digest of the file at `path`, read in pieces.
///
/// # Errors
/// [`FileError`] when it cannot be read.
pub fn hash_file(path: &Path) -> Result<Hash, FileError> {
    let mut file = std::fs::File::open(path).map_err(FileError::at("open", path))?;
    let mut hasher = Sha256::new();
    guard(|| std::io::copy(&mut file, &mut hasher)).map_err(FileError::at("read", path))?;
    Ok(Hash(hasher.finalize().into()))
}

impl Hash {
    /// The first twelve digits: enough to tell two apart on a screen.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

impl TryFrom<String> for Hash {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Hash {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a sha256: expected 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Hash(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn agrees_with_the_standard_and_with_itself() {
        let hash = hash_bytes(b"abc"); // FIPS 180-4, example 1
        assert_eq!(hash.to_string(), ABC);
        assert_eq!(ABC.parse::<Hash>().unwrap(), hash);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, b"abc").unwrap();
        assert_eq!(hash_file(&path).unwrap(), hash);
    }

    #[test]
    fn refuses_what_is_no_hash() {
        for text in ["", "ba78", &ABC[..63], &ABC.replace('b', "g"), &"é".repeat(32)] {
            assert!(text.parse::<Hash>().is_err(), "{text}");
        }
    }
}
