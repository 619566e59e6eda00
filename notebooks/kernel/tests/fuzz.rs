//! Damaged forms of good notebooks: each is read or refused; none panics. The seeds lie in fuzz/seeds/notebook;
//! `SHIKHA_FUZZ_SECONDS` goes on for so long. The inputs follow from a number alone.

use serde_json::Value;
use shikha_kernel::{drift, notebook::Notebook};
use std::path::Path;
use std::time::{Duration, Instant};

/// Forms without a time set.
const FORMS: u64 = 2000;
/// Longer than any notebook of some kilobytes may take.
const HANG: Duration = Duration::from_secs(20);
/// Words that parsers trip over.
const WORDS: [&str; 12] =
    ["0", "-1", "1e999", "null", "\"\"", "[[[[[[[[", "{\"a\":", "\\u0000", "[]", "{}", "4", "\"cell_type\": \"code\""];

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The `n`-th damaged form of a seed.
fn damaged(seed: &[u8], n: u64) -> Vec<u8> {
    let (mut bytes, mut state) = (seed.to_vec(), n);
    let mut below = |limit: usize| (next(&mut state) % (limit as u64 + 1)) as usize;
    for _ in 0..1 + below(4) {
        let at = below(bytes.len());
        let end = (at + 1 + below(40)).min(bytes.len());
        match below(4) {
            0 if at < bytes.len() => bytes[at] ^= 1 << below(7),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let piece = bytes[at..end].repeat(1 + below(60));
                bytes.splice(at..at, piece);
            }
            3 => {
                // A whole value becomes another: what is left is often JSON still.
                let from = (at..bytes.len()).find(|&i| b"\"[{".contains(&bytes[i])).unwrap_or(bytes.len());
                let to = (from + 1..bytes.len()).find(|&i| b"\"]}".contains(&bytes[i])).map_or(from, |i| i + 1);
                bytes.splice(from..to, WORDS[below(11)].bytes());
            }
            _ => drop(bytes.splice(at..end, WORDS[below(11)].bytes())),
        }
    }
    bytes
}

/// All that is done with a notebook short of running it; whether it was read.
pub fn use_notebook(bytes: &[u8]) -> bool {
    let Ok(mut notebook) = Notebook::parse("t.ipynb".into(), bytes) else { return false };
    let _ = notebook.inspect(&["/home/somebody".to_owned()]);
    let again = Notebook::parse("t.ipynb".into(), &notebook.to_bytes());
    assert_eq!(again.expect("what is written is read").to_bytes(), notebook.to_bytes());
    let _ = drift::drift(&notebook, &notebook.clone());
    for cell in notebook.code_cells() {
        let _ = cell.tolerance();
        notebook.set_outputs(&cell, vec![Value::Null]);
    }
    true
}

#[test]
fn damaged_notebooks_are_read_or_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let seed = std::fs::read(root.join("fuzz/seeds/notebook/good-0")).unwrap();
    assert!(use_notebook(&seed), "a good file is taken");
    let seconds = std::env::var("SHIKHA_FUZZ_SECONDS").ok().and_then(|n| n.parse().ok());
    let (started, mut n, mut taken) = (Instant::now(), 0, 0);
    while seconds.map_or(n < FORMS, |seconds| started.elapsed() < Duration::from_secs(seconds)) {
        let (input, at) = (damaged(&seed, n), Instant::now());
        let outcome = std::panic::catch_unwind(|| use_notebook(&input));
        assert!(outcome.is_ok() && at.elapsed() <= HANG, "form {n}: {}", String::from_utf8_lossy(&input));
        taken += u64::from(outcome.is_ok_and(|taken| taken));
        n += 1;
    }
    println!("notebook: {n} inputs, {taken} read, {} refused, no panic", n - taken);
    assert!(taken > n / 100, "some damage still leaves a notebook");
}
