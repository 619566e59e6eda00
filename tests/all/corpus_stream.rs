//! Streaming of Parquet text: positions, resuming, a server, damage; the files are made here of real Bangla text: that
//! of a mirror folder, where `SHIKHA_MIRROR` names one, otherwise the pocket text.

use crate::corpus_download::{Manner, serve};
use crate::parquet_file::{write, write_empty};
use parquet::basic::Compression;
use parquet::file::reader::{FileReader, SerializedFileReader};
use shikha::artifact::hash_bytes;
use shikha::corpus::contamination::Protected;
use shikha::corpus::loader::Batches;
use shikha::corpus::normalise::normalise;
use shikha::corpus::source::{Manifest, Store, read};
use shikha::corpus::split::is_held_out;
use shikha::corpus::stream::{Chunk, Cleaning, Feed, Order, Position, Rows, Streamed};
use shikha::pipeline::{Options, Pipeline};
use shikha::progress::Progress;
use shikha::recipe::Recipe;
use shikha::tokenizer::Tokenizer;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const COMMIT: &str = "0123456789012345678901234567890123456789";
const FOLDER: &str = "data/ben_Beng/train";

/// Documents in a text, empty ones included: three files of them are published.
const DOCUMENTS: usize = 334;
/// Sources of the manifest `small` that a mirror's documents are of: poems and stories, chapters of novels, encyclopedia.
const SOURCES: [&str; 3] = ["bn-lit-archive", "bn-lit-wip", "bn-wiki-blanck"];
/// More bytes than a mirror's documents have.
const MOST: usize = 2 << 20;

/// Real Bangla documents, and some that hold nothing.
pub fn documents() -> Vec<Option<String>> {
    static DOCUMENTS: OnceLock<Vec<Option<String>>> = OnceLock::new();
    DOCUMENTS.get_or_init(some_documents).clone()
}

fn some_documents() -> Vec<Option<String>> {
    let mirror = std::env::var_os("SHIKHA_MIRROR").filter(|path| !path.is_empty());
    let of = if mirror.is_some() { "a mirror" } else { "the program" };
    let mut documents: Vec<_> = mirror.map_or_else(pocket, mirrored).into_iter().map(Some).collect();
    let bytes: usize = documents.iter().flatten().map(String::len).sum();
    println!("{} documents, {:.2} MB, of the text of {of}", documents.len(), bytes as f64 / 1e6);
    assert_eq!(documents.len(), DOCUMENTS);
    (documents[5], documents[100], documents[101]) = (None, Some("  ".to_owned()), None);
    documents
}

/// The text that the program carries, several sentences a document.
fn pocket() -> Vec<String> {
    let store = Store::new(None, "no-such-folder".into());
    let manifest = Manifest::load("pocket").unwrap();
    let bytes = store.bytes(&manifest.sources[0], &manifest.sources[0].files[0]).unwrap();
    let lines: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().collect();
    lines.chunks(3).map(|lines| lines.join("\n")).collect()
}

/// Documents of a mirror as they are, as many of each source and from all over it.
fn mirrored(mirror: OsString) -> Vec<String> {
    let store = Store::new(Some(mirror.into()), "no-such-folder".into());
    let mut chosen = Vec::new();
    for (number, id) in SOURCES.into_iter().enumerate() {
        let mut manifest = Manifest::load("small").unwrap();
        manifest.sources.retain(|source| source.id == id);
        let found = read(&manifest, &store, &mut Progress::hidden(1)).unwrap().documents;
        let count = (DOCUMENTS - chosen.len()) / (SOURCES.len() - number);
        assert!(found.len() >= count, "{} documents of {id}", found.len());
        let step = found.len() / count;
        chosen.extend(found.into_iter().step_by(step).take(count).map(|document| document.text));
    }
    assert!(chosen.iter().map(String::len).sum::<usize>() < MOST);
    chosen
}

