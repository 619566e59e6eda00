//! Streaming Parquet: what each part of the way costs, and the whole with the released tokenizer.
//!
//! `SHIKHA_MIRROR` names a folder of raw files; without it the pocket sentences are repeated. Megabytes are of UTF-8
//! text. The files are written first and not counted. Given a folder, what was measured is kept there as `stream.json`.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rayon::prelude::*;
use shikha::artifact::{hash_bytes, hash_file, write_atomic};
use shikha::corpus::contamination::Protected;
use shikha::corpus::normalise::normalise;
use shikha::corpus::source::{File, Manifest, Store, read};
use shikha::corpus::stream::{Cleaning, Feed, Order, Position, Rows, SLICE};
use shikha::machine::{peak_memory, processor, reset_peak_memory};
use shikha::progress::Progress;
use shikha::report::streaming::{self, Part, Streaming};
use shikha::tokenizer::Tokenizer;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of text in each of two files.
const FILE: usize = 192 << 20;
const TOKENIZER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/tokenizer/tokenizer.json");

fn main() -> Result<(), Box<dyn Error>> {
    let (name, texts) = texts()?;
    let folder = tempfile::tempdir()?;
    let (files, sizes) = write(&texts, folder.path())?;
    drop(texts);
    let mut measured = Streaming {
        text: name,
        file_bytes: sizes[0] as u64,
        slice: SLICE as u64,
        processor: processor(),
        parts: Vec::new(),
    };
    // The whole first: what it takes of memory is then not hidden by what the parts hold.
    for threads in [1, rayon::current_num_threads()] {
        measured.parts.extend(whole(&files, &sizes, folder.path(), threads)?);
    }
    for threads in [1, rayon::current_num_threads()] {
        measured.parts.extend(parts(&folder.path().join(&files[0].path), sizes[0], threads)?);
    }
    println!(
        "{}: two files of {:.0} MB of text, snappy, slices of {:.0} MB\n",
        measured.text,
        measured.file_bytes as f64 / 1e6,
        measured.slice as f64 / 1e6
    );
    print!("{}", streaming::table(&measured).to_text(110));
    if let Some(directory) = std::env::args().skip(1).find(|a| !a.starts_with('-')) {
        let mut text = serde_json::to_vec_pretty(&measured)?;
        text.push(b'\n');
        write_atomic(&Path::new(&directory).join("stream.json"), &text)?;
    }
    Ok(())
}

/// Every file from Parquet to chunks on disk; the second finds what the tokenizer remembers of the first.
fn whole(files: &[File], sizes: &[usize], folder: &Path, threads: usize) -> Result<Vec<Part>, Box<dyn Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let tokenizer = Tokenizer::load(Path::new(TOKENIZER))?;
    let mut parts = Vec::new();
    for (number, bytes) in sizes.iter().enumerate() {
        let store = Store::new(None, folder.into());
        let encode = {
            let tokenizer = tokenizer.clone();
            Arc::new(move |text: &str| tokenizer.encode(text).map_err(|e| e.to_string()))
        };
        let order = order(&files[number..=number], &store, folder, &tokenizer, threads)?;
        let (mut feed, _) = Feed::open(order, encode)?;
        let before = reset_peak_memory().then(peak_memory).flatten();
        let start = Instant::now();
        let advance = || -> Result<(), Box<dyn Error + Send + Sync>> {
            while feed.advance()?.is_some() {}
            Ok(())
        };
        pool.install(advance).map_err(|e| e.to_string())?;
        let seconds = start.elapsed().as_secs_f64();
        // The second takes what the first has given back.
        let memory = before.filter(|_| number == 0).and_then(|before| Some([peak_memory()?, before]));
        parts.push(Part { part: format!("all, file {}", number + 1), threads, bytes: *bytes as u64, seconds, memory });
    }
    Ok(parts)
}

