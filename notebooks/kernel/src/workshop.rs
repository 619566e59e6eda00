//! The folder in which one kernel builds its cells, and the environment that it builds them in.
//!
//! Everything is under `target/notebooks` of the checkout:
//!
//! - `build/`: the dependencies, compiled once for all notebooks;
//! - `sessions/<name>/`: the crate of one kernel, with a copy of the project's lock file, and the libraries of its
//!   cells. The names are few and are used again, so what Cargo keeps of a cell's crate does not pile up;
//! - `.cargo/config.toml`: how the dependencies are compiled; Cargo finds it from the folders below;
//! - `config/`: what evcxr runs at its start, in place of what the user may have in a home folder.

use crate::error::KernelError;
use crate::repository::{Repository, Toolchain};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Dependencies are checked in the project's own tests and run at full speed here. Cells keep their line numbers, so that
/// a panic can be led back to its line. The packages of the tables are large and do little: they cost only their build.
const CARGO_CONFIG: &str = r#"[profile.dev]
debug = "line-tables-only"
strip = "none"

[profile.dev.package."*"]
debug = false
debug-assertions = false
overflow-checks = false

[profile.dev.package]
polars-arrow = { opt-level = 1 }
polars-compute = { opt-level = 1 }
polars-core = { opt-level = 1 }
polars-io = { opt-level = 1 }
polars-ops = { opt-level = 1 }
polars-row = { opt-level = 1 }
"#;

/// The flags evcxr gives to the compiler; other flags would be another build of everything.
pub const RUSTFLAGS: &str = "-Cprefer-dynamic";

/// For the allocator of the kernel library, which reads it before `main`: huge pages take a third of a notebook's start,
/// all of it spent on zeroing them.
pub const ALLOCATOR: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");

/// One kernel's folder, held against other kernels while this lives.
#[derive(Debug)]
pub struct Workshop {
    /// The crate of the cells.
    pub folder: PathBuf,
    /// The shared dependencies.
    pub build: PathBuf,
    /// What evcxr reads at its start.
    config: PathBuf,
    libraries: [PathBuf; 2],
    channel: Option<String>,
    _lock: File,
}

impl Workshop {
    /// Takes the first free folder of this kind of session ("run", "kernel", "warm") and lays it out.
    ///
    /// # Errors
    /// A file cannot be written, or the lock file is missing.
    pub fn open(repository: &Repository, toolchain: &Toolchain, kind: &str) -> Result<Self, KernelError> {
        let store = repository.store();
        let (build, config) = (store.join("build"), store.join("config"));
        let sessions = store.join("sessions");
        for folder in [&sessions, &build, &config, &store.join(".cargo")] {
            fs::create_dir_all(folder).map_err(KernelError::file("create", folder))?;
        }
        write_if_new(&store.join(".cargo/config.toml"), CARGO_CONFIG)?;
        write_if_new(&config.join("init.evcxr"), &start_commands(&build))?;
        let (folder, lock) = claim(&sessions, kind)?;
        let lock_file = folder.join("Cargo.lock");
        fs::copy(repository.lock_file(), &lock_file).map_err(KernelError::file("copy the lock file to", &lock_file))?;
        let libraries = [build.join(&toolchain.host).join("debug/deps"), toolchain.libraries()];
        Ok(Self { folder, build, config, libraries, channel: repository.channel(), _lock: lock })
    }

    /// The environment of evcxr in this folder; none takes a variable away.
    pub fn environment(&self) -> Vec<(String, Option<OsString>)> {
        let mut variables: Vec<(String, Option<OsString>)> = foreign_variables().map(|name| (name, None)).collect();
        let search = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
        let inherited = std::env::var_os(search).unwrap_or_default();
        let paths = self.libraries.iter().cloned().chain(std::env::split_paths(&inherited));
        let paths = std::env::join_paths(paths.filter(|path| !path.as_os_str().is_empty()));
        variables.extend([
            ("EVCXR_TMPDIR".to_owned(), Some(self.folder.clone().into_os_string())),
            ("EVCXR_CONFIG_DIR".to_owned(), Some(self.config.clone().into_os_string())),
            // evcxr_jupyter would write over a kernel that it finds installed there, if of another version.
            ("JUPYTER_PATH".to_owned(), Some(self.folder.join("jupyter").into_os_string())),
            (search.to_owned(), paths.ok()),
        ]);
        if let Some(channel) = &self.channel {
            variables.push(("RUSTUP_TOOLCHAIN".to_owned(), Some(channel.into())));
        }
        variables
    }