#[test]
fn rows_are_read_from_any_position_in_slices_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    let (path, texts) = (folder.path().join("a.parquet"), documents());
    for (rows, compression) in
        [(50, Compression::SNAPPY), (334, Compression::ZSTD(Default::default())), (1, Compression::UNCOMPRESSED)]
    {
        write(&path, &texts, rows, compression);
        for start in [0, 1, 5, 49, 50, 51, 137, 333] {
            let at = Position { file: 3, row_group: (start / rows) as u64, row: (start % rows) as u64 };
            for size in [1, 2000, 1 << 30] {
                let mut reader = Rows::open(&path, at).unwrap();
                assert_eq!(reader.total(), texts.len() as u64);
                let (mut found, mut end) = (Vec::new(), at);
                loop {
                    // What a new reader finds at the end of a slice is what this one goes on with.
                    let again = Rows::open(&path, end).unwrap().slice(size).unwrap();
                    let slice = reader.slice(size).unwrap();
                    assert_eq!(again, slice, "from {end:?}");
                    let bytes: usize = slice.texts.iter().flatten().map(String::len).sum();
                    let last = slice.texts.last().cloned().flatten().map_or(0, |text| text.len());
                    assert!(bytes < size.saturating_add(last.max(1)), "a slice is as large as asked for and one row");
                    found.extend(slice.texts);
                    end = slice.end;
                    if slice.is_last {
                        break;
                    }
                }
                assert!(found == texts[start..], "{rows} rows a group, from {start}, slices of {size}");
            }
        }
    }
    let beyond = Rows::open(&path, Position { row: 2, ..Position::default() }).err().unwrap().to_string();
    assert!(beyond.contains("has 1 rows, row 2 was asked for"), "{beyond}");
}

fn manifest(folder: Option<&str>, origin: &str) -> Manifest {
    let files = folder.map_or(String::new(), |folder| format!("folder = \"{folder}\""));
    let text = format!(
        "[[source]]\nid = \"web\"\nlanguage = \"bn\"\nrole = \"train\"\ndomain = \"web\"\norigin = \"{origin}\"\n\
         revision = \"{COMMIT}\"\nlicence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\n\
         reader = \"parquet-text\"\n{files}\n"
    );
    Manifest::parse(&text, "test", Path::new("")).unwrap()
}

/// A mirror folder with three Parquet files of one data set and the list of them as its publisher gives it.
pub fn published() -> tempfile::TempDir {
    publish(&documents().chunks(120).map(<[_]>::to_vec).collect::<Vec<_>>(), 50)
}

/// The same with a file for each part, of `rows` rows in a group.
pub fn publish(parts: &[Vec<Option<String>>], rows: usize) -> tempfile::TempDir {
    let mirror = tempfile::tempdir().unwrap();
    let root = mirror.path().join(format!("huggingface.co/datasets/owner/web/{COMMIT}"));
    let mut entries = vec![serde_json::json!({ "type": "directory", "path": format!("{FOLDER}/old"), "size": 0 })];
    for (i, part) in parts.iter().enumerate().rev() {
        let name = format!("{FOLDER}/000_0000{i}.parquet");
        write(&root.join(&name), part, rows, Compression::SNAPPY);
        let bytes = std::fs::read(root.join(&name)).unwrap();
        let lfs = serde_json::json!({ "oid": hash_bytes(&bytes).to_string(), "size": bytes.len(), "pointerSize": 134 });
        entries.push(serde_json::json!({ "type": "file", "path": name, "size": bytes.len(), "oid": "x", "lfs": lfs }));
    }
    std::fs::write(root.join(FOLDER).join("files.json"), serde_json::to_vec(&entries).unwrap()).unwrap();
    mirror
}

/// A token a byte, so that every test sees where a document begins.
pub fn encode(text: &str) -> Result<Vec<u32>, String> {
    Ok(text.bytes().map(u32::from).collect())
}

