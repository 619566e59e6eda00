//! Streaming Parquet: what each part of the way costs, and the whole with the released tokenizer.
//!
//! `SHIKHA_MIRROR` names a folder of raw files; without it the pocket sentences are repeated. Megabytes are of UTF-8
//! text. The files are written first and not counted.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rayon::prelude::*;
use shikha::artifact::{hash_bytes, hash_file};
use shikha::corpus::contamination::Protected;
use shikha::corpus::normalise::normalise;
use shikha::corpus::source::{File, Manifest, Store, read};
use shikha::corpus::stream::{Cleaning, Feed, Order, Position, Rows};
use shikha::progress::Progress;
use shikha::report::Table;
use shikha::tokenizer::Tokenizer;
use shikha::train::peak_memory;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of text in each of two files.
const FILE: usize = 96 << 20;
const SLICE: usize = 8 << 20;
const TOKENIZER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/tokenizer/tokenizer.json");

fn main() -> Result<(), Box<dyn Error>> {
    let (name, texts) = texts()?;
    let folder = tempfile::tempdir()?;
    let (files, size) = write(&texts, folder.path())?;
    drop(texts);
    let tokenizer = Tokenizer::load(Path::new(TOKENIZER))?;
    let mut table = Table::new("stream", &["part", "threads", "MB/s", "peak memory, MB"]);
    for threads in [1, rayon::current_num_threads()] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let mut row = |part: &str, bytes: usize, seconds: f64| {
            let memory = peak_memory().map_or("not measured".to_owned(), |b| format!("{:.0}", b as f64 / 1e6));
            table.push(vec![
                part.to_owned(),
                threads.to_string(),
                format!("{:.1}", bytes as f64 / 1e6 / seconds),
                memory,
            ]);
        };
        for (number, (_, bytes)) in files.iter().zip(&size).enumerate() {
            let parquet = Store::new(None, folder.path().into());
            let (mut feed, _) =
                Feed::open(order(&files[number..=number], &parquet, folder.path(), &tokenizer, threads)?, {
                    let tokenizer = tokenizer.clone();
                    Arc::new(move |text: &str| tokenizer.encode(text).map_err(|e| e.to_string()))
                })?;
            let start = Instant::now();
            pool.install(|| -> Result<(), Box<dyn Error + Send + Sync>> {
                while feed.advance()?.is_some() {}
                Ok(())
            })
            .map_err(|e| e.to_string())?;
            row(&format!("all, file {}", number + 1), *bytes, start.elapsed().as_secs_f64());
        }
        let path = folder.path().join(&files[0].path);
        let start = Instant::now();
        let slice = Rows::open(&path, Position::default())?.slice(usize::MAX)?;
        row("read and decompress", size[0], start.elapsed().as_secs_f64());
        let texts: Vec<String> = slice.texts.into_iter().flatten().collect();
        let start = Instant::now();
        let clean: Vec<String> = pool.install(|| texts.par_iter().map(|text| normalise(text)).collect());
        row("normalise", size[0], start.elapsed().as_secs_f64());
        let start = Instant::now();
        pool.install(|| clean.par_iter().try_for_each(|text| tokenizer.encode(text).map(drop)))?;
        row("encode", size[0], start.elapsed().as_secs_f64());
    }
    println!(
        "{name}: two files of {:.0} MB of text, snappy, slices of {:.0} MB\n",
        size[0] as f64 / 1e6,
        SLICE as f64 / 1e6
    );
    print!("{}", table.to_text(100));
    Ok(())
}

/// The Bangla texts, and what they are.
fn texts() -> Result<(String, Vec<String>), Box<dyn Error>> {
    let mirror = std::env::var_os("SHIKHA_MIRROR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let name = if mirror.is_some() { "small" } else { "pocket" };
    let store = Store::new(mirror, std::env::temp_dir());
    let outcome = read(&Manifest::load(name)?, &store, &mut Progress::hidden(1))?;
    let texts = outcome.documents.into_iter().filter(|d| d.language == "bn").map(|d| d.text);
    Ok((format!("Bangla of `{name}`"), texts.collect()))
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
