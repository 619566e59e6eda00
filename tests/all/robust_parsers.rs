//! Every parser that reads a user's file, on damaged forms of good files. Each answers or refuses; none panics,
//! hangs or takes memory without bound. The coverage-guided fuzzer of `fuzz/` runs them too, as plain functions.

use crate::robust_fuzz::fuzz;
use parquet::basic::Compression;
use shikha::arbiter::tensors::{Dump, check_dump};
use shikha::artifact::{RunDir, hash_bytes};
use shikha::corpus::read_documents;
use shikha::corpus::shard::{HEADER, Shard, write_shard};
use shikha::corpus::source::{File, Manifest, Reader};
use shikha::corpus::stream::{Position, Rows};
use shikha::machine::Hardware;
use shikha::model::{WeightType, initialise, read_model, write_model};
use shikha::recipe::Recipe;
use shikha::report::{Ledger, runs};
use shikha::tokenizer::{Encoder, Tokenizer, load};
use shikha::train::record::{FORMAT, Price, Record};
use shikha::train::{SITTINGS, Start, latest, read_metrics, sit_down, sittings};
use std::path::Path;

/// As [`fuzz`], for what reads a file of that name.
fn fuzz_file(target: &str, name: &str, own: &[&[u8]], mut parse: impl FnMut(&Path) -> bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fuzz(target, own, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        parse(&path)
    });
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg_attr(test, test)]
pub fn recipes_manifests_ledgers_and_metrics() {
    let (pocket, small) = (include_bytes!("../../recipes/pocket.toml"), include_bytes!("../../recipes/small.toml"));
    fuzz("recipe", &[pocket, small], |bytes| Recipe::parse(&text(bytes), "test").is_ok());
    let manifest = include_bytes!("../../data-manifests/pocket.toml");
    let local = b"[[source]]\nid = \"mine\"\nlanguage = \"bn\"\nrole = \"train\"\ndomain = \"web\"\norigin = \"local:a\"\n\
        licence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\nreader = \"lines\"\nweight = 0.5\n\
        files = [{ path = \"text.txt\", bytes = 9, sha256 = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\" }]\n";
    fuzz("manifest", &[manifest, local], |bytes| Manifest::parse(&text(bytes), "test", Path::new("")).is_ok());
    let ledger = b"[stages.a]\n[stages.a.inputs]\n[stages.a.outputs]\n";
    fuzz_file("run-lock", "run.lock", &[ledger], |path| RunDir::open(path.parent().unwrap(), false).is_ok());
    let metrics = include_bytes!("../../checkpoints/reference/metrics.jsonl");
    let head: Vec<u8> = metrics.split_inclusive(|byte| *byte == b'\n').take(5).flatten().copied().collect();
    fuzz_file("metrics", "metrics.jsonl", &[&head], |path| read_metrics(path).is_ok());
}

#[cfg_attr(test, test)]
pub fn parquet_records_and_claims() {
    let dir = tempfile::tempdir().unwrap();
    let texts: Vec<Option<String>> = (0..40).map(|n| (n % 7 != 3).then(|| format!("পাঠ {n}\n").repeat(n))).collect();
    let packed = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())];
    let files = packed.map(|compression| {
        let path = dir.path().join("good.parquet");
        crate::parquet_file::write(&path, &texts, 16, compression);
        std::fs::read(path).unwrap()
    });
    fuzz_file("parquet", "a.parquet", &files.each_ref().map(Vec::as_slice), |path| {
        // Two slices: a damaged file may claim more rows than there is time for.
        let read = Rows::open(path, Position::default()).and_then(|mut rows| {
            rows.slice(1 << 16)?;
            rows.slice(1 << 20)
        });
        let last = read.as_ref().is_ok_and(|slice| slice.is_last);
        drop(read);
        // And from the middle of a row group, as when a run goes on.
        let middle = Position { row_group: 1, row: 5, ..Position::default() };
        let _ = Rows::open(path, middle).and_then(|mut rows| rows.slice(1 << 16));
        last
    });
    let root = dir.path().join("run");
    sit_down(&root, Hardware::here(None), true).unwrap();
    let list = std::fs::read(root.join(SITTINGS)).unwrap();
    fuzz_file("sittings", SITTINGS, &[&list], |path| sittings(path.parent().unwrap()).is_ok());
    let record = Record {
        format: FORMAT,
        date: "2026-12-31".to_owned(),
        source: hash_bytes(b"source"),
        hardware: Hardware { gpu: None, processor: None, threads: 2 },
        price: Some(Price { dollars_an_hour: 3.0, stated_by: "a cloud".to_owned() }),
        checked: None,
        timed: None,
        run: None,
        log: vec!["a line".to_owned()],
    };
    let saved = std::fs::read(record.save(dir.path()).unwrap()).unwrap();
    let ledger = Ledger::built_in().unwrap();
    fuzz_file("record", &record.file_name(), &[&saved], |path| {
        Record::load(path).is_ok_and(|record| runs::table(&ledger, &[record]).is_ok())
    });
    fuzz("claims", &[include_bytes!("../../paper/claims.toml")], |bytes| Ledger::parse(&text(bytes)).is_ok());
}

