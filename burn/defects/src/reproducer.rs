//! A program that shows one defect with Burn alone, made of the entry's own source.

use crate::catalogue::{BURN, Entry};
use std::fmt::Write;

/// The files whose items a check may call.
const HELPERS: [&str; 2] = [include_str!("probe.rs"), include_str!("speed.rs")];

/// What stands above every program.
const FRAME: &str = "#![allow(unused, deprecated)]
use burn::{grad_clipping::*, module::*, nn::loss::*, nn::*, optim::*, tensor::{activation, module::linear, *}};
";

/// A self-contained `main.rs` that prints whether the defect is present, with the numbers that show it, and the
/// crate it needs as a comment above; `None` where a GPU is needed.
pub fn program(entry: &Entry) -> Option<String> {
    let (_, rest) = entry.source.split_once("    reproduce: || ")?;
    let (call, rest) = rest.split_once(",\n    control: ")?;
    let (_, own) = rest.split_once("\n};\n")?;
    if call.starts_with("attempt") {
        return None;
    }
    let own: Vec<String> = items(own);
    // What the entry defines itself stands before a helper of that name.
    let defined: Vec<String> = own.iter().filter_map(|item| name(item)).map(str::to_owned).collect();
    let helpers = HELPERS.into_iter().flat_map(items);
    let others = helpers.filter(|item| !name(item).is_some_and(|name| defined.iter().any(|own| own == name)));
    let items: Vec<String> = own.into_iter().chain(others).collect();
    let taken = named(call, &items);
    let mut text = format!(
        "// {}\n// cargo add burn@={BURN} --no-default-features --features std,optim,autodiff,flex,ndarray\n{FRAME}",
        entry.title
    );
    let files = std::iter::once(entry.source).chain(HELPERS);
    for line in files.flat_map(str::lines).filter(|line| line.starts_with("use std::") && used(line, &taken)) {
        let _ = writeln!(text, "{line}");
    }
    taken.iter().for_each(|item| text += item);
    let _ = write!(text, "fn main() -> Result<(), CheckError> {{\n    let (present, seen) = {call}?;\n");
    text += "    Ok(println!(\"{}: {seen}\", if present { \"present\" } else { \"absent\" }))\n}\n";
    // A verdict is a pair there.
    let text = text.replace("Verdict::when(", "(").replace("Verdict", "(bool, String)");
    Some(text.replace("CheckError::Memory", "").replace("CheckError", "Box<dyn std::error::Error>"))
}

/// The items of a file without their comments: what stands between empty lines, imports and tests left out.
fn items(source: &str) -> Vec<String> {
    let (source, _) = source.split_once("#[cfg(test)]").unwrap_or((source, ""));
    let mut items = Vec::new();
    for block in source.trim().split("\n\n") {
        let code = block.lines().filter(|line| !line.trim_start().starts_with("//"));
        let lines: Vec<String> = code.map(|line| format!("{line}\n")).collect();
        // Constants stand below one another.
        if lines.iter().all(|line| line.contains("const ") && line.ends_with(";\n")) {
            items.extend(lines);
        } else {
            items.push(lines.concat());
        }
    }
    items.retain(|item| !item.starts_with("use "));
    items
}

/// Those of `items` that `call` names, and those that these name, in their order.
fn named<'a>(call: &str, items: &'a [String]) -> Vec<&'a str> {
    let mut taken = vec![false; items.len()];
    loop {
        let text: Vec<&str> = std::iter::once(call)
            .chain(items.iter().zip(&taken).filter(|(_, t)| **t).map(|(item, _)| item.as_str()))
            .collect();
        let words: Vec<&str> = text.iter().flat_map(|text| words(text)).collect();
        let before = taken.clone();
        for (item, taken) in items.iter().zip(&mut taken) {
            *taken |= name(item).is_some_and(|name| words.contains(&name));
        }
        if taken == before {
            return items.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(item, _)| item.as_str()).collect();
        }
    }
}

/// What an item defines; of an implementation, the type.
fn name(item: &str) -> Option<&str> {
    let line = item.lines().find(|line| !line.starts_with("#["))?;
    let mut words = words(line).filter(|word| *word != "pub");
    match words.next()? {
        "impl" => words.last(),
        _ => words.next(),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Whether an import brings a name that `items` use.
fn used(import: &str, items: &[&str]) -> bool {
    let brought = words(import).skip(2);
    let brought: Vec<&str> = brought.collect();
    brought.iter().any(|name| items.iter().any(|item| words(item).any(|word| word == *name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_that_runs_here_has_a_short_program_of_its_own() {
        let (mut made, mut long) = (0, Vec::new());
        for entry in crate::entries::all() {
            let Some(program) = program(&entry) else {
                assert!(entry.source.contains("attempt("), "{}", entry.id);
                continue;
            };
            made += 1;
            let lines = program.lines().count();
            if lines > 60 {
                long.push((entry.id, lines));
            }
            assert!(!program.contains("crate::") && !program.contains("shikha"), "{}", entry.id);
        }
        assert_eq!((made, long), (crate::entries::all().len() - 3, Vec::new()));
    }
}
