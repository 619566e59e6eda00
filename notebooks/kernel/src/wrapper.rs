//! The runner's place in front of the compiler: what lets it say on which line of a cell `?` failed, and when a cell has
//! written its last line to standard error.
//!
//! evcxr prints an error that `?` returns, but not where; and standard error arrives on its own, perhaps after the cell.
//! So the runner stands in front of the compiler for the cells' own crate (`RUSTC_WORKSPACE_WRAPPER`) and adds two
//! marker lines to the source that evcxr generates, without moving a line of it. Cells stay as they are, and so does
//! everything that they print.

use std::path::Path;
use std::process::Command;

/// Set for the compiler's wrapper alone.
pub const ENVIRONMENT: &str = "SHIKHA_KERNEL_MARKS_CELLS";
/// Ends a cell on standard error.
pub const END: &str = "\u{1}shikha-kernel: end of cell";
/// Precedes the line of the generated source where `?` returned an error.
pub const QUESTION_MARK: &str = "\u{1}shikha-kernel: error at src/lib.rs:";

/// Runs the compiler when this process stands in front of it: when its first argument is one and the variable is set.
/// Gives the exit status.
pub fn hook() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    let compiler = arguments.next().filter(|_| std::env::var_os(ENVIRONMENT).is_some())?;
    Path::new(&compiler).file_stem().filter(|stem| *stem == "rustc")?;
    let arguments: Vec<_> = arguments.collect();
    let source = Path::new("src/lib.rs");
    if arguments.iter().any(|argument| argument == source.as_os_str())
        && let Ok(text) = std::fs::read_to_string(source)
        && let Some(marked) = mark(&text)
        && let Err(error) = std::fs::write(source, marked)
    {
        // The cell runs without its marks then: only a line number is lost.
        eprintln!("warning: cannot mark the cell: {error}");
    }
    match Command::new(&compiler).args(arguments).status() {
        Ok(status) => Some(status.code().unwrap_or(1)),
        Err(error) => {
            eprintln!("error: cannot start {}: {error}", compiler.display());
            Some(1)
        }
    }
}

/// The generated source with its marks; none if it holds no cell's statements, or is marked already.
fn mark(source: &str) -> Option<String> {
    if !source.contains("pub extern \"C\" fn run_user_code_") || source.contains(END) {
        return None;
    }
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    let last = lines.iter().rposition(|line| line.trim() == "evcxr_variable_store")?;
    lines[last].insert_str(0, &format!("eprintln!(\"{{}}\", {END:?}); "));
    if let Some(start) = lines.iter().position(|line| line.contains("From<T> for EvcxrUserCodeError"))
        && let Some(from) = lines[start..].iter_mut().find(|line| line.trim() == "fn from(error: T) -> Self {")
    {
        *from = format!(
            "#[track_caller] {} eprintln!(\"{{}}{{}}\", {QUESTION_MARK:?}, std::panic::Location::caller().line());",
            from.trim()
        );
    }
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::{END, QUESTION_MARK, mark};

    #[test]
    fn marks_move_no_line() {
        let source = "struct EvcxrUserCodeError {}\nimpl<T: std::fmt::Display> From<T> for EvcxrUserCodeError {\n\
            fn from(error: T) -> Self {\n}}\npub extern \"C\" fn run_user_code_1(x: *mut u8) -> *mut u8 {\n\
            let y = f()?;\nevcxr_variable_store\n}\n";
        let marked = mark(source).unwrap();
        assert_eq!(marked.lines().count(), source.lines().count());
        assert_eq!(marked.lines().nth(5), Some("let y = f()?;"));
        assert!(marked.lines().nth(6).unwrap().starts_with("eprintln!"), "{marked}");
        assert!(marked.lines().nth(2).unwrap().starts_with("#[track_caller] fn from"), "{marked}");
        assert_eq!(mark(&marked), None, "once is enough");
        assert_eq!(mark("fn main() {}"), None);
        assert!(END.starts_with('\u{1}') && QUESTION_MARK.ends_with("src/lib.rs:"));
    }
}
