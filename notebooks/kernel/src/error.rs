//! What can go wrong, said so that the next step is plain.

use crate::failure::Failure;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// An error of the program itself; what a notebook does wrong is a [`Failure`].
#[derive(Debug, Error)]
pub enum KernelError {
    /// A file could not be read, written or removed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried: "read", "write".
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Its name.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The program is not inside a checkout of the project.
    #[error("no checkout of Shikha around {}: start the program inside one", .0.display())]
    NoRepository(PathBuf),
    /// Something that the notebooks need is not installed.
    #[error("{what} is missing: {remedy}")]
    Missing {
        /// The thing, as a user knows it.
        what: String,
        /// The command that brings it.
        remedy: String,
    },
    /// The dependencies of the notebooks did not build; Cargo has said why.
    #[error("the dependencies of the notebooks did not build (see the lines above)")]
    Warm,
    /// Building for the notebooks would have taken versions that the project's lock file does not name.
    #[error("Cargo.lock does not name {0}: bring it up to date with `cargo metadata`, then commit it")]
    Unlocked(String),
    /// No notebook has such a name.
    #[error("no notebook in {} {}", folder.display(), match only { Some(only) => format!("starts with {only}"), None => "is numbered, as 00-tour.ipynb is".to_owned() })]
    NoNotebook {
        /// Where they were looked for.
        folder: PathBuf,
        /// What `--only` asked for.
        only: Option<String>,
    },
    /// A kernel of the same name that is not this one is registered already.
    #[error("{} is another Rust kernel: choose --prefix, or --force to replace it", .0.display())]
    OtherKernel(PathBuf),
    /// There is no folder for the kernels of this user.
    #[error("no home folder is known: say where with --prefix")]
    NoHome,
    /// The Rust kernel could not start.
    #[error("the Rust kernel did not start: {0}")]
    Kernel(String),
    /// A notebook failed.
    #[error("{0}")]
    Notebook(#[from] Failure),
    /// What another process of this program said before it ended.
    #[error("{0}")]
    Told(String),
    /// Some of the notebooks failed; each was named when it did.
    #[error("{failed} of {total} notebooks failed")]
    Notebooks {
        /// How many did.
        failed: usize,
        /// Of how many that were run.
        total: usize,
    },
}

impl KernelError {
    /// For `map_err`: a file error with its action and path.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
