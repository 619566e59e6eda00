//! Every parser that reads a user's file, on damaged forms of good files: bits flipped, pieces cut out,
//! doubled or made of noise. Each answers or refuses; none panics, hangs or takes memory without bound.

use shikha::arbiter::tensors::{Dump, check_dump};
use shikha::artifact::{RunDir, hash_bytes};
use shikha::corpus::read_documents;
use shikha::corpus::shard::{Shard, write_shard};
use shikha::corpus::source::{Manifest, Reader};
use shikha::recipe::Recipe;
use shikha::rng::Stream;
use shikha::tokenizer::{Tokenizer, load};
use shikha::train::{latest, read_metrics};
use std::path::Path;

/// Damaged forms of each good file; `SHIKHA_FORMS` asks for more.
fn forms() -> u64 {
    std::env::var("SHIKHA_FORMS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// The `n`-th damaged form of `good`.
fn damaged(good: &[u8], name: &str, n: u64) -> Vec<u8> {
    let stream = Stream::new(9, &format!("{name} {n}"));
    let mut bytes = good.to_vec();
    for change in 0..1 + n % 4 {
        let (at, length) = (stream.below(10 * change, bytes.len() as u64 + 1) as usize, 1 + n as usize % 40);
        let end = (at + length).min(bytes.len());
        match stream.below(10 * change + 1, 6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << (n % 8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].repeat(50);
                bytes.splice(at..at, piece);
            }
            4 => (at..end).for_each(|i| bytes[i] = stream.bits(1000 + i as u64) as u8),
            _ => (at..end).for_each(|i| bytes[i] = 0xff),
        }
    }
    bytes
}

/// Gives each damaged form to `parse`, which tells whether it was taken.
fn try_all(name: &str, good: &[u8], mut parse: impl FnMut(&[u8]) -> bool) {
    assert!(parse(good), "{name}: the good file is taken");
    let taken = (0..forms()).filter(|&n| parse(&damaged(good, name, n))).count();
    println!("{name}: {} damaged forms, {taken} taken, {} refused", forms(), forms() as usize - taken);
}

/// As [`try_all`], for what reads a file.
fn try_files(name: &str, good: &[u8], mut parse: impl FnMut(&Path) -> bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    try_all(name, good, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        parse(&path)
    });
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn recipes_manifests_ledgers_and_metrics() {
    let recipe = include_bytes!("../../recipes/pocket.toml");
    try_all("recipe", recipe, |bytes| Recipe::parse(&text(bytes), "test").is_ok());
    let manifest = include_bytes!("../../data-manifests/pocket.toml");
    try_all("manifest", manifest, |bytes| Manifest::parse(&text(bytes), "test", Path::new("")).is_ok());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ledger = b"[stages.a]\n[stages.a.inputs]\n[stages.a.outputs]\n";
    let dir = tempfile::tempdir().unwrap();
    try_all("ledger", ledger, |bytes| {
        std::fs::write(dir.path().join("run.lock"), bytes).unwrap();
        RunDir::open(dir.path(), false).is_ok()
    });
    let metrics = std::fs::read(root.join("checkpoints/reference/metrics.jsonl")).unwrap();
    let head: Vec<u8> = metrics.split_inclusive(|byte| *byte == b'\n').take(9).flatten().copied().collect();
    try_files("metrics", &head, |path| read_metrics(path).is_ok());
}

#[test]
fn shards_documents_and_tokenizers() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hash) = (dir.path().join("a.bin"), hash_bytes(b"tokenizer"));
    write_shard(&path, hash, 300, (0..30u32).map(|n| (0..n).collect())).unwrap();
    try_files("shard", &std::fs::read(&path).unwrap(), |path| Shard::open(path, hash).is_ok());
    let documents = b"{\"id\":\"a\",\"source\":\"s\",\"language\":\"bn\",\"domain\":\"web\",\"text\":\"a b\"}\n";
    try_files("documents", documents, |path| read_documents(path).is_ok());
    let texts: Vec<String> = (0..60).map(|n| format!("আমি ভাত {n} খাই abc")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut recipe = Recipe::load("pocket").unwrap().tokenizer;
    recipe.vocabulary = 300;
    let tokenizer = Tokenizer::train(&texts, &recipe).unwrap().to_json().unwrap();
    try_files("tokenizer.json", tokenizer.as_bytes(), |path| match Tokenizer::load(path) {
        Ok(tokenizer) => tokenizer.encode("আমি abc").map(|ids| tokenizer.decode(&ids)).is_ok(),
        Err(_) => false,
    });
    try_files("foreign.json", tokenizer.as_bytes(), |path| load::open(path, None).is_ok());
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    let ranks: String = (0..=255u8).map(|n| format!("{}{}== {n}\n", digit(n >> 2), digit((n & 3) << 4))).collect();
    try_files("gpt2.tiktoken", ranks.as_bytes(), |path| load::open(path, None).is_ok());
}

