//! Streaming in processes of their own: one that is killed, and one whose memory is measured.

use crate::corpus_stream::{SLICE, bytes, documents, encode, open, order, publish, published, rest};
use shikha::corpus::loader::Batches;
use shikha::corpus::source::Store;
use shikha::corpus::stream::{Feed, Streamed};
use shikha::machine::{peak_memory, reset_peak_memory};
use shikha::rng::Stream;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Names the mirror folder, then the folder of the chunks, to a process of its own.
const WORK: [&str; 2] = ["SHIKHA_TEST_STREAM_FROM", "SHIKHA_TEST_STREAM_TO"];

/// This program again, running one test in a process of its own.
fn process(test: &str, folders: [&Path; 2]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&format!("corpus_stream_process::{test}"), "--exact", "--nocapture"]);
    command.envs(WORK.into_iter().zip(folders)).stderr(Stdio::null());
    command
}

fn work() -> Option<[PathBuf; 2]> {
    let [from, to] = WORK.map(std::env::var_os);
    Some([from?.into(), to?.into()])
}

/// Not a test by itself: the process that is killed. It takes a millisecond for a document.
#[test]
fn the_process_that_streams() {
    let Some([from, to]) = work() else { return };
    let store = Store::new(Some(from), "no-such-folder".into());
    let slowly = |text: &str| {
        std::thread::sleep(Duration::from_millis(1));
        encode(text)
    };
    let (mut feed, _) = Feed::open(order(&store, &to, SLICE), Arc::new(slowly)).unwrap();
    rest(&mut feed);
}

#[test]
fn a_process_that_is_killed_inside_a_row_group_goes_on_with_the_same_batches() {
    let (mirror, whole, part) = (published(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::new(Some(mirror.path().into()), "no-such-folder".into());
    let all = rest(&mut open(&store, whole.path(), SLICE).0);
    let batches = |directory: &Path| {
        let feed = Feed::open(order(&store, directory, SLICE), Arc::new(encode)).unwrap();
        Streamed::new(vec![feed], &BTreeMap::from([("bn".to_owned(), 1.0)]), (3, 32), 5, 1 << 20).unwrap()
    };
    let uninterrupted = batches(whole.path());
    let expected: Vec<_> = (0..2000).map(|n| uninterrupted.batch(n).unwrap()).collect();
    let (mut killed, mut inside) = (0, 0);
    let moments = Stream::new(11, "kill a stream");
    for n in 0.. {
        let mut child =
            process("the_process_that_streams", [mirror.path(), part.path()]).stdout(Stdio::null()).spawn().unwrap();
        // Later each time, so that it comes to an end on any machine.
        std::thread::sleep(Duration::from_millis(20 + 4 * n + (60.0 * moments.uniform(n)) as u64));
        let ended = child.try_wait().unwrap();
        let _ = child.kill(); // SIGKILL
        child.wait().unwrap();
        let found = open(&store, part.path(), SLICE).1;
        assert_eq!(found, all[..found.len()], "kill {n}");
        if let Some(status) = ended {
            assert!(status.success() && found.len() == all.len(), "{status}, {} of {}", found.len(), all.len());
            break;
        }
        killed += 1;
        // What a new process makes of what is there.
        if found.last().is_some_and(|chunk| chunk.to.row > 0) {
            inside += 1;
            let copied = tempfile::tempdir().unwrap();
            bytes(part.path())
                .iter()
                .for_each(|(name, bytes)| std::fs::write(copied.path().join(name), bytes).unwrap());
            let (next, again) =
                (found.iter().map(|chunk| chunk.tokens).sum::<u64>() / (3 * 32), batches(copied.path()));
            for k in [next % 2000].into_iter().chain((0..2000).step_by(101)) {
                assert_eq!(again.batch(k).unwrap(), expected[k as usize], "kill {n}, batch {k}");
            }
        }
    }
    println!("{killed} kills, {inside} of them with the last chunk ending inside a row group");
    assert!(inside >= 3, "{killed} kills, {inside} inside a row group");
    assert!(bytes(whole.path()) == bytes(part.path()), "the same files to the byte");
}

/// Not a test by itself: the process whose memory is measured.
#[test]
fn the_process_whose_memory_is_bounded() {
    let Some([from, to]) = work() else { return };
    let mut order = order(&Store::new(Some(from), "no-such-folder".into()), &to, 1 << 20);
    (order.vocabulary, order.end_of_text) = (2, 1);
    let (mut feed, _) = Feed::open(order, Arc::new(|text: &str| Ok(vec![0; text.len() / 4]))).unwrap();
    feed.advance().unwrap().unwrap(); // Threads, buffers and tables are there now.
    let before = reset_peak_memory().then(peak_memory).flatten();
    rest(&mut feed);
    println!("GROWN {}", before.map_or(0, |before| peak_memory().unwrap_or(0).saturating_sub(before)));
}

/// Bytes of text that is streamed to see what that takes.
const TEXT: usize = 48 << 20;

/// Bytes by which memory grows while [`TEXT`] bytes in documents of some size are streamed from one row group.
fn grown(document: usize) -> usize {
    let base: String = documents().into_iter().flatten().collect();
    let base: String =
        base.chars().cycle().scan(0, |bytes, c| (*bytes < document).then(|| (*bytes += c.len_utf8(), c).1)).collect();
    // Each text once, so that no dictionary holds them all.
    let texts: Vec<_> = (0..TEXT / base.len()).map(|n| Some(format!("{n} {base}"))).collect();
    let mirror = publish(&[texts], usize::MAX);
    let to = tempfile::tempdir().unwrap();
    let output = process("the_process_whose_memory_is_bounded", [mirror.path(), to.path()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let grown = said.lines().find_map(|line| line.split_once("GROWN ")).unwrap().1.trim().parse().unwrap();
    println!("{:.1} MB more for {:.0} MB in documents of {document} bytes", grown as f64 / 1e6, TEXT as f64 / 1e6);
    grown
}

#[test]
fn memory_does_not_grow_with_the_text_nor_with_a_row_group() {
    let grown = grown(8 << 10);
    assert!(grown < TEXT / 4, "{grown} bytes more for {TEXT} bytes of text");
}

#[test]
fn memory_grows_with_the_longest_document_and_not_with_many_of_them() {
    let grown = grown(1 << 20);
    assert!(grown < TEXT / 4, "{grown} bytes more for {TEXT} bytes of text");
}
