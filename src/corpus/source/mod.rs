//! Where text comes from: manifests, the store that fetches and checks files, and a reader per format.

mod download;
mod error;
mod manifest;
mod origin;
mod partial;
mod read;
mod reader;
mod store;

pub use error::SourceError;
pub use manifest::{File, LicenceRisk, Manifest, Role, Source};
pub use origin::Origin;
pub use read::{ReadOutcome, Skipped, files_to_read, protected, read, read_each};
pub use reader::{Pairs, Reader, Texts, html};
pub use store::Store;
