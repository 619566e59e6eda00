//! Load: a corpus of one huge line, one of millions of one-word documents and one of near duplicates go from text
//! to shards in bounded memory. `make load` runs it in full; sizes are `SHIKHA_LOAD_MB` of 2,000.

use shikha::artifact::hash_file;
use shikha::corpus::CorpusReport;
use shikha::pipeline::{Options, Pipeline};
use shikha::recipe::Recipe;
use shikha::train::peak_memory;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Names the folder of the corpus to the process that works on it.
const FOLDER: &str = "SHIKHA_TEST_LOAD";
/// Bytes that no process may take, whatever the corpus.
const LIMIT: u64 = 1_000_000_000;
const SYLLABLES: u64 = 11 * 33;

/// Numbers without end, the same each time (G. Marsaglia, "Xorshift RNGs", 2003).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// A word of three to five Bangla syllables, each a consonant and a vowel sign.
    fn word(&mut self) -> String {
        const SIGNS: [char; 11] = ['া', 'ি', 'ী', 'ু', 'ূ', 'ৃ', 'ে', 'ৈ', 'ো', 'ৌ', 'ং'];
        let syllables = 3 + self.below(3);
        let one = |n: u64| [char::from_u32(0x995 + (n / 11) as u32).unwrap_or('ক'), SIGNS[(n % 11) as usize]];
        (0..syllables).flat_map(|_| one(self.below(SYLLABLES))).collect()
    }
}

/// A corpus of lines and what it must come to.
struct Load {
    name: &'static str,
    /// Documents that must be read, and the fewest and most that may be left.
    read: u64,
    left: std::ops::RangeInclusive<u64>,
}

/// Words from a vocabulary of 50,000, without a line's end.
fn one_line(path: &Path, bytes: u64) -> Load {
    let mut numbers = Numbers(1);
    let words: Vec<String> = (0..50_000).map(|_| numbers.word() + " ").collect();
    let mut out = BufWriter::new(File::create(path).unwrap());
    let mut size = 0;
    while size < bytes {
        let word = &words[numbers.below(50_000) as usize];
        out.write_all(word.as_bytes()).unwrap();
        size += word.len() as u64;
    }
    out.flush().unwrap();
    // Cut every mebibyte, at the last space before it.
    let read = size.div_ceil((1 << 20) - 40).max(1);
    Load { name: "one line", read, left: read..=read }
}

fn one_word_each(path: &Path, count: u64) -> Load {
    let mut numbers = Numbers(2);
    let mut out = BufWriter::new(File::create(path).unwrap());
    (0..count).for_each(|_| writeln!(out, "{}", numbers.word()).unwrap());
    out.flush().unwrap();
    Load { name: "one word each", read: count, left: count / 2..=count }
}

/// Families of ten texts of 150 words, of which each but the first has three other words.
fn near_duplicates(path: &Path, count: u64) -> Load {
    let mut numbers = Numbers(3);
    let mut out = BufWriter::new(File::create(path).unwrap());
    let mut first = Vec::new();
    for n in 0..count {
        if n % 10 == 0 {
            first = (0..150).map(|_| numbers.word()).collect();
        }
        let mut words = first.clone();
        if n % 10 > 0 {
            (0..3).for_each(|_| words[numbers.below(150) as usize] = numbers.word());
        }
        writeln!(out, "{}", words.join(" ")).unwrap();
    }
    out.flush().unwrap();
    Load { name: "near duplicates", read: count, left: count.div_ceil(10)..=count.div_ceil(10) }
}

