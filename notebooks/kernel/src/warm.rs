//! Builds what the cells depend on, once for all notebooks: the same crate, flags and profile as a kernel's.

use crate::error::KernelError;
use crate::repository::{Repository, Toolchain};
use crate::workshop::{RUSTFLAGS, Workshop, foreign_variables};
use std::process::Command;

/// The manifest that evcxr writes for the crate of the cells (0.22.0); another profile would be another build.
fn manifest(repository: &Repository) -> String {
    format!(
        r#"[package]
name = "ctx"
version = "1.0.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]
path = "src/lib.rs"

[profile.dev]
opt-level = 2
debug = false
strip = "debuginfo"
rpath = true
lto = false
debug-assertions = true
codegen-units = 16
panic = 'unwind'
incremental = true
overflow-checks = true

[dependencies]
shikha-notebook = {{ path = {:?} }}
"#,
        repository.prelude()
    )
}

/// Builds the dependencies; quick when they are built. Cargo shows its own progress.
///
/// # Errors
/// Something is missing on this machine, does not compile, or is not what the project's lock file names.
pub fn warm(repository: &Repository) -> Result<(), KernelError> {
    let toolchain = Toolchain::find(repository)?;
    toolchain.need_sources(repository)?;
    let workshop = Workshop::open(repository, &toolchain, "warm")?;
    let source = workshop.folder.join("src");
    std::fs::create_dir_all(&source).map_err(KernelError::file("create", &source))?;
    for (path, text) in [
        (workshop.folder.join("Cargo.toml"), manifest(repository)),
        (source.join("lib.rs"), "pub use shikha_notebook;\n".to_owned()),
    ] {
        std::fs::write(&path, text).map_err(KernelError::file("write", path))?;
    }
    let mut cargo = Command::new("cargo");
    for name in foreign_variables() {
        cargo.env_remove(name);
    }
    let status = cargo
        .args(["build", "--target", &toolchain.host])
        .current_dir(&workshop.folder)
        .env("CARGO_TARGET_DIR", "target")
        .env("CARGO_BUILD_BUILD_DIR", &workshop.build)
        .env("RUSTFLAGS", RUSTFLAGS)
        .status()
        .map_err(|source| KernelError::Start { program: "cargo".into(), source })?;
    if !status.success() {
        return Err(KernelError::Warm);
    }
    match workshop.unlocked(repository)? {
        Some(package) => Err(KernelError::Unlocked(package)),
        None => Ok(()),
    }
}
