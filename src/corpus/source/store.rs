//! From a source and a file to checked bytes: data crates, local folders, a mirror, a cache, a download.

use super::download::{PATIENCE, agent, download, percent_encoded};
use super::{File, Origin, Source, SourceError};
use crate::artifact::{hash_bytes, hash_file};
use crate::error::FileError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to do about a file that is another one, by where it lies.
const LOCAL: &str = "correct the file or the manifest";
const MIRROR: &str = "delete it from the mirror folder, or correct the manifest";
const CACHE: &str = "delete it and run again to download it";

/// Finds the files of a manifest: in a mirror folder, then in the cache, then by download.
///
/// Mirror and cache have the same layout: `github.com/OWNER/REPO/COMMIT/PATH` and
/// `npm/NAME/VERSION/PATH`. Every file is checked against size and sha256, wherever it comes from.
#[derive(Debug, Clone)]
pub struct Store {
    mirror: Option<PathBuf>,
    cache: PathBuf,
    base_url: Option<String>,
    agent: ureq::Agent,
}

impl Store {
    /// A store over a `mirror` folder, which is only read, and a `cache` folder, which downloads fill.
    pub fn new(mirror: Option<PathBuf>, cache: PathBuf) -> Self {
        Store { mirror, cache, base_url: None, agent: agent("https:", PATIENCE) }
    }

    /// Downloads from a server that offers a mirror folder at `base_url`, instead of from the origins.
    pub fn with_base_url(self, base_url: &str) -> Self {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Store { agent: agent(&base_url, PATIENCE), base_url: Some(base_url), ..self }
    }

    /// Waits as long as `patience` for the body of an answer, instead of ten minutes; a download is tried
    /// three times, each from where the one before ended.
    pub fn with_patience(self, patience: Duration) -> Self {
        let address = self.base_url.as_deref().unwrap_or("https:");
        Store { agent: agent(address, patience), ..self }
    }

    /// The content of one file of a source.
    ///
    /// # Errors
    /// [`SourceError`] when the file is nowhere, or is not the one the manifest means.
    pub fn bytes(&self, source: &Source, file: &File) -> Result<Vec<u8>, SourceError> {
        match &source.origin {
            Origin::Crate { name, version } => embedded(source, file, name, version),
            Origin::Local { folder } => {
                let path = source.base.join(folder).join(&file.path);
                let bytes = read_checked(&path, file, LOCAL)?;
                bytes.ok_or_else(|| missing(source, file, &path.display().to_string()))
            }
            origin => match origin.published(&source.revision, &file.path) {
                Some((place, address)) => self.published(file, &place, address),
                None => Err(SourceError::Unsupported {
                    id: source.id.clone(),
                    origin: source.origin.to_string(),
                    advice: "download the files and name them with `local:`",
                }),
            },
        }
    }

    /// The content of one file, to be read piece by piece after all of it was checked.
    ///
    /// # Errors
    /// As [`Store::bytes`].
    pub fn open(&self, source: &Source, file: &File) -> Result<Box<dyn io::BufRead>, SourceError> {
        for (path, advice) in self.places(source, file) {
            if is_present(&path, file, advice)? {
                return Ok(Box::new(open_checked(&path, file, advice)?));
            }
        }
        Ok(Box::new(io::Cursor::new(self.bytes(source, file)?)))
    }

    /// Where the file may lie on this machine, and what to do if it is another one.
    fn places(&self, source: &Source, file: &File) -> Vec<(PathBuf, &'static str)> {
        match &source.origin {
            Origin::Local { folder } => vec![(source.base.join(folder).join(&file.path), LOCAL)],
            origin => {
                let Some((place, _)) = origin.published(&source.revision, &file.path) else { return Vec::new() };
                let mirror = self.mirror.as_ref().map(|mirror| (mirror.join(&place), MIRROR));
                mirror.into_iter().chain([(self.cache.join(&place), CACHE)]).collect()
            }
        }
    }

