//! Gives the program a hash of its own source, which every stage of a run counts among its inputs:
//! what another program made is made again.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let mut files = vec![PathBuf::from("Cargo.lock")];
    collect(Path::new("src"), &mut files)?;
    for path in ["src", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    files.sort();
    let mut hasher = Sha256::new();
    for file in files.iter().filter(|file| file.exists()) {
        hasher.update(file.to_string_lossy().replace('\\', "/"));
        hasher.update(Sha256::digest(fs::read(file)?));
    }
    let digits: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=SHIKHA_SOURCE={digits}");
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|kind| ["rs", "cu", "cuh", "ptx"].iter().any(|known| kind == *known)) {
            files.push(path);
        }
    }
    Ok(())
}
