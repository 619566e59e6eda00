//! Why a table or figure could not be made.

use crate::error::FileError;

/// Why a table or figure could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The ledger of claims does not parse or contradicts itself.
    #[error("claims ledger: {0}")]
    Ledger(String),
    /// A table could not be built or written.
    #[error("table `{name}`: {message}")]
    Table {
        /// The table.
        name: String,
        /// The library's words.
        message: String,
    },
    /// A figure could not be drawn.
    #[error("figure `{id}`: {message}")]
    Figure {
        /// The figure.
        id: String,
        /// What is wrong.
        message: String,
    },
}