pub fn order(store: &Store, directory: &Path, slice: usize) -> Order {
    let manifest = manifest(Some(FOLDER), "huggingface:owner/web");
    let source = &manifest.sources[0];
    let files = store.files(source).unwrap().into_iter().map(|file| (source.clone(), file)).collect();
    let protected = Protected::new(std::iter::empty(), 13);
    Order {
        language: "bn".to_owned(),
        files,
        store: store.clone(),
        directory: directory.to_path_buf(),
        slice,
        cleaning: Cleaning { held_out: 0.1, protected: Arc::new(protected), protected_hash: hash_bytes(b"") },
        tokenizer: hash_bytes(b"bytes"),
        vocabulary: 257,
        end_of_text: 256,
    }
}

pub fn open(store: &Store, directory: &Path, slice: usize) -> (Feed, Vec<Chunk>) {
    let (feed, found) = Feed::open(order(store, directory, slice), Arc::new(encode)).unwrap();
    (feed, found.into_iter().map(|(chunk, _)| chunk).collect())
}

pub fn rest(feed: &mut Feed) -> Vec<Chunk> {
    std::iter::from_fn(|| feed.advance().unwrap().map(|(chunk, _)| chunk)).collect()
}

/// Bytes of text in a slice, that cuts row groups.
pub const SLICE: usize = 9000;

/// The finished files of a folder.
pub fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = std::fs::read_dir(folder).unwrap().map(|file| PathBuf::from(file.unwrap().file_name()));
    let finished = names.filter(|name| !name.to_string_lossy().starts_with(".partial-"));
    finished.map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn a_killed_feed_goes_on_at_the_exact_row_with_the_same_chunks() {
    let mirror = published();
    let store = Store::new(Some(mirror.path().into()), "no-such-folder".into());
    let whole = tempfile::tempdir().unwrap();
    let all = rest(&mut open(&store, whole.path(), SLICE).0);
    assert!(all.len() > 20 && all.iter().any(|c| c.to.row > 0 && c.to.row < 50), "ends inside row groups");
    assert_eq!(all.last().map(|c| (c.is_last, c.to)), Some((true, Position { file: 3, ..Position::default() })));
    let part = tempfile::tempdir().unwrap();
    for stop in 0..all.len() {
        // A new program each time, stopped after one chunk, and one that leaves a chunk half written.
        let (mut feed, found) = open(&store, part.path(), SLICE);
        assert_eq!(found, all[..stop]);
        std::fs::write(Chunk::train_path(part.path(), stop), b"SHIKHATK, half").unwrap();
        assert_eq!(feed.advance().unwrap().map(|(chunk, _)| chunk).as_ref(), Some(&all[stop]));
    }
    assert!(bytes(whole.path()) == bytes(part.path()), "the same files to the byte");
    // A token that was changed on disk is seen, and its chunk and those after it are made again.
    let path = Chunk::train_path(part.path(), 4);
    let mut damaged = std::fs::read(&path).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    std::fs::write(&path, damaged).unwrap();
    let (mut feed, found) = open(&store, part.path(), SLICE);
    assert_eq!((found.len(), rest(&mut feed)), (4, all[4..].to_vec()));
    // Another slice is another cut: nothing of the old one is taken up.
    assert_eq!(open(&store, part.path(), SLICE + 1).1, []);
}

#[test]
fn how_a_file_is_laid_out_changes_no_token() {
    let chunks = |rows: usize| {
        let mirror = publish(&documents().chunks(120).map(<[_]>::to_vec).collect::<Vec<_>>(), rows);
        let store = Store::new(Some(mirror.path().into()), "no-such-folder".into());
        let folder = tempfile::tempdir().unwrap();
        let chunks = rest(&mut open(&store, folder.path(), SLICE).0);
        chunks.iter().map(|chunk| (chunk.train, chunk.held_out, chunk.tokens, chunk.empty)).collect::<Vec<_>>()
    };
    let expected = chunks(usize::MAX);
    assert!(expected.len() > 20);
    for rows in [1, 7, 50] {
        assert!(chunks(rows) == expected, "{rows} rows in a group");
    }
}

