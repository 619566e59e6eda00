//! Tests of the report's source, without typesetting it: every number, figure and table comes from a generated file.

use crate::typst_source::{Found, scan};
use shikha::report::registry::{Entry, Kind, REGISTRY};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn source() -> Found {
    scan(&std::fs::read_to_string(root().join("paper/report.typ")).unwrap())
}

/// Lines and columns at which `source` has a typed digit.
fn digits(source: &str) -> Vec<(usize, usize)> {
    scan(source).digits
}

#[test]
fn the_report_has_no_typed_digit() {
    let digits = source().digits;
    let places: Vec<String> =
        digits.iter().map(|(line, column)| format!("paper/report.typ:{line}:{column}: a typed digit")).collect();
    assert!(places.is_empty(), "use `#n(\"key\")` for a number of a result\n{}", places.join("\n"));
}

#[test]
fn a_digit_is_found_wherever_a_reader_would_see_it() {
    for planted in [
        "The loss is 12.6 nats.",
        "= Loss 12.6",
        "a 4",
        "12.6%",
        "2em of it",
        "*12.6* _4_ [3]",
        "#emph[12.6]",
        "#tab(\"claims\", [It costs 164 dollars.], columns: (\"claim\",))",
        "#fig(\"loss\", [a #strong[b 7] c])",
        "#text(\"12.6\")",
        "#let loss = \"12.6\"",
        "#let loss = 12.6",
        "#(12.6)",
        "#12",
        "#[4]",
        "#report.with(summary: [12.6])",
        "$12.6$",
        "$ V = 296559 $",
        "GPT-12",
        "#n(\"a\")4",
        "১২ and ½",
        "\\u{31}",
        "\\12",
        "https://example.org/2026",
        "`a` 5 `b`",
    ] {
        assert!(!digits(planted).is_empty(), "{planted}");
    }
    assert_eq!(digits("a\nb 12.6 c 3\n"), [(2, 3), (2, 6), (2, 10)]);
}

#[test]
fn names_lengths_code_and_keys_are_no_results() {
    for fine in [
        "#set block(above: 2em, below: 1.5fr)",
        "#show heading: set text(size: 13.5pt)",
        "#n(\"study.all.gpt2.32768.bn.characters\")",
        "#tab(\"a2\", [Fine.], only: (\"pattern\": (\"gpt2\",)), widths: (1.5fr, 80%), size: 7.2pt)",
        "GPT-2, bf16, f32 and H100",
        "`make reproduce N=2` and ```sh\na 3\n```",
        "$ (L(theta + h d) - L(theta - h d)) / (2 h) $",
        "// 12.6\n/* 3 */ a",
        "@tab-study2 and @gpt2, <sec2>",
        "#link(\"https://example.org/2026\")[a page]",
        "#import \"/a2.typ\": b2",
    ] {
        assert_eq!(digits(fine), Vec::new(), "{fine}");
    }
}

#[test]
fn the_report_loses_no_semicolon() {
    assert_eq!(scan("#n(\"a\"); b\n#n(\"a\")\\; #n(\"a\"), [#f(g; h)]").swallowed, [(1, 8)]);
    let swallowed = source().swallowed;
    assert!(swallowed.is_empty(), "write `\\;` or a full stop at paper/report.typ {swallowed:?}");
}

#[test]
fn every_number_that_the_report_asks_for_is_generated() {
    let path = root().join("paper/generated/numbers.json");
    let used = source().keys;
    assert!(used.len() > 50, "{used:?}");
    if !path.exists() {
        eprintln!("not checked: {} is not there", path.display());
        return;
    }
    let numbers: BTreeMap<String, String> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let missing: Vec<_> = used.iter().filter(|key| !numbers.contains_key(*key)).collect();
    assert!(missing.is_empty(), "paper/generated/numbers.json has not {missing:?}");
}

#[test]
fn every_figure_and_table_of_the_report_is_in_the_registry_and_there() {
    let Found { figures, tables, .. } = source();
    assert!(figures.len() > 8 && tables.len() > 8, "{figures:?} {tables:?}");
    for (kind, ids) in [(Kind::Figure, figures), (Kind::Table, tables)] {
        for id in ids {
            let row = REGISTRY.iter().find(|entry| entry.kind == kind && entry.id == id);
            let entry: &Entry = row.unwrap_or_else(|| panic!("`{id}` has no row in the registry"));
            for file in entry.files() {
                assert!(Path::new(&root()).join(&file).exists(), "{file}: run `make figures`");
            }
        }
    }
}
