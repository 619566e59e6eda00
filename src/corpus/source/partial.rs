//! The half of a file that is being downloaded: one program at a time works on it.

use crate::artifact::boundary::{Guarded, guard};
use crate::artifact::sync_directory;
use crate::error::FileError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `NAME.partial`, held by this program until it is dropped.
///
/// The lock is on the file itself, so that nothing else lies beside it and a program that dies holds nothing. Only
/// its holder moves or deletes it.
pub(super) struct Partial {
    path: PathBuf,
    file: File,
}

impl Partial {
    /// Holds the `.partial` of `path`, waiting for any other program that does; `None` when another one has brought
    /// the whole file meanwhile.
    ///
    /// # Errors
    /// [`FileError`] when the file cannot be made or locked.
    pub(super) fn hold(path: &Path) -> Result<Option<Self>, FileError> {
        let (partial, mut is_told) = (partial_path(path), false);
        loop {
            let mut options = OpenOptions::new();
            options.create(true).read(true).write(true).truncate(false);
            let file = guard(|| options.open(&partial)).map_err(FileError::at("write", &partial))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    if !is_told {
                        eprintln!("another program downloads {}; waiting for it", path.display());
                    }
                    is_told = true;
                    file.lock().map_err(FileError::at("lock", &partial))?;
                }
                Err(TryLockError::Error(e)) => return Err(FileError::at("lock", &partial)(e)),
            }
            // Whoever held it may have moved or deleted it: then the lock is on a file that is not there any more.
            let held = Partial { path: partial.clone(), file };
            let is_there = held.is_at_its_path()?;
            if path.exists() {
                if is_there {
                    held.remove_if_empty();
                }
                return Ok(None);
            }
            if is_there {
                return Ok(Some(held));
            }
        }
    }

    fn is_at_its_path(&self) -> Result<bool, FileError> {
        let held = self.file.metadata().map_err(FileError::at("read", &self.path))?;
        Ok(std::fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (held.dev(), held.ino())))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are there.
    pub(super) fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Forgets what is there.
    pub(super) fn clear(&self) -> Result<(), FileError> {
        guard(|| self.file.set_len(0)).map_err(FileError::at("write", &self.path))
    }

    /// A writer that goes on where the file ends.
    pub(super) fn end(&self) -> Result<impl Write + '_, FileError> {
        let mut file = &self.file;
        file.seek(SeekFrom::End(0)).map_err(FileError::at("write", &self.path))?;
        Ok(Guarded(file))
    }

    /// Makes sure that what was written outlives a loss of power.
    pub(super) fn sync(&self) -> Result<(), FileError> {
        guard(|| self.file.sync_all()).map_err(FileError::at("write", &self.path))
    }

    /// Moves the whole file to its place.
    pub(super) fn finish(self, path: &Path) -> Result<(), FileError> {
        guard(|| std::fs::rename(&self.path, path)).map_err(FileError::at("replace", path))?;
        sync_directory(path.parent().unwrap_or(Path::new(".")))
    }

    /// Deletes it when nothing is in it. What is deleted is of no use to anybody, so a failure changes nothing.
    pub(super) fn remove_if_empty(&self) {
        if self.size() == 0 {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn partial_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}
