//! Tests of the committed figures and tables: all of the registry, and exactly what the stored measurements give,
//! wherever the repository lies.

use shikha::pipeline::{check_drawn, redraw};
use shikha::report::registry::{Entry, REGISTRY};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Another checkout: what is stored and what is drawn, elsewhere.
fn elsewhere() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for part in ["checkpoints", "data-manifests", "defects/matrix", "figures", "paper/generated"] {
        copy(&root().join(part), &dir.path().join(part));
    }
    let defects = ["outcomes.json", "burn.json", "backward-efficiency.json"].map(|name| format!("defects/{name}"));
    for document in ["README.md", "REPRODUCING.md", "paper/report.html"].into_iter().chain(defects.iter().map(|d| &**d))
    {
        std::fs::copy(root().join(document), dir.path().join(document)).unwrap();
    }
    dir
}

#[test]
fn the_committed_figures_and_tables_are_what_the_stored_measurements_give() {
    let said = check_drawn(&root()).unwrap();
    assert!(said.starts_with(&format!("{} files", 2 * REGISTRY.len() + 8)), "{said}");
}

#[test]
fn the_registry_lists_every_figure_and_table_and_nothing_else() {
    let drawn: BTreeSet<String> = redraw(&root()).unwrap().into_keys().collect();
    let mut listed: BTreeSet<String> = REGISTRY.iter().flat_map(Entry::files).collect();
    listed.extend(
        [
            "paper/generated/numbers.json",
            "paper/report.html",
            "README.md",
            "REPRODUCING.md",
            "checkpoints/tokenizer/tokenizer.md",
        ]
        .map(str::to_owned),
    );
    listed.extend(["pocket", "small", "eval"].map(|name| format!("data-manifests/{name}.croissant.json")));
    assert_eq!(drawn, listed);
    for folder in ["figures", "paper/generated"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            assert!(listed.contains(&name), "{name} is committed and in no row of the registry");
        }
    }
    for entry in REGISTRY {
        for input in entry.inputs {
            assert!(root().join(input).exists(), "{}: {input}", entry.id);
        }
    }
}

#[test]
fn another_checkout_draws_the_same_bytes_and_notices_what_is_stale() {
    let dir = elsewhere();
    assert_eq!(redraw(dir.path()).unwrap(), redraw(&root()).unwrap());
    let figure = dir.path().join("figures/loss.svg");
    let drawn = std::fs::read_to_string(&figure).unwrap();
    std::fs::write(&figure, drawn.replacen("</svg>", " </svg>", 1)).unwrap();
    std::fs::remove_file(dir.path().join("paper/generated/claims.csv")).unwrap();
    let error = check_drawn(dir.path()).unwrap_err().to_string();
    assert!(error.contains("figures/loss.svg, paper/generated/claims.csv;"), "{error}");
    assert!(error.contains("make figures"), "{error}");
}

#[test]
fn a_changed_measurement_is_refused_by_name() {
    let dir = elsewhere();
    for name in ["checkpoints/reference/eval.json", "checkpoints/fertility/study.json"] {
        let path = dir.path().join(name);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, whole.replacen('1', "2", 1)).unwrap();
        let error = redraw(dir.path()).unwrap_err().to_string();
        assert!(error.contains(name.rsplit('/').next().unwrap()) && error.contains("hash"), "{error}");
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn the_claims_table_has_no_empty_cell() {
    let drawn = redraw(&root()).unwrap();
    let table = std::str::from_utf8(&drawn["paper/generated/claims.md"]).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert_eq!(rows.len(), shikha::report::Ledger::built_in().unwrap().claims.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
    }
}

/// The tags of well-formed markup in their order, after checking that they nest.
fn tags(html: &str) -> Vec<&str> {
    let (mut tags, mut open) = (Vec::new(), Vec::new());
    for part in html.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("`<{part}` does not end"));
        assert!(!text.contains('>'), "`{text}` holds a bare >");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') && !tag.starts_with('!') {
            open.push(tag.split_whitespace().next().unwrap());
        }
        tags.push(tag);
    }
    assert!(open.is_empty(), "{open:?}");
    tags
}

#[test]
fn the_page_is_well_formed_small_and_needs_nothing_else() {
    let drawn = redraw(&root()).unwrap();
    let html = std::str::from_utf8(&drawn["paper/report.html"]).unwrap();
    let tags = tags(html);
    let values = |name: &str| {
        let found = tags.iter().filter_map(|tag| tag.split_once(&format!(" {name}=\"")));
        found.map(|(_, rest)| rest.split('"').next().unwrap()).collect::<Vec<_>>()
    };
    let ids = values("id");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    for target in values("href") {
        match (target.strip_prefix('#'), target.strip_prefix("../")) {
            (Some(id), _) => assert!(ids.contains(&id), "{target}"),
            (_, Some(path)) => assert!(root().join(path).exists(), "{target}"),
            _ => panic!("{target} leads out of the repository"),
        }
    }
    values("aria-labelledby").iter().for_each(|id| assert!(ids.contains(id), "{id} names a box and is not there"));
    assert!(values("src").is_empty() && !html.contains("<script") && !html.contains("url("));
    assert_eq!(
        tags.iter().filter(|tag| tag.starts_with("svg ")).count(),
        drawn.keys().filter(|k| k.ends_with("svg")).count()
    );
    assert!(!html.contains("not measured</p>"), "every row of the registry is on the page");
    let mut level = 0;
    for tag in tags.iter().filter(|tag| tag.len() > 1 && tag.starts_with('h') && tag.as_bytes()[1].is_ascii_digit()) {
        let next = usize::from(tag.as_bytes()[1] - b'0');
        assert!(next <= level + 1, "`{tag}` skips a level");
        level = next;
    }
    assert!(tags.iter().filter(|tag| tag.split(' ').next() == Some("th")).all(|tag| tag.contains(" scope=\"")));
    assert!(html.len() < 3_000_000, "{}", html.len());
}

#[test]
fn what_is_cited_is_this_version_under_these_licences() {
    let text = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (citation, licences) = (text("CITATION.cff"), text("LICENSES.md"));
    for line in ["cff-version: 1.2.0", "  - MIT", "  - Apache-2.0", &format!("version: {}", env!("CARGO_PKG_VERSION"))]
    {
        assert!(citation.lines().any(|found| found == line), "{line}");
    }
    assert!(citation.contains(&format!("repository-code: \"{}\"", env!("CARGO_PKG_REPOSITORY"))));
    assert_eq!(env!("CARGO_PKG_LICENSE"), "MIT OR Apache-2.0");
    for part in ["## Code", "## Weights and tokenizers", "## Data references", "## Texts"] {
        assert!(licences.contains(part), "{part}");
    }
    for link in licences.split("](").skip(1) {
        let path = link.split(')').next().unwrap();
        assert!(root().join(path).exists(), "{path}");
    }
}