#[test]
fn checkpoints_and_dumps() {
    let job = crate::train::job(1);
    let dir = tempfile::tempdir().unwrap();
    let step = job.recipe.steps;
    job.finish(dir.path(), shikha::train::Start::Continue);
    for file in ["state.json", "model.safetensors", "optimizer.safetensors"] {
        let path = shikha::train::checkpoint_dir(dir.path(), step).join(file);
        let good = std::fs::read(&path).unwrap();
        try_all(file, &good, |bytes| {
            std::fs::write(&path, bytes).unwrap();
            let found = latest(dir.path(), &crate::train::config(), &job.identity);
            found.is_ok_and(|(found, _)| found.is_some_and(|found| found.state.step == step))
        });
        std::fs::write(&path, &good).unwrap();
    }
    let tensor = |values: &[f32]| {
        let bytes = bytemuck::cast_slice(values).to_vec();
        let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![values.len()], &bytes).unwrap();
        safetensors::serialize([("w", view)], None).unwrap()
    };
    let parameters = dir.path().join("parameters.safetensors");
    std::fs::write(&parameters, tensor(&[1.0, 2.0, 3.0])).unwrap();
    try_files("gradients.safetensors", &tensor(&[0.5, -0.5, 1.0]), |path| {
        let dump = Dump { parameters: parameters.clone(), gradients: vec![path.to_path_buf()], ..Dump::default() };
        check_dump(&dump).is_ok()
    });
}

#[test]
fn every_corpus_reader() {
    let html = "<html><body><h1>আইন</h1><p>১। ধারা &amp; কথা</p><table><tr><td>x</td></tr></table></body></html>";
    let markdown = "# শিরোনাম\n\nএকটি বাক্য\nআরও।\n\n```verse\nএক\nদুই\n```\n<Note>কথা</Note>\n\n- ক\n";
    let table = "id1\tআমি ভাত খাই\nid2\tতুমি\n";
    let csv = "context,other\n\"আমি, ভাত\nখাই\",x\n";
    let gutenberg = "x\n*** START OF THE PROJECT GUTENBERG EBOOK A ***\n\nOne.\n\nTwo.\n*** END OF THE PROJECT GUTENBERG EBOOK A ***\n";
    for reader in [
        Reader::Lines,
        Reader::Literature,
        Reader::MdxBangla,
        Reader::Prompts,
        Reader::ContextCsv,
        Reader::LabelledWords,
        Reader::LawHtml,
        Reader::Gutenberg,
        Reader::GutenbergLatin1,
    ] {
        for good in [html, markdown, table, csv, gutenberg] {
            for n in 0..forms() {
                let _ = reader.texts(&damaged(good.as_bytes(), &reader.name(), n));
            }
        }
        println!("{}: {} damaged forms", reader.name(), 5 * forms());
    }
    for name in ["a.json", "a.jsonl", "a.xml", "a.txt", "a.bz2", "a.json.bz2"] {
        for good in ["{\"a\":[\"b\",{\"c\":1}]}", html, "BZh91AY&SY\u{1}\u{2}"] {
            for n in 0..forms() {
                let _ = Reader::task_texts(name, &damaged(good.as_bytes(), name, n));
            }
        }
    }
    for n in 0..forms() {
        let _ = Reader::declaration(&damaged(html.as_bytes(), "declaration", n));
    }
    let deep = [("[", "]"), ("{\"a\":", "}")].map(|(open, close)| open.repeat(200_000) + &close.repeat(200_000));
    for nested in &deep {
        assert!(Reader::task_texts("a.json", nested.as_bytes()).is_err(), "too deep, not a stack overflow");
    }
    let _ = Reader::LawHtml.texts("<div>".repeat(200_000).as_bytes());
}