#[cfg_attr(test, test)]
pub fn shards_and_documents() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hash) = (dir.path().join("a.bin"), hash_bytes(b"tokenizer"));
    let shard = |vocabulary: usize| {
        write_shard(&path, hash, vocabulary, (0..9u32).map(|n| (0..n).collect())).unwrap();
        std::fs::read(&path).unwrap()
    };
    let (narrow, wide) = (shard(300), shard(70_000));
    let open = |path: &Path| match Shard::open(path, hash) {
        Ok(shard) => {
            shard.window(0, &mut vec![0; shard.len() as usize]);
            true
        }
        Err(_) => false,
    };
    fuzz_file("shard", "a.bin", &[&narrow, &wide], open);
    // With the header's own hash made right again, so that what it says is believed.
    fuzz_file("shard-header", "a.bin", &[&narrow, &wide], |path| {
        let mut bytes = std::fs::read(path).unwrap();
        if bytes.len() >= HEADER {
            let own = hash_bytes(&bytes[..HEADER - 32]).0;
            bytes[HEADER - 32..HEADER].copy_from_slice(&own);
            std::fs::write(path, &bytes).unwrap();
        }
        open(path)
    });
    let document = b"{\"id\":\"a\",\"source\":\"s\",\"language\":\"bn\",\"domain\":\"web\",\"text\":\"a b\"}\n";
    fuzz_file("documents", "a.jsonl", &[document], |path| read_documents(path).is_ok());
}

#[cfg_attr(test, test)]
pub fn tokenizers() {
    let texts: Vec<String> = (0..60).map(|n| format!("আমি ভাত {n} খাই abc")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut recipe = Recipe::load("pocket").unwrap().tokenizer;
    recipe.vocabulary = 280;
    let json = Tokenizer::train(&texts, &recipe).unwrap().to_compact_json().unwrap();
    fuzz_file("tokenizer", "tokenizer.json", &[json.as_bytes()], |path| match Tokenizer::load(path) {
        Ok(tokenizer) => tokenizer.encode("আমি abc").map(|ids| tokenizer.decode(&ids)).is_ok(),
        Err(_) => false,
    });
    let read = |path: &Path| match load::open(path, None) {
        Ok(tokenizer) => {
            let _ = tokenizer.encode_text("আমি ভাত abc 12").map(|encoded| tokenizer.decode_ids(&encoded.ids));
            true
        }
        Err(_) => false,
    };
    fuzz_file("foreign-json", "tokenizer.json", &[json.as_bytes()], read);
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    let ranks: String = (0..=255u8).map(|n| format!("{}{}== {n}\n", digit(n >> 2), digit((n & 3) << 4))).collect();
    fuzz_file("tiktoken", "gpt2.tiktoken", &[ranks.as_bytes()], read);
    let pieces = [("▁আমি", -1.0), ("ভাত", -2.0), ("a", -3.0), ("b", -3.0), ("ab", -2.5), ("▁", -4.0)];
    let [unigram, bpe] = [1, 2].map(|kind| crate::tokenizer_load::model(kind, true, &pieces, b""));
    fuzz_file("sentencepiece", "a.model", &[&unigram, &bpe], read);
}

fn tensor(values: &[f32]) -> Vec<u8> {
    let bytes = bytemuck::cast_slice(values).to_vec();
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![values.len()], &bytes).unwrap();
    safetensors::serialize([("w", view)], None).unwrap()
}

