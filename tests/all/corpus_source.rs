//! Tests of `corpus::source`: manifests, the store and the readers.

use shikha::corpus::source::{Manifest, Store, read};
use shikha::progress::Progress;

#[test]
fn the_pocket_corpus_is_inside_the_program() {
    let manifest = Manifest::load("pocket").unwrap();
    let store = Store::new(None, "no-such-folder".into());
    let outcome = read(&manifest, &store, &mut Progress::hidden(2)).unwrap();
    assert_eq!(outcome.documents.len(), 2000);
    assert_eq!(outcome.documents[1000].id, "pocket-en/sentences.txt#1");
    assert!(outcome.skipped.is_empty() && outcome.not_allowed.is_empty() && outcome.parallel.is_empty());
}
