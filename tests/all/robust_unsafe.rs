//! Every `unsafe` in the program says why it is sound.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort_unstable();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a line without its comment and its strings.
fn code(line: &str) -> String {
    let bare: String = line.split('"').step_by(2).collect();
    bare.split("//").next().unwrap_or_default().to_owned()
}

#[test]
fn every_unsafe_has_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let (mut blocks, mut bare) = (0, Vec::new());
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let code = code(line);
            if !code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe") {
                continue;
            }
            blocks += 1;
            let place = format!("{}:{}", file.strip_prefix(root).unwrap().display(), i + 1);
            println!("{place}: {}", line.trim());
            // The reason stands in the comment above, over attributes and the head of the statement.
            let above = lines[..i].iter().rev().take(12);
            let near = above.take_while(|line| !line.trim().is_empty() && line.trim() != "}");
            let has_reason = near.chain([line]).any(|l| l.contains("SAFETY:") || l.contains("# Safety"));
            // A method of an unsafe trait has the reason of its impl and of the block in it.
            let in_trait = code.contains("unsafe fn") && line.starts_with("    unsafe fn");
            if !has_reason && !in_trait {
                bare.push(place);
            }
        }
    }
    println!("{blocks} places with `unsafe` in {} files", files.len());
    assert!(blocks > 10 && bare.is_empty(), "no reason at {bare:?}");
}

#[test]
fn no_build_script_reaches_the_network() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("build.rs")).unwrap();
    for word in ["ureq", "TcpStream", "std::net", "Command", "http://", "https://"] {
        assert!(!text.contains(word), "build.rs: {word}");
    }
}
