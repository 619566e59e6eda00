//! `typeset ROOT SOURCE OUT`: typesets SOURCE, a Typst file in the folder ROOT, and writes OUT as PDF.
//!
//! No network, no clock, no fonts of the machine: the same files give the same bytes, wherever ROOT lies.

mod date;
mod diagnostics;
mod world;

use std::path::Path;
use std::process::ExitCode;
use thiserror::Error;
use typst::diag::{SourceDiagnostic, Warned};
use typst::foundations::Smart;
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, Timestamp};
use world::Repository;

/// Stands for the document in its identifier; the same in every version of the report.
const IDENT: &str = "shikha-report";

#[derive(Debug, Error)]
enum TypesetError {
    #[error("usage: typeset ROOT SOURCE OUT, such as `typeset . paper/report.typ paper/report.pdf`")]
    Usage,
    #[error("{0}")]
    Setting(String),
    #[error("{}", .0.join("\n"))]
    Source(Vec<String>),
    #[error("{path} cannot be written: {error}")]
    Write { path: String, error: std::io::Error },
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String, TypesetError> {
    let [root, source, out] = arguments else { return Err(TypesetError::Usage) };
    let (pdf, pages) = typeset(Path::new(root), source)?;
    write(Path::new(out), &pdf).map_err(|error| TypesetError::Write { path: out.clone(), error })?;
    Ok(format!("{out}: {pages} pages, {:.2} MB", pdf.len() as f64 / 1e6))
}

/// The PDF and how many pages it has. A warning is an error here: a font or a letter that is not there.
fn typeset(root: &Path, source: &str) -> Result<(Vec<u8>, usize), TypesetError> {
    let date = date::of(root).map_err(TypesetError::Setting)?;
    let repository = Repository::new(root, source, date).map_err(TypesetError::Setting)?;
    let failed = |all: &[SourceDiagnostic]| TypesetError::Source(diagnostics::lines(&repository, all));
    let Warned { output, warnings } = typst::compile::<PagedDocument>(&repository);
    let document = output.map_err(|errors| failed(&errors))?;
    let mut wrong = diagnostics::lines(&repository, &warnings);
    wrong.extend(diagnostics::boxes(&repository, &document));
    if !wrong.is_empty() {
        return Err(TypesetError::Source(wrong));
    }
    let options = PdfOptions {
        ident: Smart::Custom(IDENT.to_owned()),
        timestamp: Some(Timestamp::new_utc(date)),
        ..PdfOptions::default()
    };
    let pdf = typst_pdf::pdf(&document, &options).map_err(|errors| failed(&errors))?;
    Ok((pdf, document.pages().len()))
}

/// Writes beside the file first, so that a reader never sees half of it.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = path.with_extension("pdf.tmp");
    std::fs::write(&beside, bytes)?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one source, in a folder of its own.
    fn repository(name: &str, source: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("shikha-typeset-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("CITATION.cff"), "date-released: 2026-12-01\n").unwrap();
        std::fs::write(root.join("a.typ"), source).unwrap();
        root
    }

    fn refusal(name: &str, source: &str) -> String {
        let root = repository(name, source);
        let error = typeset(&root, "a.typ").unwrap_err().to_string();
        std::fs::remove_dir_all(root).unwrap();
        error
    }

    #[test]
    fn two_folders_give_the_same_bytes() {
        let source = "#set document(title: \"A\", date: auto)\n= A\n$x^2$ শিখা #datetime.today().display()";
        let made = ["one", "another"].map(|name| {
            let root = repository(name, source);
            let made = typeset(&root, "a.typ").unwrap();
            std::fs::remove_dir_all(root).unwrap();
            made
        });
        assert_eq!(made[0], made[1]);
        assert_eq!(made[0].1, 1);
        assert!(made[0].0.starts_with(b"%PDF"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let error = refusal("generated", "\n#csv(\"paper/generated/x.csv\")");
        assert!(error.starts_with("a.typ:2:6: ") && error.contains("run `make figures`"), "{error}");
        let error = refusal("package", "#import \"@preview/a:1.0.0\": b");
        assert!(error.contains("nothing is downloaded"), "{error}");
        let error = refusal("outside", "#read(\"../b\")");
        assert!(error.starts_with("a.typ:1:7: ") && error.contains("escape"), "{error}");
        assert_eq!(refusal("letter", "a 한"), "page 1: no font has `한`");
        let error = refusal("call", "#let f() = panic(\"no\")\n#f()");
        assert!(error.contains("a.typ:1:") && error.contains("while calling `f` at a.typ:2:2"), "{error}");
        assert!(refusal("syntax", "#let").starts_with("a.typ:1:"));
    }
}