/// Not a test by itself: the process whose memory is measured.
#[test]
fn the_process_that_works_on_a_corpus() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let mut recipe = Recipe::load("pocket").unwrap();
    recipe.corpus.manifest = folder.join("manifest.toml").display().to_string();
    (recipe.tokenizer.vocabulary, recipe.corpus.held_out) = (2000, 0.3);
    recipe.mix = [("bn".to_owned(), 1.0)].into();
    let options = Options { run_dir: Some(folder.join("run")), ..Options::default() };
    let mut pipeline = Pipeline::open(recipe, &options).unwrap();
    let bytes = folder.join("text.txt").metadata().unwrap().len() as f64;
    let mut timed = |name: &str, stage: &mut dyn FnMut(&mut Pipeline)| {
        let started = Instant::now();
        stage(&mut pipeline);
        let (rate, peak) = (bytes / 1e6 / started.elapsed().as_secs_f64(), peak_memory().unwrap_or(0) as f64 / 1e6);
        println!("LOAD   {name}: {rate:.1} MB/s, peak memory so far {peak:.0} MB");
    };
    timed("corpus", &mut |pipeline| drop(pipeline.corpus().unwrap()));
    timed("tokenizers", &mut |pipeline| drop(pipeline.tokenizers().unwrap()));
    timed("shards", &mut |pipeline| pipeline.shards().unwrap());
    println!("PEAK {}", peak_memory().unwrap_or(0));
}

fn work_on(folder: &Path, load: &Load) {
    let text = folder.join("text.txt");
    let bytes = text.metadata().unwrap().len();
    let manifest = format!(
        "[[source]]\nid = \"load\"\nlanguage = \"bn\"\nrole = \"train\"\ndomain = \"web\"\norigin = \"local:\"\n\
         licence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\nreader = \"lines\"\n\
         files = [{{ path = \"text.txt\", bytes = {bytes}, sha256 = \"{}\" }}]\n",
        hash_file(&text).unwrap()
    );
    std::fs::write(folder.join("manifest.toml"), manifest).unwrap();
    println!("{}: {:.0} MB, {} documents", load.name, bytes as f64 / 1e6, load.read);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["the_process_that_works_on_a_corpus", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said.lines().filter_map(|line| line.split_once("LOAD ")).for_each(|(_, line)| println!("{line}"));
    let peak: u64 = said.lines().find_map(|line| line.strip_prefix("PEAK ")).unwrap().parse().unwrap();
    let report: CorpusReport =
        serde_json::from_slice(&std::fs::read(folder.join("run/corpus/report.json")).unwrap()).unwrap();
    let total = |step: fn(&shikha::corpus::SourceReport) -> shikha::corpus::Amount| report.total(step).documents;
    let left = total(|r| r.train) + total(|r| r.held_out);
    println!("  {} read, {left} left, peak memory {:.0} MB", total(|r| r.read), peak as f64 / 1e6);
    assert!(total(|r| r.read).abs_diff(load.read) <= load.read / 100, "{} read", total(|r| r.read));
    let dropped = total(|r| r.exact_duplicates) + total(|r| r.near_duplicates) + total(|r| r.contaminated);
    assert_eq!(total(|r| r.read), left + dropped + total(|r| r.skipped), "every document is accounted for");
    assert!(load.left.contains(&left) || left.abs_diff(*load.left.start()) <= load.read / 100, "{left} left");
    assert!(peak < LIMIT, "peak memory {peak}");
}

/// All three, at `megabytes` of 2,000.
fn load(megabytes: u64) {
    type Make = fn(&Path, u64) -> Load;
    let corpora: [(Make, u64); 3] =
        [(one_line, megabytes * 1_000_000), (one_word_each, megabytes * 5_000), (near_duplicates, megabytes * 25)];
    for (make, size) in corpora {
        let folder = tempfile::tempdir().unwrap();
        let load = make(&folder.path().join("text.txt"), size);
        work_on(folder.path(), &load);
    }
}

#[test]
fn a_small_load_goes_through() {
    load(10);
}

#[test]
#[ignore = "minutes, and 10 GB of disk: `make load`"]
fn a_full_load_goes_through_in_a_gigabyte() {
    load(std::env::var("SHIKHA_LOAD_MB").ok().and_then(|n| n.parse().ok()).unwrap_or(2000));
}