#[test]
fn a_feed_that_failed_goes_on_where_it_was() {
    let mirror = published();
    let store = Store::new(Some(mirror.path().into()), "no-such-folder".into());
    let (whole, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let all = rest(&mut open(&store, whole.path(), SLICE).0);
    let calls = AtomicU32::new(0);
    let now_and_then = move |text: &str| match calls.fetch_add(1, Ordering::Relaxed) % 40 {
        39 => Err("out of order".to_owned()),
        _ => encode(text),
    };
    let (mut feed, _) = Feed::open(order(&store, part.path(), SLICE), Arc::new(now_and_then)).unwrap();
    let (mut found, mut failed) = (Vec::new(), 0);
    loop {
        match feed.advance() {
            Ok(Some((chunk, _))) => found.push(chunk),
            Ok(None) => break,
            Err(error) => {
                failed += 1;
                assert!(error.to_string().contains("out of order"), "{error}");
            }
        }
    }
    assert!(failed > 3 && found == all, "{failed} failures, {} of {} chunks", found.len(), all.len());
}

#[test]
fn every_document_is_there_once_in_order_or_held_out() {
    let mirror = published();
    let store = Store::new(Some(mirror.path().into()), "no-such-folder".into());
    let folder = tempfile::tempdir().unwrap();
    let (mut feed, _) = open(&store, folder.path(), SLICE);
    let mut found = Vec::new();
    let mut sums = (0, 0, 0);
    while let Some((chunk, shard)) = feed.advance().unwrap() {
        sums = (sums.0 + chunk.documents, sums.1 + chunk.held_out_documents, sums.2 + chunk.empty);
        found.extend((0..shard.len()).map(|i| shard.get(i)));
    }
    let texts: Vec<String> =
        documents().iter().flatten().map(|text| normalise(text)).filter(|t| !t.is_empty()).collect();
    let train = texts.iter().filter(|text| !is_held_out(text, 0.1));
    let expected: Vec<u32> = train.clone().flat_map(|text| text.bytes().map(u32::from).chain([256])).collect();
    assert!(found == expected);
    assert_eq!(sums, (train.count() as u64, texts.iter().filter(|t| is_held_out(t, 0.1)).count() as u64, 3));
}

#[test]
fn training_goes_on_with_the_same_next_batch_over_a_server_that_breaks_off() {
    let mirror = published();
    let (cache, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mix = BTreeMap::from([("bn".to_owned(), 1.0)]);
    let batches = |store: &Store, directory: &Path| {
        let (feed, found) = Feed::open(order(store, directory, SLICE), Arc::new(encode)).unwrap();
        Streamed::new(vec![(feed, found)], &mix, (3, 32), 5, 1 << 20).unwrap()
    };
    let mirrored = Store::new(Some(mirror.path().into()), "no-such-folder".into());
    let reference = tempfile::tempdir().unwrap();
    let uninterrupted = batches(&mirrored, reference.path());
    // Each token is in one of these; most of them are not there yet when the first program ends.
    let count = documents().iter().flatten().map(|text| text.len() as u64 + 1).sum::<u64>().div_ceil(3 * 32);
    let expected: Vec<_> = (0..count).map(|n| uninterrupted.batch(n).unwrap()).collect();
    // List, first file in two goes, second file in two goes, third.
    let manners = vec![
        Manner::Honest,
        Manner::CutAfter(3000),
        Manner::Honest,
        Manner::CutAfter(100),
        Manner::Honest,
        Manner::Honest,
    ];
    let (address, server) = serve(mirror.path(), manners);
    let store = Store::new(None, cache.path().into()).with_base_url(&address);
    let first = batches(&store, folder.path());
    for (n, batch) in expected.iter().enumerate().take(count as usize / 3) {
        assert_eq!(first.batch(n as u64).unwrap(), *batch);
    }
    drop(first);
    let kept = open(&store, folder.path(), SLICE).1;
    // The new process asks in its own order; what was asked before does not matter.
    let second = batches(&store, folder.path());
    for n in (count / 3..count).chain(0..50) {
        assert_eq!(second.batch(n).unwrap(), expected[n as usize], "batch {n} after {} chunks", kept.len());
    }
    drop(second);
    // A server that waits for more requests is told that there are none.
    drop(TcpStream::connect(address.trim_start_matches("http://")));
    let asked: Vec<usize> = server.join().unwrap().into_iter().map(|(_, from)| from).collect();
    assert_eq!(asked, [0, 0, 3000, 0, 100, 0], "what came is not asked for again");
    // Everything is here: a third one needs no server.
    assert_eq!(batches(&store, folder.path()).batch(count - 1).unwrap(), expected[count as usize - 1]);
}

#[test]
fn what_cannot_be_streamed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let refused = || Rows::open(&path, Position::default()).err().unwrap().to_string();
    std::fs::write(&path, b"PAR1 but nothing of it").unwrap();
    let message = refused();
    assert!(message.contains("a.parquet") && message.lines().count() == 1, "{message}");
    write_empty(&path, "message m { required int64 text; }");
    assert!(refused().contains("column `text` does not hold one text a row"), "{}", refused());
    write(&path, &documents(), 50, Compression::SNAPPY);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle..middle + 400].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let error = Rows::open(&path, Position::default()).and_then(|mut rows| rows.slice(usize::MAX));
    assert!(error.unwrap_err().to_string().contains("a.parquet"));
    let bad = |text: &str| Manifest::parse(text, "test", Path::new("")).unwrap_err().to_string();
    let good = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("data-manifests/full.toml")).unwrap();
    assert!(bad(&good.replace("af9c13333eb981300149d5ca60a8e9d659b276b9", "main")).contains("40 hexadecimal digits"));
    assert!(bad(&good.replace("\"data/ben_Beng/train\"", "\"../x\"")).contains("plain path"));
    let mixed = good.replacen("parquet-text\"\nfolder = \"data/ben_Beng/train\"", "lines\"\nfolder = \"data\"", 1);
    assert!(bad(&mixed).contains("cannot be mixed"), "{}", bad(&mixed));
}

