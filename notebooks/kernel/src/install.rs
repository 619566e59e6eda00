//! Registers the kernel with Jupyter.

use crate::error::KernelError;
use crate::repository::Repository;
use crate::workshop::ALLOCATOR;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Registers the kernel under a prefix (`PREFIX/share/jupyter`), or else for this user, and gives its folder.
///
/// # Errors
/// Another Rust kernel is registered there and `force` is not given; a file cannot be written; there is no home folder.
pub fn install(repository: &Repository, prefix: Option<&Path>, force: bool) -> Result<PathBuf, KernelError> {
    let data = match prefix {
        Some(prefix) => prefix.join("share/jupyter"),
        None => user_data().ok_or(KernelError::NoHome)?,
    };
    // The name that every notebook in Rust asks for, so that these open with another Rust kernel too.
    let folder = data.join("kernels/rust");
    let file = folder.join("kernel.json");
    let program = std::env::current_exe().map_err(KernelError::file("find", "this program"))?;
    if file.exists() && !force {
        let bytes = std::fs::read(&file).map_err(KernelError::file("read", &file))?;
        let old: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if Path::new(old["argv"][0].as_str().unwrap_or_default()).file_name() != program.file_name() {
            return Err(KernelError::OtherKernel(file));
        }
    }
    std::fs::create_dir_all(&folder).map_err(KernelError::file("create", &folder))?;
    let spec = format!("{:#}\n", specification(repository, &program, |name| std::env::var(name).ok()));
    std::fs::write(&file, spec).map_err(KernelError::file("write", &file))?;
    Ok(folder)
}

/// The kernel as Jupyter reads it. A desktop starts Jupyter without a shell's settings, so what Cargo needs is said here.
fn specification(repository: &Repository, program: &Path, variable: impl Fn(&str) -> Option<String>) -> Value {
    let mut environment = Map::new();
    if let Some(path) = variable("PATH") {
        let cargo = std::env::split_paths(&path).find(|folder| folder.join("cargo").is_file());
        let path = match cargo {
            Some(folder) => format!("{}:${{PATH}}", folder.display()),
            None => path,
        };
        environment.insert("PATH".into(), json!(path));
    }
    environment.insert(ALLOCATOR.0.into(), json!(ALLOCATOR.1));
    for name in ["RUSTUP_HOME", "CARGO_HOME"] {
        if let Some(value) = variable(name) {
            environment.insert(name.into(), json!(value));
        }
    }
    json!({
        "argv": [program, "--control_file", "{connection_file}"],
        "display_name": "Rust (Shikha)",
        "language": "rust",
        "interrupt_mode": "message",
        "env": environment,
        "metadata": {"repository": repository.root()},
    })
}

/// Where Jupyter looks for what belongs to one user.
fn user_data() -> Option<PathBuf> {
    let home = std::env::home_dir()?;
    if cfg!(target_os = "macos") {
        return Some(home.join("Library/Jupyter"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").map_or_else(|| home.join(".local/share"), PathBuf::from);
    Some(data.join("jupyter"))
}

#[cfg(test)]
mod tests {
    use super::{install, specification};
    use crate::repository::Repository;
    use serde_json::Value;
    use std::path::Path;

    #[test]
    fn the_specification_names_the_program_and_where_cargo_is() {
        let bin = tempfile::tempdir().unwrap();
        std::fs::write(bin.path().join("cargo"), "").unwrap();
        let path = format!("/nowhere:{}", bin.path().display());
        let repository = Repository::find().unwrap();
        let spec = specification(&repository, Path::new("/k/shikha-kernel"), |name| match name {
            "PATH" => Some(path.clone()),
            "CARGO_HOME" => Some("/c".into()),
            _ => None,
        });
        assert_eq!(spec["argv"][0], "/k/shikha-kernel");
        assert_eq!(spec["argv"][2], "{connection_file}");
        assert_eq!(spec["env"]["PATH"], format!("{}:${{PATH}}", bin.path().display()));
        assert_eq!(spec["env"]["CARGO_HOME"], "/c");
        assert!(spec["env"].get("RUSTUP_HOME").is_none());
    }

    #[test]
    fn another_kernel_is_not_replaced_unless_asked() {
        let prefix = tempfile::tempdir().unwrap();
        let repository = Repository::find().unwrap();
        let folder = install(&repository, Some(prefix.path()), false).unwrap();
        assert!(folder.ends_with("share/jupyter/kernels/rust"));
        install(&repository, Some(prefix.path()), false).unwrap();
        std::fs::write(folder.join("kernel.json"), r#"{"argv": ["/usr/bin/evcxr_jupyter"]}"#).unwrap();
        let error = install(&repository, Some(prefix.path()), false).unwrap_err();
        assert!(error.to_string().contains("is another Rust kernel"), "{error}");
        install(&repository, Some(prefix.path()), true).unwrap();
        let spec: Value = serde_json::from_slice(&std::fs::read(folder.join("kernel.json")).unwrap()).unwrap();
        assert_eq!(spec["display_name"], "Rust (Shikha)");
    }
}
