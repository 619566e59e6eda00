//! Encoding Bangla: this program against the plain `tokenizers` crate, with the same tokenizer and the
//! same ids. `SHIKHA_MIRROR` names a folder of raw files; without it the pocket sentences are repeated.
//!
//! Loading is not counted. "first" is the first pass of a freshly loaded tokenizer, with nothing
//! remembered on either side; "again" is the best of the passes after it.

use rayon::prelude::*;
use shikha::corpus::source::{Manifest, Store};
use shikha::recipe::Recipe;
use shikha::report::Table;
use shikha::tokenizer::{PreTokenizer, Tokenizer, Training};
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

const VOCABULARY: usize = 16_384;
const PASSES: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let (name, texts) = texts()?;
    let bytes: usize = texts.iter().map(String::len).sum();
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut table =
        Table::new("encode", &["pattern", "threads", "pass", "tokenizers, MB/s", "shikha, MB/s", "ratio", "ids"]);
    for pre_tokenizer in [PreTokenizer::Gpt2, PreTokenizer::Marks] {
        let training = Training { pre_tokenizer, vocabulary: VOCABULARY, compose: true };
        let json = Tokenizer::train_as(&borrowed, &training)?.to_json()?;
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("tokenizer.json");
        std::fs::write(&path, &json)?;
        for threads in [1, rayon::current_num_threads()] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
            let plain = tokenizers::Tokenizer::from_file(&path).map_err(|e| e.to_string())?;
            let ours = Tokenizer::load(&path)?;
            let plain_ids = |text: &&str| plain.encode_fast(*text, false).map(|found| found.get_ids().to_vec());
            let (theirs, first) =
                passes(bytes, || pool.install(|| borrowed.par_iter().map(plain_ids).collect::<Result<Vec<_>, _>>()))?;
            let (mine, second) =
                passes(bytes, || pool.install(|| ours.encode_all(borrowed.iter().copied())).map_err(|e| e.into()))?;
            for (i, pass) in ["first", "again"].into_iter().enumerate() {
                let same = if first == second { "the same" } else { "DIFFER" };
                let [a, b] = [theirs[i], mine[i]];
                let numbers = [a, b, b / a].map(|x| format!("{x:.1}"));
                let mut row = vec![pre_tokenizer.name().to_owned(), threads.to_string(), pass.to_owned()];
                row.extend(numbers);
                row.push(same.to_owned());
                table.push(row);
            }
        }
    }
    println!("{name}: {} texts, {:.1} MB; {VOCABULARY} tokens\n", texts.len(), bytes as f64 / 1e6);
    print!("{}", table.to_text(100));
    Ok(())
}

type Ids = Vec<Vec<u32>>;
type Failed = Box<dyn Error + Send + Sync>;

/// Megabytes a second of the first pass and of the best after it, and the ids.
fn passes(bytes: usize, mut encode: impl FnMut() -> Result<Ids, Failed>) -> Result<([f64; 2], Ids), Box<dyn Error>> {
    let mut pass = || {
        let start = Instant::now();
        let ids = encode().map_err(|e| e.to_string())?;
        Ok::<_, Box<dyn Error>>((bytes as f64 / 1e6 / start.elapsed().as_secs_f64(), ids))
    };
    let (first, ids) = pass()?;
    let mut again: f64 = 0.0;
    for _ in 1..PASSES {
        again = again.max(pass()?.0);
    }
    Ok(([first, again], ids))
}

/// The Bangla texts, and what they are.
fn texts() -> Result<(String, Vec<String>), Box<dyn Error>> {
    let mirror = std::env::var_os("SHIKHA_MIRROR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let name = if mirror.is_some() { "small" } else { "pocket" };
    let recipe = Recipe::load(name)?;
    let store = Store::new(mirror, std::env::temp_dir());
    let prepared = shikha::corpus::prepare(&Manifest::load(name)?, &recipe.corpus, &store)?;
    let texts = prepared.train.into_iter().filter(|d| d.language == "bn").map(|d| d.text);
    Ok((format!("Bangla of `{name}`"), texts.collect()))
}
