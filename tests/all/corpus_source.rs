//! Tests of `corpus::source`: manifests, the store and the readers.

use shikha::corpus::source::{Manifest, Role, Store, read};
use shikha::progress::Progress;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

#[test]
fn the_pocket_corpus_is_inside_the_program() {
    let manifest = Manifest::load("pocket").unwrap();
    let store = Store::new(None, "no-such-folder".into());
    let outcome = read(&manifest, &store, &mut Progress::hidden(2)).unwrap();
    assert_eq!(outcome.documents.len(), 2000);
    assert_eq!(outcome.documents[1000].id, "pocket-en/sentences.txt#1");
    assert!(outcome.skipped.is_empty() && outcome.not_allowed.is_empty() && outcome.parallel.is_empty());
}

/// Needs a mirror folder (`SHIKHA_MIRROR`), and does nothing without one.
#[test]
fn the_small_manifest_resolves_from_a_mirror() {
    let Some(mirror) = std::env::var_os("SHIKHA_MIRROR") else { return };
    let manifest = Manifest::load("small").unwrap();
    let store = Store::new(Some(mirror.into()), "no-such-folder".into());
    let outcome = read(&manifest, &store, &mut Progress::hidden(0)).unwrap();
    assert_eq!(outcome.not_allowed, ["bn-news"]);
    let mut counts = BTreeMap::<&str, (usize, usize)>::new();
    for document in &outcome.documents {
        let count = counts.entry(&document.source).or_default();
        count.0 += 1;
        count.1 += document.text.chars().count();
    }
    for source in manifest.allowed(Role::Train) {
        let (documents, characters) = counts[source.id.as_str()];
        println!("{:16} {:3} files {documents:6} documents {characters:8} characters", source.id, source.files.len());
    }
    outcome.parallel.iter().for_each(|set| println!("{:16} {} pairs", set.id, set.pairs.len()));
    let pairs: Vec<usize> = outcome.parallel.iter().map(|set| set.pairs.len()).collect();
    assert_eq!(pairs[..2], [1997, 3071]);
    assert_eq!(outcome.scripts.len(), 45);
    assert!(outcome.skipped.is_empty(), "{:?}", outcome.skipped);
}

/// What a test server does with the file it is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Sends it, from the byte that was asked for.
    Honest,
    /// Announces all of it and closes the connection after so many bytes of the body.
    CutAfter(usize),
    /// Always sends the whole file, whatever was asked for.
    NoRanges,
    /// Sends one byte more, without announcing a length.
    TooLong,
    /// Sends another file of the same size.
    Altered,
    /// Redirects to a host of its own liking, or to another path here.
    Redirect(&'static str),
}

/// A server of a mirror folder on a port of its own, which answers as many requests as it is told to
/// and gives back what it was asked for: path and first byte.
fn serve(folder: &Path, manners: Vec<Manner>) -> (String, std::thread::JoinHandle<Vec<(String, usize)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let folder = folder.to_path_buf();
    let handle = std::thread::spawn(move || {
        let answer_one = |manner| answer(&folder, listener.accept().unwrap().0, manner);
        manners.into_iter().map(answer_one).collect()
    });
    (address, handle)
}

fn answer(folder: &Path, mut stream: TcpStream, manner: Manner) -> (String, usize) {
    let mut request = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut path, mut from) = (String::new(), String::new(), 0);
    while request.read_line(&mut line).unwrap() > 0 && line.trim() != "" {
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap().to_owned();
        }
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            from = range.trim().trim_end_matches('-').parse().unwrap();
        }
        line.clear();
    }
    let (head, body) = response(folder, &path, from, manner);
    // The client may close first when it has seen enough.
    let _ = stream.write_all(format!("HTTP/1.1 {head}Connection: close\r\n\r\n").as_bytes());
    let _ = stream.write_all(&body);
    (path, from)
}

fn response(folder: &Path, path: &str, from: usize, manner: Manner) -> (String, Vec<u8>) {
    let Ok(mut content) = std::fs::read(folder.join(decoded(&path[1..]))) else {
        return ("404 Not Found\r\nContent-Length: 0\r\n".into(), vec![]);
    };
    let whole = format!("200 OK\r\nContent-Length: {}\r\n", content.len());
    match manner {
        Manner::Redirect(to) => (format!("302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n"), vec![]),
        Manner::CutAfter(bytes) => (whole, content[..bytes].to_vec()),
        Manner::NoRanges => (whole, content),
        Manner::TooLong => {
            content.push(b'x');
            ("200 OK\r\n".into(), content)
        }
        Manner::Altered => {
            content[0] ^= 1;
            (whole, content)
        }
        Manner::Honest if from > 0 => {
            let range = format!("{from}-{}/{}", content.len() - 1, content.len());
            let rest = content.split_off(from);
            (format!("206 Partial Content\r\nContent-Range: bytes {range}\r\nContent-Length: {}\r\n", rest.len()), rest)
        }
        Manner::Honest => (whole, content),
    }
}

fn decoded(path: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), path.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap()
}