    /// Gives this process the environment of [`Self::environment`].
    ///
    /// # Safety
    /// No other thread may run: the environment belongs to the process.
    pub unsafe fn enter(&self) {
        for (name, value) in self.environment() {
            // SAFETY: the caller says that this is the only thread.
            unsafe {
                match value {
                    Some(value) => std::env::set_var(name, value),
                    None => std::env::remove_var(name),
                }
            }
        }
    }

    /// What the cells' crate depends on that the project's lock file does not name, if anything.
    ///
    /// # Errors
    /// A lock file cannot be read.
    pub fn unlocked(&self, repository: &Repository) -> Result<Option<String>, KernelError> {
        let read = |path: PathBuf| fs::read_to_string(&path).map_err(KernelError::file("read", path));
        let (own, project) = (read(self.folder.join("Cargo.lock"))?, read(repository.lock_file())?);
        let known = packages(&project);
        Ok(packages(&own).into_iter().find(|package| !known.contains(package) && !package.starts_with("ctx ")))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // A folder that stays is emptied by the next session of its name.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What evcxr is told first: to build dependencies in the shared folder, and to link with what every Rust has.
pub fn start_commands(build: &Path) -> String {
    format!(":build_env CARGO_BUILD_BUILD_DIR={}\n:linker system\n", build.display())
}

/// What in a user's environment would change how dependencies are built, and so build all of them again.
pub fn foreign_variables() -> impl Iterator<Item = String> {
    let foreign = |name: &String| {
        matches!(name.as_str(), "CARGO_INCREMENTAL" | "CARGO_TARGET_DIR" | "RUSTFLAGS" | "CARGO_ENCODED_RUSTFLAGS")
            || ["CARGO_PROFILE_", "CARGO_BUILD_", "EVCXR_", "RUSTC"].iter().any(|prefix| name.starts_with(prefix))
                && name != "CARGO_BUILD_JOBS"
    };
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(foreign)
}

/// The first folder of this kind that no living process holds, emptied.
fn claim(sessions: &Path, kind: &str) -> Result<(PathBuf, File), KernelError> {
    for number in 0.. {
        let folder = sessions.join(format!("{kind}-{number}"));
        let lock_path = folder.with_extension("lock");
        let lock = File::create(&lock_path).map_err(KernelError::file("write", &lock_path))?;
        if lock.try_lock().is_err() {
            continue;
        }
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(KernelError::file("empty", &folder))?;
        }
        fs::create_dir_all(&folder).map_err(KernelError::file("create", &folder))?;
        return Ok((folder, lock));
    }
    unreachable!("the numbers do not end")
}

/// Cargo takes a file that was written again for another one.
fn write_if_new(path: &Path, text: &str) -> Result<(), KernelError> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(KernelError::file("write", path))
}

/// The packages of a lock file as "name version".
fn packages(lock: &str) -> Vec<String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks.map(|block| format!("{} {}", value(block, "name"), value(block, "version"))).collect()
}

#[cfg(test)]
mod tests {
    use super::{claim, packages, start_commands};
    use std::path::Path;

    #[test]
    fn packages_are_read_off_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"r\"\n\n\
            [[package]]\nname = \"ctx\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n";
        assert_eq!(packages(lock), ["a 1.0.0", "ctx 0.1.0"]);
    }

    #[test]
    fn two_kernels_never_share_a_folder_and_names_are_used_again() {
        let sessions = tempfile::tempdir().unwrap();
        let (first, lock) = claim(sessions.path(), "kernel").unwrap();
        let (second, _held) = claim(sessions.path(), "kernel").unwrap();
        assert_ne!(first, second);
        std::fs::write(first.join("left-over"), "").unwrap();
        drop(lock);
        let (again, _held) = claim(sessions.path(), "kernel").unwrap();
        assert_eq!(again, first);
        assert!(!again.join("left-over").exists());
    }

    #[test]
    fn the_build_folder_is_said_to_evcxr() {
        assert!(start_commands(Path::new("/b")).starts_with(":build_env CARGO_BUILD_BUILD_DIR=/b\n"));
    }
}
