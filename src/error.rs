//! The one error every room shares: an operation on a file that did not succeed.
//!
//! Each room has an error enum of its own beside its code; they wrap this one for what the
//! operating system refuses.

use std::io;
use std::path::{Path, PathBuf};

/// An operation on a file or directory failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}{}", path.display(), hint(source))]
pub struct FileError {
    /// What was tried, as a verb: `read`, `write`, `lock` …
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// What the operating system answered.
    pub source: io::Error,
}

impl FileError {
    /// A closure for `map_err`: `fs::read(p).map_err(FileError::at("read", p))`.
    pub fn at<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
        move |source| FileError { action, path: path.to_path_buf(), source }
    }

    /// Whether there is no such file, rather than one that cannot be used.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// What to do about the refusals a user can do something about.
fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and run again, nothing was overwritten"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; check the permissions, nothing was overwritten"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_where_and_what_to_do() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let message = FileError::at("write", Path::new("runs/a.bin"))(full).to_string();
        assert!(message.starts_with("cannot write runs/a.bin: "), "{message}");
        assert!(message.ends_with("nothing was overwritten"), "{message}");
    }
}
