//! From a source and a file to checked bytes: data crates, local folders, a mirror, a cache, a download.

use super::download::{PATIENCE, agent, download, download_to, listing, percent_encoded};
use super::{File, Origin, Source, SourceError};
use crate::artifact::{Hash, hash_bytes, hash_file, write_atomic};
use crate::error::FileError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to do about a file that is another one, by where it lies.
const LOCAL: &str = "correct the file or the manifest";
const MIRROR: &str = "delete it from the mirror folder, or correct the manifest";
pub(super) const CACHE: &str = "delete it and run again to download it";

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
                None => Err(unsupported(source)),
            },
        }
    }

    /// The content of one file, to be read piece by piece after all of it was checked.
    ///
    /// # Errors
    /// As [`Store::bytes`].
    pub fn open(&self, source: &Source, file: &File) -> Result<Box<dyn io::BufRead>, SourceError> {
        if let Some(path) = self.found(source, file)? {
            let input = std::fs::File::open(&path).map_err(FileError::at("open", &path))?;
            return Ok(Box::new(io::BufReader::with_capacity(1 << 16, input)));
        }
        Ok(Box::new(io::Cursor::new(self.bytes(source, file)?)))
    }

    /// Where the file lies on this machine, once all of it was checked.
    fn found(&self, source: &Source, file: &File) -> Result<Option<PathBuf>, SourceError> {
        for (path, advice) in self.places(source, file) {
            if is_there(&path, file, advice)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
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
        download(&self.agent, &self.address(place, address), file, &cached)
    }

    /// Where one file of a source lies on this machine, checked; it is downloaded when it is nowhere. For files
    /// that are too large to be held.
    ///
    /// # Errors
    /// [`SourceError`] when the file is nowhere, or is not the one the manifest means.
    pub fn path(&self, source: &Source, file: &File) -> Result<PathBuf, SourceError> {
        if let Some(path) = self.found(source, file)? {
            return Ok(path);
        }
        if let Origin::Local { .. } = source.origin {
            return Err(missing(source, file, "the folder of the manifest"));
        }
        let (place, address) =
            source.origin.published(&source.revision, &file.path).ok_or_else(|| unsupported(source))?;
        let path = self.cache.join(&place);
        download_to(&self.agent, &self.address(&place, address), file, &path)?;
        Ok(path)
    }

    /// The files of a source: those of the manifest, or of its folder as the publisher lists them at the revision.
    ///
    /// # Errors
    /// [`SourceError`] when the list cannot be had or does not state size and sha256 of every file.
    pub fn files(&self, source: &Source) -> Result<Vec<File>, SourceError> {
        let Some(folder) = &source.folder else { return Ok(source.files.clone()) };
        let (place, address) = source.origin.listing(&source.revision, folder).ok_or_else(|| unsupported(source))?;
        let kept = self.mirror.iter().chain([&self.cache]).map(|root| root.join(&place)).find(|path| path.is_file());
        let bytes = match &kept {
            Some(path) => std::fs::read(path).map_err(FileError::at("read", path))?,
            None => listing(&self.agent, &self.address(&place, address))?,
        };
        let format = |message: String| SourceError::Format { id: source.id.clone(), path: place.clone(), message };
        let files = listed(&bytes, folder).map_err(format)?;
        if kept.is_none() {
            write_atomic(&self.cache.join(&place), &bytes)?;
        }
        Ok(files)
    }

    /// `address`, or the same `place` on the server that stands in for the origins.
    fn address(&self, place: &str, address: String) -> String {
        self.base_url.as_ref().map_or(address, |base| format!("{base}/{}", percent_encoded(place)))
    }
}

/// An entry of a folder as the publisher's server lists it.
#[derive(serde::Deserialize)]
struct Entry {
    path: String,
    lfs: Option<Lfs>,
}

#[derive(serde::Deserialize)]
struct Lfs {
    oid: String,
    size: u64,
}

/// The Parquet files right below `folder`, by name.
fn listed(bytes: &[u8], folder: &str) -> Result<Vec<File>, String> {
    let entries: Vec<Entry> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let mut files = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.path.ends_with(".parquet")) {
        let name = entry.path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        let inside = name.is_some_and(|name| !name.contains(['/', '\\', ':', '?', '#']) && !name.starts_with('.'));
        let lfs = entry.lfs.filter(|_| inside).ok_or_else(|| format!("`{}` is not as expected", entry.path))?;
        let sha256: Hash = lfs.oid.parse().map_err(|e| format!("`{}`: {e}", entry.path))?;
        files.push(File { path: entry.path, bytes: lfs.size, sha256, language: None });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    if files.is_empty() { Err(format!("no Parquet file below `{folder}`")) } else { Ok(files) }
}

fn unsupported(source: &Source) -> SourceError {
    SourceError::Unsupported {
        id: source.id.clone(),
        origin: source.origin.to_string(),
        advice: "download the files and name them with `local:`",
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
    if !has_size(path, file, advice)? {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(FileError::at("read", path))?;
    check(&bytes, file, &path.display().to_string(), advice)?;
    Ok(Some(bytes))
}

/// Whether there is a file, which then must match the manifest.
fn is_there(path: &Path, file: &File, advice: &'static str) -> Result<bool, SourceError> {
    let found = has_size(path, file, advice)?;
    if found {
        check_file(path, file, &path.display().to_string(), advice)?;
    }
    Ok(found)
}

/// Whether there is a file, which then must have its size.
fn has_size(path: &Path, file: &File, advice: &'static str) -> Result<bool, SourceError> {
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

/// Checks size and digest of what lies at `path`; `place` names it.
pub(super) fn check_file(path: &Path, file: &File, place: &str, advice: &'static str) -> Result<(), SourceError> {
    let found = std::fs::metadata(path).map_err(FileError::at("read", path))?.len();
    let place = place.to_owned();
    if found != file.bytes {
        return Err(SourceError::WrongSize { place, found, expected: file.bytes, advice });
    }
    let found = hash_file(path)?;
    if found != file.sha256 {
        return Err(SourceError::WrongHash { place, found, expected: file.sha256, advice });
    }
    Ok(())
}

/// Checks size and digest.
fn check(bytes: &[u8], file: &File, place: &str, advice: &'static str) -> Result<(), SourceError> {
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
