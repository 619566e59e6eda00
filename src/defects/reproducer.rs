//! A program that shows one defect with Candle alone, made of the entry's own source.

use super::entry::{Check, Entry};
use super::record::CANDLE;
use std::fmt::Write;

const PROBE: &str = include_str!("probe.rs");

/// A self-contained `main.rs` that prints whether the defect is present, with the numbers that show it, and the
/// crates it needs as a comment above; `None` where there is nothing to run here.
///
/// It is made of what stands between the marks in the entry's file, and of the helpers it calls.
pub fn reproducer(entry: &Entry) -> Option<String> {
    let own = marked(entry.source)?;
    let helpers = marked(PROBE)?;
    let (helpers, call) = match entry.check {
        Check::Gradient { .. } => (helpers.to_owned(), "differences(&defect, &input()?)?"),
        Check::Shown { .. } if own.contains("tensor(&") => (first_function(helpers), "defect()?"),
        Check::Shown { .. } => (String::new(), "defect()?"),
        Check::Elsewhere(_) => return None,
    };
    let mut text = format!("// {}\n// cargo add candle-core@={CANDLE} candle-nn@={CANDLE}\n", entry.title);
    text += "#![allow(unused, deprecated)]\nuse candle_core::*;\n";
    for line in entry.source.lines().filter(|line| needed(line)) {
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(text, "\n{own}\n{helpers}\nfn main() -> Result<()> {{\n    let (present, seen) = {call};\n");
    text += "    Ok(println!(\"{}: {seen}\", if present { \"present\" } else { \"absent\" }))\n}\n";
    // A documented function needs no empty line above it.
    Some(text.replace("\n\n\n", "\n\n").replace("\n}\n\n///", "\n}\n///"))
}

/// The part of a file that the reproducer takes.
fn marked(source: &str) -> Option<&str> {
    let (_, rest) = source.split_once("// reproducer {\n")?;
    rest.split_once("// }\n").map(|(part, _)| part)
}

/// Imports that Candle or the standard library meet; those of its root are taken whole.
fn needed(line: &str) -> bool {
    let of = |path: &str| line.starts_with(&format!("use {path}"));
    of("candle_nn") || of("candle_core::quantized") || of("std::")
}

/// Up to the first line that closes a function.
fn first_function(source: &str) -> String {
    source.split_once("\n}\n").map_or(String::new(), |(function, _)| format!("{function}\n}}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defects::catalogue;

    #[test]
    fn every_entry_that_runs_here_has_a_short_program_of_its_own() {
        let mut made = 0;
        for entry in catalogue() {
            let program = reproducer(&entry);
            let elsewhere = matches!(entry.check, Check::Elsewhere(_));
            assert_eq!(program.is_none(), elsewhere, "{}", entry.id);
            let Some(program) = program else { continue };
            made += 1;
            let lines = program.lines().count();
            assert!(lines <= 60, "{}: {lines} lines", entry.id);
            assert!(!program.contains("crate::") && program.contains("fn main()"), "{}", entry.id);
        }
        assert!(made >= 28, "{made}");
    }
}
