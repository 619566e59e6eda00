//! Where things are in a checkout of the project, and what of the machine the notebooks need.

use crate::error::KernelError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A checkout of the project.
#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The checkout around the current folder, or else the one that this program was built in.
    ///
    /// # Errors
    /// There is neither.
    pub fn find() -> Result<Self, KernelError> {
        let here = std::env::current_dir().map_err(KernelError::file("read", "."))?;
        let built = Path::new(env!("CARGO_MANIFEST_DIR"));
        let holds = |folder: &&Path| {
            ["Cargo.lock", "notebooks/prelude/Cargo.toml", "notebooks/kernel/Cargo.toml"]
                .iter()
                .all(|file| folder.join(file).is_file())
        };
        let root = here.ancestors().find(holds).or_else(|| built.ancestors().find(holds));
        let root = root.ok_or_else(|| KernelError::NoRepository(here.clone()))?;
        let root = root.canonicalize().map_err(KernelError::file("read", root))?;
        Ok(Self { root })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The notebooks.
    pub fn notebooks(&self) -> PathBuf {
        self.root.join("notebooks")
    }

    /// The crate that the cells use.
    pub fn prelude(&self) -> PathBuf {
        self.notebooks().join("prelude")
    }

    /// The project's lock file.
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("Cargo.lock")
    }

    /// All that the notebooks build, shared by all of them.
    pub fn store(&self) -> PathBuf {
        self.root.join("target/notebooks")
    }

    /// The name of the toolchain that the checkout pins: a notebook in another folder is built with it too.
    pub fn channel(&self) -> Option<String> {
        let pinned = std::fs::read_to_string(self.root.join("rust-toolchain.toml")).ok()?;
        let value = pinned.lines().find_map(|line| line.trim().strip_prefix("channel")?.trim().strip_prefix('='))?;
        Some(value.trim().trim_matches('"').to_owned())
    }

    /// What cannot stand in an output: the checkout's folder and the user's.
    pub fn machine_paths(&self) -> Vec<String> {
        let home = std::env::home_dir().filter(|home| home.components().count() > 1);
        let paths = [Some(self.root.clone()), home].into_iter().flatten();
        paths.map(|path| format!("{}/", path.display())).collect()
    }
}

/// The compiler that the checkout pins, and what belongs to it.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// Where it is installed.
    pub sysroot: PathBuf,
    /// What it compiles for.
    pub host: String,
}

impl Toolchain {
    /// The one of the checkout.
    ///
    /// # Errors
    /// Cargo or the compiler is not installed or does not run.
    pub fn find(repository: &Repository) -> Result<Self, KernelError> {
        for tool in ["cargo", "rustc"] {
            said(repository, tool, &["--version"])?;
        }
        let sysroot = PathBuf::from(said(repository, "rustc", &["--print", "sysroot"])?.trim());
        let version = said(repository, "rustc", &["--version", "--verbose"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        Ok(Self { sysroot, host })
    }

    /// Makes sure that the sources of the standard library are there, without which no type of a variable is known.
    ///
    /// # Errors
    /// They are not, and rustup cannot bring them.
    pub fn need_sources(&self, repository: &Repository) -> Result<(), KernelError> {
        if self.sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs").is_file() {
            return Ok(());
        }
        let remedy = "run `rustup component add rust-src` in this checkout".to_owned();
        let mut rustup = Command::new("rustup");
        let added = rustup.args(["component", "add", "rust-src"]).current_dir(&repository.root).status();
        if added.is_ok_and(|status| status.success()) {
            return Ok(());
        }
        Err(KernelError::Missing { what: "rust-src, the sources of Rust's standard library,".into(), remedy })
    }

    /// Where the standard library's own dynamic library is.
    pub fn libraries(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("lib")
    }
}

fn said(repository: &Repository, tool: &str, arguments: &[&str]) -> Result<String, KernelError> {
    let output = Command::new(tool).args(arguments).current_dir(&repository.root).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(KernelError::Missing {
            what: format!("{tool}, of the Rust that rust-toolchain.toml names,"),
            remedy: "install it with rustup (https://rustup.rs), or put it on PATH".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::Repository;

    #[test]
    fn the_checkout_names_its_toolchain() {
        let repository = Repository::find().unwrap();
        let channel = repository.channel().unwrap();
        assert!(channel.split('.').count() == 3 && channel.starts_with("1."), "{channel}");
        assert!(repository.prelude().is_dir() && repository.lock_file().is_file());
    }
}