/// The three parts that take the time, one after the other, each on all of a file.
fn parts(path: &Path, bytes: usize, threads: usize) -> Result<Vec<Part>, Box<dyn Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let tokenizer = Tokenizer::load(Path::new(TOKENIZER))?;
    let mut parts = Vec::new();
    let mut took = |part: &str, start: Instant, threads: usize| {
        let seconds = start.elapsed().as_secs_f64();
        parts.push(Part { part: part.to_owned(), threads, bytes: bytes as u64, seconds, memory: None });
    };
    let start = Instant::now();
    let texts: Vec<String> =
        Rows::open(path, Position::default())?.slice(usize::MAX)?.texts.into_iter().flatten().collect();
    if threads == 1 {
        took("read and decompress", start, 1);
    }
    let start = Instant::now();
    let clean: Vec<String> = pool.install(|| texts.par_iter().map(|text| normalise(text)).collect());
    took("normalise", start, threads);
    // The first pass fills what the tokenizer remembers.
    for pass in ["encode, first time", "encode"] {
        let start = Instant::now();
        pool.install(|| clean.par_iter().try_for_each(|text| tokenizer.encode(text).map(drop)))?;
        took(pass, start, threads);
    }
    Ok(parts)
}

/// The Bangla texts, and what they are.
fn texts() -> Result<(String, Vec<String>), Box<dyn Error>> {
    let mirror = std::env::var_os("SHIKHA_MIRROR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let name = if mirror.is_some() { "small" } else { "pocket" };
    let store = Store::new(mirror, std::env::temp_dir());
    let outcome = read(&Manifest::load(name)?, &store, &mut Progress::hidden(1))?;
    let texts = outcome.documents.into_iter().filter(|d| d.language == "bn").map(|d| d.text);
    let texts: Vec<String> = texts.collect();
    let size = texts.iter().map(String::len).sum::<usize>() as f64 / 1e6;
    Ok((format!("{size:.1} MB of Bangla of `{name}`, repeated"), texts))
}

/// Two files of the texts, repeated, in row groups of 1,000; and the bytes of text in each.
fn write(texts: &[String], folder: &Path) -> Result<(Vec<File>, Vec<usize>), Box<dyn Error>> {
    let schema = Arc::new(parse_message_type("message m { required binary text (STRING); }")?);
    let (mut files, mut sizes, mut cycle) = (Vec::new(), Vec::new(), texts.iter().cycle());
    for number in 0..2 {
        let name = format!("{number}.parquet");
        let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
        let output = std::fs::File::create(folder.join(&name))?;
        let mut writer = SerializedFileWriter::new(output, schema.clone(), properties)?;
        let mut size = 0;
        while size < FILE {
            let values: Vec<ByteArray> = cycle.by_ref().take(1000).map(|text| text.as_str().into()).collect();
            size += values.iter().map(ByteArray::len).sum::<usize>();
            let mut group = writer.next_row_group()?;
            let mut column = group.next_column()?.ok_or("no column")?;
            column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            column.close()?;
            group.close()?;
        }
        writer.close()?;
        let path = folder.join(&name);
        files.push(File {
            path: name,
            bytes: std::fs::metadata(&path)?.len(),
            sha256: hash_file(&path)?,
            language: None,
        });
        sizes.push(size);
    }
    Ok((files, sizes))
}

fn order(
    files: &[File],
    store: &Store,
    folder: &Path,
    tokenizer: &Tokenizer,
    threads: usize,
) -> Result<Order, Box<dyn Error>> {
    let mut source = Manifest::load("full")?.sources[0].clone();
    source.origin = format!("local:{}", folder.display()).parse()?;
    let protected = Protected::new(std::iter::empty(), 13);
    Ok(Order {
        language: "bn".to_owned(),
        files: files.iter().map(|file| (source.clone(), file.clone())).collect(),
        store: store.clone(),
        directory: folder.join(format!("{threads}-{}", files[0].path)),
        slice: SLICE,
        cleaning: Cleaning { held_out: 0.01, protected: Arc::new(protected), protected_hash: hash_bytes(b"") },
        tokenizer: tokenizer.hash()?,
        vocabulary: tokenizer.vocabulary_size(),
        end_of_text: tokenizer.end_of_text(),
    })
}
