//! What can be wrong with a manifest, a file it names or the text inside.

use crate::artifact::Hash;
use crate::error::FileError;
use std::path::PathBuf;

/// Why a manifest was refused or a source could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The manifest is not valid TOML, or has an unknown key or a value of the wrong kind.
    #[error("manifest {manifest} cannot be read: {message}; correct the file")]
    Syntax {
        /// Name or path of the manifest.
        manifest: String,
        /// Line and reason.
        message: String,
    },
    /// The manifest can be read, but says something impossible.
    #[error("manifest {manifest}, source `{id}`: {message}")]
    Manifest {
        /// Name or path of the manifest.
        manifest: String,
        /// Id of the source.
        id: String,
        /// What is wrong and what is expected.
        message: String,
    },
    /// The manifest lacks what it is for.
    #[error("manifest {manifest} has no source with role \"train\"; add one")]
    NothingToTrainOn {
        /// Name or path of the manifest.
        manifest: String,
    },
    /// A file of a data crate or a local folder is not there.
    #[error(
        "source `{id}`: {path} was not found ({looked}); give a mirror folder with --mirror or correct the manifest"
    )]
    Missing {
        /// Id of the source.
        id: String,
        /// Path in the source.
        path: String,
        /// Where it was looked for.
        looked: String,
    },
    /// The file is there, but is another one.
    #[error("{place} is not the file of the manifest: sha256 {found}, expected {expected}; {advice}")]
    WrongHash {
        /// File or address.
        place: String,
        /// Digest of what was found.
        found: Hash,
        /// Digest in the manifest.
        expected: Hash,
        /// What to do.
        advice: &'static str,
    },
    /// The file is there, but longer or shorter than it must be.
    #[error("{place} has {found} bytes, the manifest says {expected}; {advice}")]
    WrongSize {
        /// File or address.
        place: String,
        /// Bytes found (or announced).
        found: u64,
        /// Bytes in the manifest.
        expected: u64,
        /// What to do.
        advice: &'static str,
    },
    /// The server refused, sent elsewhere, or the connection failed.
    #[error("cannot download {address}: {message}; run again to continue, or give a mirror folder with --mirror")]
    Download {
        /// The address.
        address: String,
        /// What happened.
        message: String,
    },
    /// An origin that this version can name but not read.
    #[error("source `{id}` comes from `{origin}`, which this version cannot read; {advice}")]
    Unsupported {
        /// Id of the source.
        id: String,
        /// The origin as written.
        origin: String,
        /// What to do.
        advice: &'static str,
    },
    /// The file has the right digest, but its content is not what its reader expects.
    #[error("source `{id}`, {path}: {message}; is `reader` in the manifest the right one?")]
    Format {
        /// Id of the source.
        id: String,
        /// Path in the source.
        path: String,
        /// What was found and what was expected.
        message: String,
    },
    /// The place of a mirror or local file is a folder or something else that is no file.
    #[error("{} is no file; correct the mirror folder or the manifest", path.display())]
    NoFile {
        /// The place.
        path: PathBuf,
    },
}