    /// A published file by its `place` in the layout of the mirror and its `address` at the origin.
    fn published(&self, file: &File, place: &str, address: String) -> Result<Vec<u8>, SourceError> {
        if let Some(mirror) = &self.mirror
            && let Some(bytes) = read_checked(&mirror.join(place), file, MIRROR)?
        {
            return Ok(bytes);
        }
        let cached = self.cache.join(place);
        if let Some(bytes) = read_checked(&cached, file, CACHE)? {
            return Ok(bytes);
        }
        let address = self.base_url.as_ref().map_or(address, |base| format!("{base}/{}", percent_encoded(place)));
        download(&self.agent, &address, file, &cached)
    }
}

fn missing(source: &Source, file: &File, looked: &str) -> SourceError {
    SourceError::Missing { id: source.id.clone(), path: file.path.clone(), looked: format!("looked for {looked}") }
}

/// The text that the data crates carry inside this program.
fn embedded(source: &Source, file: &File, name: &str, version: &str) -> Result<Vec<u8>, SourceError> {
    let directory = match (name, version) {
        ("lingua-bengali-language-model", "1.3.0") => lingua_bengali_language_model::BENGALI_TESTDATA_DIRECTORY,
        ("lingua-english-language-model", "1.3.0") => lingua_english_language_model::ENGLISH_TESTDATA_DIRECTORY,
        _ => {
            return Err(SourceError::Unsupported {
                id: source.id.clone(),
                origin: source.origin.to_string(),
                advice: "the data crates are lingua-bengali-language-model@1.3.0 and lingua-english-language-model@1.3.0",
            });
        }
    };
    let found = directory.get_file(&file.path);
    let bytes = found.ok_or_else(|| missing(source, file, "the test data of the crate"))?.contents().to_vec();
    check(&bytes, file, &format!("{} in {}", file.path, source.origin), "correct the manifest")?;
    Ok(bytes)
}

/// The content of a file that must match the manifest; `None` when there is no such file.
fn read_checked(path: &Path, file: &File, advice: &'static str) -> Result<Option<Vec<u8>>, SourceError> {
    if !is_present(path, file, advice)? {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(FileError::at("read", path))?;
    check(&bytes, file, &path.display().to_string(), advice)?;
    Ok(Some(bytes))
}

/// A file that is there, at its start, after all of it was checked.
fn open_checked(path: &Path, file: &File, advice: &'static str) -> Result<io::BufReader<std::fs::File>, SourceError> {
    let found = hash_file(path)?;
    if found != file.sha256 {
        let place = path.display().to_string();
        return Err(SourceError::WrongHash { place, found, expected: file.sha256, advice });
    }
    let input = std::fs::File::open(path).map_err(FileError::at("open", path))?;
    Ok(io::BufReader::with_capacity(1 << 16, input))
}

/// Whether there is a file of the right size; another size is an error.
fn is_present(path: &Path, file: &File, advice: &'static str) -> Result<bool, SourceError> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(false),
        Err(e) => return Err(FileError::at("read", path)(e).into()),
    };
    if !metadata.is_file() {
        return Err(SourceError::NoFile { path: path.to_path_buf() });
    }
    if metadata.len() != file.bytes {
        let place = path.display().to_string();
        return Err(SourceError::WrongSize { place, found: metadata.len(), expected: file.bytes, advice });
    }
    Ok(true)
}

/// Checks size and digest.
pub(super) fn check(bytes: &[u8], file: &File, place: &str, advice: &'static str) -> Result<(), SourceError> {
    let place = place.to_owned();
    if bytes.len() as u64 != file.bytes {
        return Err(SourceError::WrongSize { place, found: bytes.len() as u64, expected: file.bytes, advice });
    }
    let found = hash_bytes(bytes);
    if found != file.sha256 {
        return Err(SourceError::WrongHash { place, found, expected: file.sha256, advice });
    }
    Ok(())
}