#[test]
fn a_file_that_would_keep_its_reader_busy_for_hours_is_refused_at_once() {
    // A field that no reader knows: a list of 2³¹ - 1 booleans.
    const BUSY: &[u8] = &[0x09, 0xc8, 1, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    write(&path, &documents(), 50, Compression::SNAPPY);
    let good = std::fs::read(&path).unwrap();
    let footer = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let page = footer.metadata().row_group(0).column(1).byte_range().0 as usize;
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let read = Rows::open(&path, Position::default()).and_then(|mut rows| rows.slice(usize::MAX));
        read.unwrap_err().to_string()
    };
    // In the header of the first page of the texts.
    let mut header = good.clone();
    header[page..page + BUSY.len()].copy_from_slice(BUSY);
    // At the end of the footer, before the byte that ends it and the tail.
    let (front, tail) = good.split_at(good.len() - 8);
    let length = u32::from_le_bytes(tail[..4].try_into().unwrap()) + BUSY.len() as u32 - 1;
    let footer = [&front[..front.len() - 1], BUSY, &length.to_le_bytes(), &tail[4..]].concat();
    for bytes in [header, footer] {
        assert!(refused(&bytes).contains("lists booleans"), "{}", refused(&bytes));
    }
}

#[test]
fn a_recipe_trains_on_streamed_text_and_goes_on_after_a_stop() {
    let mirror = published();
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = manifest(Some(FOLDER), "huggingface:owner/web");
    (manifest.protect, manifest.sources[0].weight) = (None, 0.5);
    std::fs::write(folder.path().join("web.toml"), toml::to_string(&manifest).unwrap()).unwrap();
    let texts: Vec<String> = documents().into_iter().flatten().collect();
    let tokenizer_path = folder.path().join("tokenizer.json");
    let mut recipe = Recipe::load("pocket").unwrap();
    recipe.tokenizer.vocabulary = 400;
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    Tokenizer::train(&borrowed, &recipe.tokenizer).unwrap().save(&tokenizer_path).unwrap();
    recipe.corpus.manifest = folder.path().join("web.toml").to_str().unwrap().to_owned();
    recipe.mix = BTreeMap::from([("bn".to_owned(), 1.0)]);
    (recipe.model.layers, recipe.model.hidden, recipe.model.context) = (1, 16, 32);
    (recipe.train.steps, recipe.train.warmup_steps, recipe.train.validate_every) = (60, 1, 60);
    recipe.train.checkpoint_every = 10;
    let run = |recipe: &Recipe, name: &str| {
        let options = Options {
            run_dir: Some(folder.path().join(name)),
            mirror: Some(mirror.path().into()),
            ..Options::default()
        };
        Pipeline::open(recipe.clone(), &options)
    };
    let refused = run(&recipe, "none").err().unwrap().to_string();
    assert!(refused.contains("tokenizer.file"), "{refused}");
    recipe.tokenizer.file = Some(tokenizer_path.to_str().unwrap().to_owned());
    let table = run(&recipe, "whole").unwrap().corpus().unwrap();
    assert!(table.contains("contaminated") && table.contains("bn"), "{table}");
    run(&recipe, "whole").unwrap().train().unwrap();
    let metrics = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name).join("metrics.jsonl")).unwrap();
        let loss = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["loss"].clone();
        text.lines().map(loss).collect::<Vec<_>>()
    };
    let whole = metrics("whole");
    assert_eq!(whole.len(), 60);
    // The program, killed in training, and run again.
    let path = folder.path().join("web-recipe.toml");
    std::fs::write(&path, recipe.to_toml()).unwrap();
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shikha"));
        command.arg("train").arg(&path).arg("--run-dir").arg(folder.path().join("killed"));
        command.arg("--mirror").arg(mirror.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let rows = || {
        let text = std::fs::read_to_string(folder.path().join("killed/metrics.jsonl")).unwrap_or_default();
        text.matches('\n').count()
    };
    // On a busy machine it may be at its end before it is met: then once more.
    for _ in 0..10 {
        let _ = std::fs::remove_dir_all(folder.path().join("killed"));
        let mut child = program().spawn().unwrap();
        while rows() < 3 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = child.kill(); // SIGKILL
        child.wait().unwrap();
        if rows() < 60 {
            break;
        }
    }
    assert!((3..60).contains(&rows()), "killed in training, after {} steps", rows());
    let output = program().stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let warned: Vec<&str> =
        said.lines().filter(|line| line.contains("`corpus.near_duplicate` = 0.8 holds for")).collect();
    assert_eq!(warned.len(), 1, "{said}");
    assert_eq!(metrics("killed"), whole);
    // Tokens and checkpoints are there already: a second call has nothing to do and changes nothing.
    run(&recipe, "whole").unwrap().train().unwrap();
    assert_eq!(metrics("whole"), whole);
    // And the whole way to the claims, on the documents that stand for the text.
    recipe.eval.tasks.clear();
    let claims = run(&recipe, "whole").unwrap().reproduce().unwrap();
    assert!(claims.contains("not measured") && folder.path().join("whole/eval.json").exists(), "{claims}");
    assert_eq!(metrics("whole"), whole);
    // Of a source that is read by half, half as many are held out of training, and no others are measured on.
    let held_out = std::fs::read_to_string(folder.path().join("whole/corpus/held_out.jsonl")).unwrap();
    let text =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    assert!(held_out.lines().count() > 0);
    assert!(held_out.lines().all(|line| is_held_out(&text(line), 0.5 * recipe.corpus.held_out)));
}
