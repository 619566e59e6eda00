//! The Burn half of the catalogue: its entries are a program of their own, `burn/defects`, which lists and runs them.

use super::isolate::{Limits, run_child};
use super::reading::THREE;
use super::record::Listed;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What `shikha-burn-defects --list` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BurnList {
    /// Version of Burn that the program is built with.
    pub version: String,
    /// Its entries.
    pub entries: Vec<Listed>,
}

impl BurnList {
    /// Asks `program` what it has.
    ///
    /// # Errors
    /// When it cannot be started, ends otherwise, or prints something else.
    pub fn of(program: &Path, limits: Limits) -> Result<Self, String> {
        let mut list: BurnList = run_child(program, &["--list"], limits).map_err(|why| {
            let build = "build it with `cd burn && cargo build --release --locked -p shikha-burn-defects`";
            format!("{} does not list its entries: {why}; {build}", program.display())
        })?;
        for entry in &mut list.entries {
            entry.place = place(&entry.id);
        }
        Ok(list)
    }
}

/// The place of an entry's class among the abstract's three, in our reading.
fn place(id: &str) -> Option<usize> {
    THREE.iter().find(|(_, ids)| ids.contains(&id)).map(|(reading, _)| reading.place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_each_entry_placed() {
        let script = r#"echo '{"version":"1.2.3","entries":[{"id":"burn-param-map","title":"t","kind":"speed"}]}'"#;
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let list = BurnList::of(&program, Limits::default()).unwrap();
        assert_eq!((list.version.as_str(), list.entries[0].place), ("1.2.3", Some(3)));
        let error = BurnList::of(Path::new("/nowhere/program"), Limits::default()).unwrap_err();
        assert!(error.contains("/nowhere/program") && error.contains("cargo build"), "{error}");
    }
}
