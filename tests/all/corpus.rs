//! Tests of `corpus`: shards, the loader, document files and the preparation of text.

use proptest::prelude::*;
use shikha::artifact::{Hash, hash_bytes};
use shikha::corpus::loader::{Batches, IGNORE, Interleave, Loader, validation_windows};
use shikha::corpus::shard::{HEADER, Shard, ShardWriter, write_shard};
use shikha::corpus::{
    CorpusError, Document, ParallelPair, ParallelSet, Prepared, prepare_documents, read_documents, write_documents,
};
use shikha::progress::Progress;
use shikha::recipe::{CorpusRecipe, Recipe};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Failures are not kept in files: the crate's root cannot be found from here.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn tokenizer() -> Hash {
    hash_bytes(b"a tokenizer")
}

/// A shard whose token at position i is `first` + i.
fn counting_shard(directory: &Path, name: &str, first: u32, count: u32) -> Shard {
    let path = directory.join(name);
    write_shard(&path, tokenizer(), 100_000, std::iter::once((first..first + count).collect())).unwrap();
    Shard::open(&path, tokenizer()).unwrap()
}

fn mix(weights: &[(&str, f64)]) -> BTreeMap<String, f64> {
    weights.iter().map(|(language, weight)| ((*language).to_owned(), *weight)).collect()
}

fn one_line(error: impl std::fmt::Display) -> String {
    let message = error.to_string();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

mod shard {
    use super::*;

    #[test]
    fn the_bytes_are_the_documented_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.tokens");
        let info = write_shard(&path, tokenizer(), 300, vec![vec![1, 258, 0], vec![], vec![299]].into_iter()).unwrap();
        assert_eq!((info.tokens, info.documents, info.width), (4, 3, 2));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), HEADER + 8);
        assert_eq!(
            &bytes[..40],
            b"SHIKHATK\x01\0\0\0\x02\0\0\0\x2c\x01\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
        );
        assert_eq!(&bytes[HEADER..], [1, 0, 2, 1, 0, 0, 43, 1]);
        assert_eq!(bytes[40..72], tokenizer().0);
        assert_eq!(bytes[72..104], hash_bytes(&bytes[HEADER..]).0);
        let shard = Shard::open(&path, tokenizer()).unwrap();
        assert_eq!(*shard.info(), info);
        let mut window = [0; 2];
        shard.window(1, &mut window);
        assert_eq!((window, shard.get(3)), ([258, 0], 299));
    }

    #[test]
    fn a_token_outside_the_vocabulary_stops_the_writer_and_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tokens");
        let mut writer = ShardWriter::create(&path, tokenizer(), 300).unwrap();
        let message = one_line(writer.push(&[0, 300]).unwrap_err());
        assert!(message.contains("300") && message.contains("another tokenizer"), "{message}");
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn another_tokenizer_and_other_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tokens");
        write_shard(&path, tokenizer(), 300, std::iter::once(vec![1])).unwrap();
        let other = hash_bytes(b"another");
        let message = one_line(Shard::open(&path, other).unwrap_err());
        for part in [tokenizer().short(), other.short(), "x.tokens".to_owned(), "run again".to_owned()] {
            assert!(message.contains(&part), "{message}");
        }
        std::fs::write(&path, "{\"model\": \"tokenizer.json\"}").unwrap();
        assert!(one_line(Shard::open(&path, other).unwrap_err()).contains("is not a token shard"));
        std::fs::write(&path, "").unwrap();
        assert!(one_line(Shard::open(&path, other).unwrap_err()).contains("it is empty"));
        let missing = one_line(Shard::open(&dir.path().join("none"), other).unwrap_err());
        assert!(missing.starts_with("cannot open "), "{missing}");
    }

    #[test]
    fn a_token_beyond_the_vocabulary_in_a_file_with_right_hashes_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tokens");
        write_shard(&path, tokenizer(), 300, std::iter::once(vec![1, 299])).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[16] = 43; // a vocabulary of 299
        let own = hash_bytes(&bytes[..104]);
        bytes[104..HEADER].copy_from_slice(&own.0);
        std::fs::write(&path, bytes).unwrap();
        let message = one_line(Shard::open(&path, tokenizer()).unwrap_err());
        assert!(message.contains("token 1 is 299, the vocabulary 299"), "{message}");
    }

    fn written(documents: &[Vec<u32>], vocabulary: usize) -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tokens");
        write_shard(&path, tokenizer(), vocabulary, documents.iter().cloned()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        (dir, path, bytes)
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let (_dir, path, bytes) = written(&[vec![1, 2, 3], vec![70_000]], 70_001);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, changed).unwrap();
            one_line(Shard::open(&path, tokenizer()).expect_err(&format!("bit {bit}")));
        }
    }

    #[test]
    fn every_truncation_and_any_addition_is_noticed() {
        let (_dir, path, mut bytes) = written(&[vec![1, 2, 3]], 300);
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            one_line(Shard::open(&path, tokenizer()).expect_err(&format!("{length} bytes")));
        }
        bytes.push(0);
        std::fs::write(&path, &bytes).unwrap();
        assert!(one_line(Shard::open(&path, tokenizer()).unwrap_err()).contains("its header promises"));
    }

    proptest! {
        #![proptest_config(cases(24))]
        #[test]
        fn what_is_written_is_read(
            documents in prop::collection::vec(prop::collection::vec(0u32..65_536, 0..50), 0..10),
            wide: bool,
        ) {
            let (_dir, path, bytes) = written(&documents, if wide { 65_537 } else { 65_536 });
            let shard = Shard::open(&path, tokenizer()).unwrap();
            let tokens = documents.concat();
            prop_assert_eq!(bytes.len(), HEADER + tokens.len() * if wide { 4 } else { 2 });
            prop_assert_eq!(shard.info().documents, documents.len() as u64);
            let mut read = vec![0; shard.len() as usize];
            shard.window(0, &mut read);
            prop_assert_eq!(read, tokens);
        }
    }
}

