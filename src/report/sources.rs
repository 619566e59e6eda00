//! The training text and its licences as a table.

use super::Table;
use crate::corpus::source::{Manifest, Role};

/// One row a training source of the manifest, with whether it is read at the manifest's licence limit.
pub fn sources(manifest: &Manifest) -> Table {
    let header = ["source", "language", "domain", "origin", "licence", "licence risk", "read"];
    let mut table = Table::new("sources", &header);
    for source in manifest.sources.iter().filter(|source| source.role == Role::Train) {
        table.push(vec![
            source.id.clone(),
            source.language.clone(),
            source.domain.clone(),
            source.origin.to_string(),
            source.licence.clone(),
            source.licence_risk.name().to_owned(),
            if manifest.allows(source) { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}