#[cfg_attr(test, test)]
pub fn checkpoints_models_and_dumps() {
    let mut job = crate::train::job(1);
    (job.recipe.steps, job.recipe.warmup_steps) = (2, 1);
    let dir = tempfile::tempdir().unwrap();
    job.finish(dir.path(), Start::Continue);
    for file in ["state.json", "model.safetensors", "optimizer.safetensors"] {
        let path = shikha::train::checkpoint_dir(dir.path(), 2).join(file);
        let good = std::fs::read(&path).unwrap();
        fuzz(&format!("checkpoint-{}", file.split('.').next().unwrap()), &[&good], |bytes| {
            std::fs::write(&path, bytes).unwrap();
            let found = latest(dir.path(), &crate::train::config(), &job.identity);
            found.is_ok_and(|(found, _)| found.is_some_and(|found| found.state.step == 2))
        });
        std::fs::write(&path, &good).unwrap();
    }
    let model = dir.path().join("model");
    write_model(&model, &crate::train::config(), &initialise(&crate::train::config(), 1), WeightType::Bf16).unwrap();
    for file in ["config.json", "model.safetensors"] {
        let path = model.join(file);
        let good = std::fs::read(&path).unwrap();
        fuzz(&format!("model-{}", file.split('.').next().unwrap()), &[&good], |bytes| {
            std::fs::write(&path, bytes).unwrap();
            read_model(&model).is_ok()
        });
        std::fs::write(&path, &good).unwrap();
    }
    let (parameters, declared) = (dir.path().join("parameters.safetensors"), dir.path().join("declared.toml"));
    std::fs::write(&parameters, tensor(&[1.0, 2.0, 3.0])).unwrap();
    let dump = |gradients: &Path, declarations: Option<&Path>| {
        let dump = Dump {
            parameters: parameters.clone(),
            gradients: vec![gradients.to_path_buf()],
            declarations: declarations.map(Path::to_path_buf),
            ..Dump::default()
        };
        check_dump(&dump).is_ok()
    };
    let gradients = tensor(&[0.5, -0.5, 1.0]);
    fuzz_file("dump", "gradients.safetensors", &[&gradients], |path| dump(path, None));
    let place = dir.path().join("gradients.safetensors");
    std::fs::write(&place, &gradients).unwrap();
    fuzz("declarations", &[b"names = [\"w\"]\n\n[units]\nw = 0\n"], |bytes| {
        std::fs::write(&declared, bytes).unwrap();
        dump(&place, Some(&declared))
    });
}

const HTML: &str = "<html><body><h1>আইন</h1><p>১। ধারা &amp; কথা</p><table><tr><td>x</td></tr></table></body></html>";
const LAW: &str = "<nav>menu</nav><section class=\"bg-act-section x\"><h3>\n আইন,\n ২০১৬</h3></section><div class=\"txt-head\">সংজ্ঞা</div>\
    <div class=\"txt-details\">১৷ <sup>1</sup>[এই <a href='/x'>আইন</a>ে] 2[যাহা] [* **] [ক]<div class=\"clbr\">&nbsp;</div>(২) শেষ৷</div>\
    <div class=\"footnoteListAll\">note</div><footer>f</footer>";
const DECLARATION: &str =
    "<header><h1>a</h1><p>b</p></header><article><h2>Article 1</h2><p>c &amp; d</p><li>e</li></article>";

#[cfg_attr(test, test)]
pub fn every_reader_of_training_text() {
    let markdown = "# শিরোনাম\n\nএকটি বাক্য\nআরও।\n\n```verse\nএক\nদুই\n```\n<Note>কথা</Note>\n\n- ক\n";
    let table = "id1\tআমি ভাত খাই\nid2\tতুমি\n";
    let csv = "context,other\n\"আমি, ভাত\nখাই\",x\n";
    let book = "x\n*** START OF THE PROJECT GUTENBERG EBOOK A ***\n\nOne.\n\nTwo.\n*** END OF THE PROJECT GUTENBERG EBOOK A ***\n";
    let lines = "\u{feff}একটি বাক্য\r\n\n  আরও  \n";
    for (reader, good) in [
        (Reader::Lines, lines),
        (Reader::Literature, markdown),
        (Reader::MdxBangla, markdown),
        (Reader::Prompts, table),
        (Reader::ContextCsv, csv),
        (Reader::LabelledWords, "আমি COMMA\nভাত O\n"),
        (Reader::LawHtml, LAW),
        (Reader::Gutenberg, book),
        (Reader::GutenbergLatin1, book),
    ] {
        let all = [good, HTML, markdown, table, csv].map(str::as_bytes);
        // A reader may refuse a good file of another kind; that it answers is all that is asked.
        fuzz(&format!("reader-{}", reader.name()), &all, |bytes| {
            let _ = reader.texts(bytes);
            true
        });
    }
    let _ = Reader::LawHtml.texts("<div>".repeat(200_000).as_bytes());
}

