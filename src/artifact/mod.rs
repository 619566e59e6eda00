//! Files that are either whole or absent, and a run directory that knows what made each of them.
//!
//! Every file the project writes goes through [`write_atomic`]: a temporary file in the same
//! directory, fsync, rename, fsync of the directory. A [`RunDir`] is held by one process at a time
//! and keeps `run.lock`: a hash per artifact and the hashes of what it was made from.

pub mod boundary;
mod hash;
mod run_dir;

pub use hash::{Hash, hash_bytes, hash_file};
pub use run_dir::{ArtifactError, Made, RunDir, Stage};

use crate::error::FileError;
use boundary::{Guarded, guard};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the names of files begin that are not finished.
const PARTIAL: &str = ".partial-";

/// The bytes of the file at `path`.
///
/// # Errors
/// [`FileError`] when it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    guard(|| std::fs::read(path)).map_err(FileError::at("read", path))
}

/// Writes `bytes` to `path` so that a reader sees the old file or the whole new one, never a part.
///
/// # Errors
/// [`FileError`] when the directory cannot be made or written; an old file is left as it was.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_atomic_with(path, |file| file.write_all(bytes))
}

/// Like [`write_atomic`], for content that is produced piece by piece.
///
/// # Errors
/// [`FileError`] when writing fails or `produce` does; an old file is left as it was.
pub fn write_atomic_with(
    path: &Path,
    produce: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), FileError> {
    let mut file = AtomicFile::create(path)?;
    produce(&mut file.buffer).map_err(FileError::at("write", path))?;
    file.finish()
}

/// A file that is written piece by piece and is in its place once it is [finished](AtomicFile::finish); dropped
/// before, it leaves nothing.
pub struct AtomicFile {
    path: PathBuf,
    buffer: BufWriter<Guarded<NamedTempFile>>,
}

impl AtomicFile {
    /// Starts the file that will be at `path`.
    ///
    /// # Errors
    /// [`FileError`] when the directory cannot be made or written.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let directory = parent(path);
        guard(|| std::fs::create_dir_all(directory)).map_err(FileError::at("create the directory", directory))?;
        let temporary = guard(|| tempfile::Builder::new().prefix(PARTIAL).tempfile_in(directory))
            .map_err(FileError::at("write in", directory))?;
        Ok(AtomicFile { path: path.to_path_buf(), buffer: BufWriter::with_capacity(1 << 16, Guarded(temporary)) })
    }

    /// Puts the whole file in place, on the disk.
    ///
    /// # Errors
    /// [`FileError`] when writing fails; an old file is left as it was.
    pub fn finish(self) -> Result<(), FileError> {
        let path = self.path;
        let flushed = self.buffer.into_inner().map_err(std::io::IntoInnerError::into_error);
        let temporary = flushed.map_err(FileError::at("write", &path))?.0;
        set_permissions(temporary.as_file()).map_err(FileError::at("write", &path))?;
        guard(|| temporary.as_file().sync_all()).map_err(FileError::at("write", &path))?;
        guard(|| temporary.persist(&path).map_err(|e| e.error)).map_err(FileError::at("replace", &path))?;
        sync_directory(parent(&path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.buffer.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.buffer.flush()
    }
}

/// Makes a rename inside `directory` survive a power cut.
///
/// # Errors
/// [`FileError`] when the directory cannot be opened or synced.
pub fn sync_directory(directory: &Path) -> Result<(), FileError> {
    guard(|| File::open(directory)?.sync_all()).map_err(FileError::at("sync", directory))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// Temporary files are private to their maker; an artifact is for everybody to read.
#[cfg(unix)]
fn set_permissions(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_permissions(_: &File) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_file_and_leaves_no_rubbish() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        write_atomic(&path, b"old").unwrap();
        let failed = write_atomic_with(&path, |w| {
            w.write_all(b"half of the ne")?;
            Err(std::io::ErrorKind::StorageFull.into())
        });
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("free some space"), "{message}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn directories_are_made_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c.txt");
        write_atomic(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}
