//! A fuzzer that gives the same inputs on every machine: damaged forms of good files for every parser that reads a
//! user's file. A test gives each parser some; `make fuzz` goes on for `SHIKHA_FUZZ_SECONDS` a parser.
//!
//! The good files of a parser are those of the test and all in `fuzz/seeds/NAME`, where what once went wrong is
//! kept. An input that panics or takes too long is written to `fuzz/findings`.

use shikha::rng::Stream;
use shikha::train::peak_memory;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Forms of each good file in the test.
const FORMS: u64 = 40;
/// Longer than any parser may take for a file of some kilobytes, on a busy machine.
const HANG: Duration = Duration::from_secs(20);
/// Bytes of memory that a parser may add.
const MEMORY: u64 = 1 << 30;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The good files of a parser. With `SHIKHA_WRITE_SEEDS` set, the test's own are written where they are committed.
fn seeds(name: &str, own: &[&[u8]]) -> Vec<Vec<u8>> {
    let folder = root().join("seeds").join(name);
    if std::env::var_os("SHIKHA_WRITE_SEEDS").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        own.iter().enumerate().for_each(|(i, seed)| std::fs::write(folder.join(format!("good-{i}")), seed).unwrap());
    }
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&folder).map_or(Vec::new(), |found| found.map(|entry| entry.unwrap().path()).collect());
    paths.sort_unstable();
    let stored = paths.iter().map(|path| std::fs::read(path).unwrap());
    let more = stored.filter(|seed| !own.contains(&seed.as_slice()));
    own.iter().map(|seed| seed.to_vec()).chain(more).collect()
}

/// Gives `parse`, which says whether it took it, every good file and then damaged forms of them.
pub fn fuzz(name: &str, own: &[&[u8]], mut parse: impl FnMut(&[u8]) -> bool) {
    if std::env::var("SHIKHA_FUZZ_ONLY").is_ok_and(|only| !only.is_empty() && !only.split(',').any(|one| one == name)) {
        return;
    }
    assert!(own.iter().all(|seed| parse(seed)), "{name}: a good file is taken");
    let seeds = seeds(name, own);
    // What once went wrong goes wrong no more.
    for seed in &seeds[own.len()..] {
        let _ = parse(seed);
    }
    let seconds = std::env::var("SHIKHA_FUZZ_SECONDS").ok().and_then(|n| n.parse().ok());
    let (started, before) = (Instant::now(), peak_memory());
    let (mut taken, mut slowest, mut n) = (0, Duration::ZERO, 0);
    let goes_on = |n: u64| match seconds {
        Some(seconds) => started.elapsed() < Duration::from_secs(seconds),
        None => n < FORMS * seeds.len() as u64,
    };
    while goes_on(n) {
        let input = damaged(&seeds, name, n);
        let at = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| parse(&input)));
        slowest = slowest.max(at.elapsed());
        if outcome.is_err() || at.elapsed() > HANG {
            let path = root().join("findings").join(format!("{name}-{n}"));
            std::fs::create_dir_all(root().join("findings")).unwrap();
            std::fs::write(&path, &input).unwrap();
            println!("{name}: {} after {:?}", path.display(), at.elapsed());
        }
        assert!(at.elapsed() <= HANG, "{name}: input {n} takes too long");
        taken += u64::from(outcome.unwrap_or_else(|panic| resume_unwind(panic)));
        n += 1;
    }
    let added = peak_memory().zip(before).map_or(0, |(after, before)| after - before);
    println!(
        "{name}: {} seeds, {n} inputs, {taken} taken, slowest {slowest:?}, {} MB more memory",
        seeds.len(),
        added >> 20
    );
    assert!(added < MEMORY || seconds.is_none(), "{name}: {added} bytes more memory"); // tests share a process
    if let Some(path) = std::env::var_os("SHIKHA_FUZZ_LOG") {
        let (seconds, slowest) = (started.elapsed().as_secs(), slowest.as_millis());
        let row = format!("{name},{seconds},{},{n},{taken},{slowest},{}\n", seeds.len(), added >> 20);
        let log = std::fs::OpenOptions::new().append(true).create(true).open(path);
        log.and_then(|mut log| log.write_all(row.as_bytes())).unwrap();
    }
}

/// Words that parsers trip over.
const WORDS: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"99999999999999999999",
    b"1e999",
    b"-0.0",
    b"nan",
    b"null",
    b"\"\"",
    b"[[[[[[[[",
    b"{\"a\":",
    b"\\u0000",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x7f",
    b"\n\n",
    b"../../x",
];

/// The `n`-th damaged form of the `seeds`: bits flipped, pieces cut out, doubled, made of noise, replaced by words
/// that parsers trip over or by pieces of another seed.
pub fn damaged(seeds: &[Vec<u8>], name: &str, n: u64) -> Vec<u8> {
    let stream = Stream::new(9, &format!("{name} {n}"));
    let mut bytes = seeds[(n % seeds.len() as u64) as usize].clone();
    for change in 0..1 + stream.below(0, 4) {
        let draw = |i: u64, limit: usize| stream.below(16 * (change + 1) + i, limit as u64 + 1) as usize;
        let at = draw(0, bytes.len());
        let end = (at + 1 + draw(1, 40)).min(bytes.len());
        match draw(2, 8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << draw(3, 7),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].repeat(1 + draw(3, 60));
                bytes.splice(at..at, piece);
            }
            4 => (at..end).for_each(|i| bytes[i] = stream.bits(1000 + i as u64) as u8),
            5 => bytes[at..end].fill(0xff),
            6 => drop(bytes.splice(at..end, WORDS[draw(3, 15)].iter().copied())),
            7 => {
                // A number becomes another.
                let from = (at..bytes.len()).find(|&i| bytes[i].is_ascii_digit()).unwrap_or(bytes.len());
                let to = (from..bytes.len()).find(|&i| !bytes[i].is_ascii_digit()).unwrap_or(bytes.len());
                bytes.splice(from..to, WORDS[draw(3, 5)].iter().copied());
            }
            _ => {
                let other = &seeds[draw(3, seeds.len() - 1)];
                let from = draw(4, other.len());
                let piece = other[from..(from + draw(5, 200)).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}