/// A zip archive with one member, not packed.
fn archive(content: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    let sizes = [crc.sum(), content.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
    let common = [b"\x14\0\0\0\0\0\0\0\0\0".as_slice(), &sizes, b"\x01\0\0\0"].concat();
    let mut zip = [b"PK\x03\x04", common.as_slice(), b"a", content].concat();
    let directory = zip.len() as u32;
    zip.extend([b"PK\x01\x02\x14\0", common.as_slice(), &[0; 14], b"a"].concat());
    let length = (zip.len() as u32 - directory).to_le_bytes();
    zip.extend([b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &length, &directory.to_le_bytes(), b"\0\0"].concat());
    zip
}

#[cfg_attr(test, test)]
pub fn every_reader_of_other_text() {
    let tmx =
        b"<tmx><tu><tuv xml:lang=\"en\"><seg>a &amp; b</seg></tuv><tuv xml:lang=\"bn\"><seg>k</seg></tuv></tu></tmx>";
    let file = |language: &str| File {
        path: "a".to_owned(),
        bytes: 1,
        sha256: hash_bytes(b""),
        language: Some(language.to_owned()),
    };
    let (bn, en) = (file("bn"), file("en"));
    for (reader, good) in [(Reader::TmxZip, archive(tmx)), (Reader::Declaration, DECLARATION.as_bytes().to_vec())] {
        fuzz(&format!("pairs-{}", reader.name()), &[&good, HTML.as_bytes()], |bytes| {
            let _ = match reader {
                Reader::TmxZip => reader.pairs(&[(&bn, bytes.to_vec())]),
                _ => reader.pairs(&[(&bn, bytes.to_vec()), (&en, DECLARATION.as_bytes().to_vec())]),
            };
            true
        });
    }
    let lines = "এক\nদুই\n".as_bytes();
    fuzz("pairs-lines", &[lines], |bytes| {
        let _ = Reader::ParallelLines.pairs(&[(&bn, bytes.to_vec()), (&en, b"one\ntwo\n".to_vec())]);
        true
    });
    let rows = "{\"goal\":\"a\",\"sol1\":\"b\",\"sol2\":\"c\",\"premise\":\"p\",\"choices\":{\"text\":[\"x\"],\"label\":[\"A\"]},\"answerKey\":\"A\"}\n";
    for name in ["a.json", "a.jsonl", "a.xml", "a.txt", "a.bz2", "a.json.bz2"] {
        let packed: &[u8] = b"BZh91AY&SY\x01\x02";
        fuzz(
            &format!("task-{}", name.replace('.', "-")),
            &[b"{\"a\":[\"b\",{\"c\":1}]}", rows.as_bytes(), HTML.as_bytes(), packed],
            |bytes| {
                let _ = Reader::task_texts(name, bytes);
                // To unpack a file is most of the work, and the same for every task.
                let tasks = if name.ends_with("bz2") { 1 } else { shikha::recipe::TASKS.len() };
                for task in &shikha::recipe::TASKS[..tasks] {
                    let _ = shikha::eval::choice::load(task, &[(name.to_owned(), bytes.to_vec())]);
                }
                true
            },
        );
    }
    assert!(
        Reader::TmxZip.pairs(&[(&bn, archive(tmx))]).is_ok() && Reader::declaration(DECLARATION.as_bytes()).is_ok()
    );
    assert!(Reader::LawHtml.texts(LAW.as_bytes()).is_ok());
    fuzz("declaration", &[DECLARATION.as_bytes()], |bytes| {
        let _ = Reader::declaration(bytes);
        true
    });
    let deep = [("[", "]"), ("{\"a\":", "}")].map(|(open, close)| open.repeat(200_000) + &close.repeat(200_000));
    for nested in &deep {
        assert!(Reader::task_texts("a.json", nested.as_bytes()).is_err(), "too deep, not a stack overflow");
    }
}