mod loader {
    use super::*;

    const CONTEXT: usize = 7;

    /// `bn` holds tokens from 0, `en` from 50 000.
    fn loader(directory: &Path, sizes: [u32; 2], batch: usize, seed: u64) -> Loader {
        let shards = vec![
            ("en".to_owned(), counting_shard(directory, "en", 50_000, sizes[1])),
            ("bn".to_owned(), counting_shard(directory, "bn", 0, sizes[0])),
        ];
        Loader::new(shards, &mix(&[("bn", 0.7), ("en", 0.3)]), batch, CONTEXT, seed).unwrap()
    }

    #[test]
    fn targets_are_the_next_tokens_and_batches_depend_on_seed_and_number_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (loader(dir.path(), [100, 100], 4, 1), loader(dir.path(), [100, 100], 4, 1));
        let forwards: Vec<_> = (0..30).map(|n| a.batch(n).unwrap()).collect();
        let backwards: Vec<_> = (0..30).rev().map(|n| b.batch(n).unwrap()).collect();
        assert!(forwards.iter().eq(backwards.iter().rev()));
        let batch = &forwards[11];
        assert_eq!((batch.batch, batch.context, batch.counted()), (4, CONTEXT, 4 * CONTEXT));
        for (i, (input, target)) in batch.inputs.iter().zip(&batch.targets).enumerate() {
            let base = input / 50_000 * 50_000;
            assert_eq!(*target, base + (input - base + 1) % 100, "position {i}");
        }
        assert_ne!(
            forwards,
            (0..30).map(|n| loader(dir.path(), [100, 100], 4, 2).batch(n).unwrap()).collect::<Vec<_>>()
        );
    }

    /// First tokens of the rows of a first batch: pinned, because a change of order changes every
    /// run made from the same recipe.
    const GOLDEN: [u32; 10] = [427, 50_372, 246, 50, 50_033, 973, 204, 938, 50_386, 455];

    #[test]
    fn the_first_batch_is_this_one() {
        let dir = tempfile::tempdir().unwrap();
        let starts: Vec<u32> =
            loader(dir.path(), [1000, 500], 10, 17).batch(0).unwrap().inputs.into_iter().step_by(CONTEXT).collect();
        assert_eq!(starts, GOLDEN);
    }

    #[test]
    fn seven_to_three_is_spread_evenly() {
        let kinds: Vec<usize> = (0..10).map(|g| Interleave::new(&[7.0, 3.0]).place(g).0).collect();
        assert_eq!(kinds, [0, 1, 0, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(Interleave::new(&[1.0]).place(u64::MAX - 1), (0, u64::MAX - 1));
    }

    proptest! {
        #![proptest_config(cases(32))]

        #[test]
        fn every_prefix_is_within_one_sample_of_the_mix(weights in prop::collection::vec(0.01f64..10.0, 1..=4)) {
            let interleave = Interleave::new(&weights);
            let total: f64 = weights.iter().sum();
            let mut counts = vec![0u64; weights.len()];
            for g in 0..2000 {
                let (kind, number) = interleave.place(g);
                prop_assert_eq!(number, counts[kind], "sample {}", g);
                counts[kind] += 1;
                for (count, weight) in counts.iter().zip(&weights) {
                    let expected = (g + 1) as f64 * weight / total;
                    prop_assert!((*count as f64 - expected).abs() <= 1.0 + 1e-6, "{} {:?}", g, counts);
                }
            }
        }

        #[test]
        fn an_epoch_predicts_every_position_once(tokens in 8u32..200, batch in 1usize..6, seed: u64) {
            let dir = tempfile::tempdir().unwrap();
            let shards = vec![("bn".to_owned(), counting_shard(dir.path(), "bn", 0, tokens))];
            let loader = Loader::new(shards, &mix(&[("bn", 2.0)]), batch, CONTEXT, seed).unwrap();
            let windows = loader.windows_per_epoch()["bn"] as usize;
            prop_assert_eq!(windows, tokens as usize / CONTEXT);
            let batches = (3 * windows).div_ceil(batch) as u64;
            let targets: Vec<u32> = (0..batches).flat_map(|n| loader.batch(n).unwrap().targets).collect();
            for epoch in targets.chunks_exact(windows * CONTEXT).take(3) {
                let different: BTreeSet<u32> = epoch.iter().copied().collect();
                prop_assert_eq!(different.len(), windows * CONTEXT);
            }
            let share = (batches * batch as u64) as f64 / windows as f64;
            prop_assert!((loader.epochs(batches)["bn"] - share).abs() < 1e-9);
        }
    }

    #[test]
    fn epochs_are_cut_in_different_places() {
        let dir = tempfile::tempdir().unwrap();
        let shards = vec![("bn".to_owned(), counting_shard(dir.path(), "bn", 0, 700))];
        let loader = Loader::new(shards, &mix(&[("bn", 1.0)]), 100, CONTEXT, 3).unwrap();
        let cuts: BTreeSet<u32> = (0..7).map(|n| loader.batch(n).unwrap().inputs[0] % CONTEXT as u32).collect();
        assert!(cuts.len() > 2, "{cuts:?}");
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let shard = |count| ("bn".to_owned(), counting_shard(dir.path(), &format!("s{count}"), 0, count));
        let refused = |shards, weights: &[(&str, f64)], batch| {
            one_line(Loader::new(shards, &mix(weights), batch, CONTEXT, 0).err().unwrap())
        };
        for (shards, weights, batch, part) in [
            (vec![shard(7)], vec![("bn", 1.0)], 1, "`bn` shard has 7 tokens, fewer than the 8"),
            (vec![shard(8)], vec![("bn", 1.0), ("en", 1.0)], 1, "names `en`, but there is no shard"),
            (vec![shard(8)], vec![("en", 1.0)], 1, "`bn` is not in the mix"),
            (vec![shard(8), shard(9)], vec![("bn", 1.0)], 1, "two `bn` shards"),
            (vec![shard(8)], vec![("bn", 0.0)], 1, "weight 0"),
            (vec![shard(8)], vec![("bn", f64::NAN)], 1, "weight NaN"),
            (vec![shard(8)], vec![("bn", 1.0)], 0, "batch 0"),
            (vec![], vec![], 1, "0 languages"),
        ] {
            let message = refused(shards, &weights, batch);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn validation_covers_a_short_shard_wholly_and_a_long_one_evenly() {
        let dir = tempfile::tempdir().unwrap();
        let short = counting_shard(dir.path(), "short", 0, 18);
        let batches = validation_windows("bn", &short, 2, CONTEXT, 100).unwrap();
        assert_eq!(batches.len(), 2);
        let targets: Vec<u32> = batches.iter().flat_map(|b| b.targets.clone()).filter(|&t| t != IGNORE).collect();
        assert_eq!(targets, (1..18).collect::<Vec<_>>());
        assert_eq!(batches.iter().map(|b| b.counted()).collect::<Vec<_>>(), [14, 3]);
        assert!(batches.iter().all(|b| b.inputs.len() == 2 * CONTEXT && b.targets.len() == 2 * CONTEXT));
        assert_eq!(batches[1].inputs[..4], [14, 15, 16, 0]);
        let long = counting_shard(dir.path(), "long", 0, 7 * 40 + 1);
        let batches = validation_windows("bn", &long, 4, CONTEXT, 4).unwrap();
        let starts: Vec<u32> = batches[0].inputs.iter().copied().step_by(CONTEXT).collect();
        assert_eq!((batches.len(), starts), (1, vec![0, 70, 140, 210]));
        let one = counting_shard(dir.path(), "one", 0, 1);
        assert!(matches!(validation_windows("bn", &one, 1, 1, 1), Err(CorpusError::ShortShard { tokens: 1, .. })));
        // Each number by itself: one that is 0 is refused, whatever the others are.
        for (batch, context, count) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
            let refused = validation_windows("bn", &long, batch, context, count);
            assert!(matches!(refused, Err(CorpusError::Loader { .. })), "{batch}, {context}, {count}");
        }
    }
}

fn document(source: &str, language: &str, number: usize, text: &str) -> Document {
    Document {
        id: format!("{source}/{number}"),
        source: source.to_owned(),
        language: language.to_owned(),
        domain: "test".to_owned(),
        text: text.to_owned(),
    }
}

mod lines {
    use super::*;

    #[test]
    fn documents_survive_and_a_bad_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("documents.jsonl");
        let documents = [document("a", "bn", 0, "এক\nদুই \"তিন\""), document("a", "en", 1, "")];
        write_documents(&path, &documents).unwrap();
        assert_eq!(read_documents(&path).unwrap(), documents);
        let whole = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            one_line(read_documents(&path).unwrap_err())
        };
        let cut = refused(&whole[..whole.len() - 1]);
        assert!(cut.contains("documents.jsonl, line 2: ") && cut.contains("cut off"), "{cut}");
        let extra = refused(b"{\"id\":\"a\",\"titel\":1}\n");
        assert!(extra.contains("line 1: ") && extra.contains("titel"), "{extra}");
        let invalid = refused(&[whole.as_slice(), b"\xff\n"].concat());
        assert!(invalid.contains("line 3: "), "{invalid}");
        std::fs::write(&path, "").unwrap();
        assert_eq!(read_documents(&path).unwrap(), []);
    }
}

