//! From a line of the source that evcxr generates back to the line that the reader wrote.

use crate::notebook::CodeCell;

/// Where the function that holds the cell's statements starts.
const FUNCTION: &str = "pub extern \"C\" fn run_user_code_";

/// The cell and the line in it whose text stands on a line (from one) of the generated source. The cells are those run so
/// far, the current one last: a function may come from an earlier one. Texts are compared, since evcxr reorders items
/// and keeps statements line by line.
pub fn in_cells(generated: &str, line: usize, cells: &[CodeCell]) -> Option<(usize, usize)> {
    let all: Vec<&str> = generated.lines().map(str::trim).collect();
    let wanted = *all.get(line.checked_sub(1)?)?;
    if wanted.chars().filter(|c| c.is_alphanumeric()).count() == 0 {
        return None;
    }
    let start = all.iter().position(|text| text.starts_with(FUNCTION)).filter(|&start| start < line).unwrap_or(0);
    let earlier = all[start..line - 1].iter().filter(|&&text| text == wanted).count();
    let found = |matches: &dyn Fn(&str) -> bool| {
        cells.iter().rev().find_map(|cell| {
            let lines: Vec<usize> =
                cell.source.lines().zip(1..).filter(|(text, _)| matches(text.trim())).map(|(_, line)| line).collect();
            lines.get(earlier.min(lines.len().saturating_sub(1))).map(|&line| (cell.number, line))
        })
    };
    // Two statements of one line stand on two lines of the generated source.
    found(&|text| text == wanted).or_else(|| found(&|text| text.contains(wanted)))
}

/// The line of the cell's own source that a panic message, a backtrace or a marker names first: `src/lib.rs:12:5`, or
/// the same under the crate's folder. A file of that name in another folder is not meant.
pub fn named_line(text: &str, crate_directory: &str) -> Option<usize> {
    const FILE: &str = "src/lib.rs:";
    text.match_indices(FILE).find_map(|(at, _)| {
        let before = text[..at].trim_end_matches("./");
        let own = before.ends_with(&format!("{crate_directory}/"))
            || before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '"');
        let digits: String = text[at + FILE.len()..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|_| own)
    })
}

#[cfg(test)]
mod tests {
    use super::{in_cells, named_line};
    use crate::notebook::CodeCell;

    fn cell(number: usize, source: &str) -> CodeCell {
        CodeCell { index: number, number, source: source.into(), tags: Default::default() }
    }

    #[test]
    fn statements_items_and_repeated_lines_are_found() {
        let cells = [
            cell(1, "fn half(x: u32) -> u32 {\n    assert!(x > 1);\n    x / 2\n}"),
            cell(2, "let a = half(4);\nlet b = f();\n\nlet b = f();\na; b"),
        ];
        let generated = "fn half(x: u32) -> u32 {\n    assert!(x > 1);\n    x / 2\n}\n#[unsafe(no_mangle)]\n\
            pub extern \"C\" fn run_user_code_3(\nlet a = half(4);\nlet b = f();\nlet b = f();\na;\nb\n}\n";
        assert_eq!(in_cells(generated, 2, &cells), Some((1, 2)), "an item of an earlier cell");
        assert_eq!(in_cells(generated, 7, &cells), Some((2, 1)));
        assert_eq!(in_cells(generated, 8, &cells), Some((2, 2)));
        assert_eq!(in_cells(generated, 9, &cells), Some((2, 4)), "the second of two equal lines");
        assert_eq!(in_cells(generated, 10, &cells), Some((2, 5)), "one of two statements of a line");
        assert_eq!(in_cells(generated, 12, &cells), None, "a brace says nothing");
        assert_eq!(in_cells(generated, 99, &cells), None);
    }

    #[test]
    fn the_line_is_read_off_panics_and_backtraces() {
        let own = "/x/sessions/run-0";
        assert_eq!(named_line("thread 'main' (1) panicked at src/lib.rs:41:9:", own), Some(41));
        assert_eq!(named_line("  3: run\n        at ./src/lib.rs:7:1", own), Some(7));
        assert_eq!(named_line("  at /x/src/lib.rs:3:1\n  at /x/sessions/run-0/src/lib.rs:9:1", own), Some(9));
        assert_eq!(named_line("panicked at /x/src/model.rs:3:1", own), None);
    }
}
