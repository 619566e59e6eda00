//! Tests of `corpus::source`: manifests, the store and the readers.

use shikha::corpus::source::{Manifest, Role, Store, read};
use shikha::progress::Progress;
use std::collections::BTreeMap;

#[test]
fn the_pocket_corpus_is_inside_the_program() {
    let manifest = Manifest::load("pocket").unwrap();
    let store = Store::new(None, "no-such-folder".into());
    let outcome = read(&manifest, &store, &mut Progress::hidden(2)).unwrap();
    assert_eq!(outcome.documents.len(), 2000);
    assert_eq!(outcome.documents[1000].id, "pocket-en/sentences.txt#1");
    assert!(outcome.skipped.is_empty() && outcome.not_allowed.is_empty() && outcome.parallel.is_empty());
}

/// Needs a mirror folder (`SHIKHA_MIRROR`), and does nothing without one.
#[test]
fn the_small_manifest_resolves_from_a_mirror() {
    let Some(mirror) = std::env::var_os("SHIKHA_MIRROR") else { return };
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
}