mod prepare {
    use super::*;

    fn recipe(held_out: f64) -> CorpusRecipe {
        CorpusRecipe { held_out, ..Recipe::load("pocket").unwrap().corpus }
    }

    fn prepared(documents: Vec<Document>, parallel: Vec<ParallelSet>, protected: &[&str], share: f64) -> Prepared {
        let protected: Vec<String> = protected.iter().map(|&t| t.to_owned()).collect();
        prepare_documents(documents, parallel, &protected, &recipe(share), &mut Progress::hidden(0)).unwrap()
    }

    /// Thirty different words from `start` on.
    fn text(start: usize) -> String {
        (start..start + 30).map(|i| format!("word{i}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_document_is_accounted_for() {
        let pair = ParallelPair { bn: format!("\u{feff}{}", text(600)), en: "short".to_owned() };
        let documents = vec![
            document("a", "bn", 0, "ব\u{9be}\u{9dc}\u{9bf}\r\n"),
            document("a", "bn", 1, " ব\u{9be}\u{9a1}\u{9bc}\u{9bf}"),
            document("a", "en", 2, " \u{feff} "),
            document("b", "en", 3, &text(0)),
            document("b", "en", 4, &format!("{} end", text(0))),
            document("b", "en", 5, &text(610)),
            document("b", "en", 6, &text(520).to_uppercase()),
        ];
        let evaluation = text(500);
        let result =
            prepared(documents, vec![ParallelSet { id: "p".to_owned(), pairs: vec![pair] }], &[&evaluation], 0.0);
        let ids: Vec<&str> = result.train.iter().map(|d| d.id.as_str()).collect();
        assert_eq!(ids, ["a/0", "b/3", "b/6"]);
        assert_eq!(result.train[0].text, "বা\u{9a1}\u{9bc}ি");
        assert_eq!(result.parallel[0].pairs[0].bn, text(600));
        let report = &result.report;
        let rows: Vec<(&str, &str)> = report.sources.iter().map(|r| (r.source.as_str(), r.language.as_str())).collect();
        assert_eq!(rows, [("a", "bn"), ("a", "en"), ("b", "en")]);
        let counts = |i: usize| {
            let r = &report.sources[i];
            [r.read, r.skipped, r.exact_duplicates, r.near_duplicates, r.contaminated, r.train].map(|a| a.documents)
        };
        assert_eq!([counts(0), counts(1), counts(2)], [[2, 0, 1, 0, 0, 1], [1, 1, 0, 0, 0, 0], [4, 0, 0, 1, 1, 2]]);
        assert_eq!((report.sources[0].train.characters, report.sources[0].train.bytes), (5, 15));
        assert_eq!(report.contamination.dropped, BTreeMap::from([("b".to_owned(), 1)]));
        assert_eq!(report.contamination.example.as_ref().unwrap().document, "b/5");
        assert_eq!((report.normalised.nukta_letters, report.normalised.line_ends, report.parallel_pairs), (1, 1, 1));
        let json = serde_json::to_string(report).unwrap();
        assert_eq!(serde_json::from_str::<shikha::corpus::CorpusReport>(&json).unwrap(), *report);
    }

    #[test]
    fn the_split_stays_when_documents_are_added() {
        let documents: Vec<_> = (0..300).map(|i| document("a", "bn", i, &text(i * 100))).collect();
        let ids = |documents: &[Document]| documents.iter().map(|d| d.id.clone()).collect::<BTreeSet<_>>();
        let (few, all) = (prepared(documents[100..].to_vec(), vec![], &[], 0.2), prepared(documents, vec![], &[], 0.2));
        assert!(ids(&few.held_out).is_subset(&ids(&all.held_out)) && ids(&few.train).is_subset(&ids(&all.train)));
        assert_eq!(all.held_out.len() + all.train.len(), 300);
        assert!((35..85).contains(&all.held_out.len()), "{}", all.held_out.len());
        let total = all.report.total(|r| r.held_out);
        assert_eq!(total.documents as usize, all.held_out.len());
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let documents: Vec<_> = (0..3000).map(|i| document("a", "bn", i, &text(i * 13 % 2000))).collect();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| prepared(documents.clone(), vec![], &[&text(7)], 0.1))
        };
        let (one, three) = (run(1), run(3));
        assert!(one.report.total(|r| r.exact_duplicates).documents > 0);
        assert!(one.report.total(|r| r.contaminated).documents > 0);
        assert_eq!(one, three);
    }

    #[test]
    fn nothing_to_train_on_is_an_error() {
        let run =
            |documents, share| prepare_documents(documents, vec![], &[], &recipe(share), &mut Progress::hidden(0));
        let message = one_line(run(vec![], 0.1).unwrap_err());
        assert!(message.contains("0 documents were read") && message.contains("manifest"), "{message}");
        let message = one_line(run(vec![document("a", "bn", 0, "x")], 1.0).unwrap_err());
        assert!(message.contains("1 documents were read, 0 are left"), "{message}");
    }

    #[test]
    fn a_language_of_the_mix_without_text_is_named() {
        let result = prepared(vec![document("a", "bn", 0, &text(0))], vec![], &[], 0.0);
        let message = one_line(result.require_languages(mix(&[("bn", 1.0), ("en", 1.0)]).keys()).unwrap_err());
        assert!(message.contains("`bn`") && message.contains("no held-out document"), "{message}");
        let message = one_line(result.require_languages(mix(&[("en", 1.0)]).keys()).unwrap_err());
        assert!(message.contains("`en`") && message.contains("no training document") && message.contains("it has: bn"));
    }
}
