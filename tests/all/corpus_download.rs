//! Tests of downloads by `corpus::source`, against a small server on this machine.

use shikha::artifact::{Hash, hash_bytes};
use shikha::corpus::source::{Manifest, SourceError, Store, files_to_read, read};
use shikha::progress::Progress;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

const COMMIT: &str = "0123456789012345678901234567890123456789";
/// A path that has to be percent-encoded.
const PATH: &str = "আইন/act 1.txt";

/// What the server was asked for (path and first byte), and the bytes or the message of the error.
type Downloaded = (Vec<(String, usize)>, Result<Vec<u8>, String>);

/// A mirror folder with one file of 2,000 Bangla lines, and a manifest of it.
struct Published {
    mirror: tempfile::TempDir,
    cache: tempfile::TempDir,
    manifest: Manifest,
    size: usize,
}

fn published() -> Published {
    let content: String = (0..2000).map(|n| format!("বাক্য নম্বর {n} এখানে শেষ।\n")).collect();
    let mirror = tempfile::tempdir().unwrap();
    let path = mirror.path().join(format!("github.com/owner/texts/{COMMIT}/{PATH}"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, &content).unwrap();
    let manifest = format!(
        "[[source]]\nid = \"texts\"\nlanguage = \"bn\"\nrole = \"train\"\ndomain = \"web\"\norigin = \"github:owner/texts\"\n\
         revision = \"{COMMIT}\"\nlicence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\nreader = \"lines\"\n\
         files = [{{ path = \"{PATH}\", bytes = {}, sha256 = \"{}\" }}]\n",
        content.len(),
        hash_bytes(content.as_bytes())
    );
    let manifest = Manifest::parse(&manifest, "test", Path::new("")).unwrap();
    Published { mirror, cache: tempfile::tempdir().unwrap(), manifest, size: content.len() }
}

impl Published {
    /// Downloads from a server of these manners.
    fn download(&self, manners: Vec<Manner>) -> Downloaded {
        let drips = manners.contains(&Manner::Drips);
        let (address, server) = serve(self.mirror.path(), manners);
        let patience = Duration::from_millis(if drips { 300 } else { 20_000 });
        let store = Store::new(None, self.cache.path().into()).with_base_url(&address).with_patience(patience);
        let source = &self.manifest.sources[0];
        let result = store.bytes(source, &source.files[0]).map_err(|e| {
            let message = e.to_string();
            assert_eq!(message.lines().count(), 1, "{message}");
            message
        });
        // A server that waits for more requests is told that there are none.
        drop(TcpStream::connect(address.trim_start_matches("http://")));
        (server.join().unwrap(), result)
    }

    /// Sizes of the file in the cache and of its `.partial`.
    fn cached(&self) -> (Option<usize>, Option<usize>) {
        let path = self.cache.path().join(format!("github.com/owner/texts/{COMMIT}/{PATH}"));
        let size = |path: &Path| std::fs::metadata(path).ok().map(|m| m.len() as usize);
        (size(&path), size(&path.with_file_name("act 1.txt.partial")))
    }
}

fn document_hashes(manifest: &Manifest, store: &Store) -> Vec<Hash> {
    let outcome = read(manifest, store, &mut Progress::hidden(1)).unwrap();
    outcome.documents.iter().map(|d| hash_bytes(serde_json::to_string(d).unwrap().as_bytes())).collect()
}

#[test]
fn mirror_server_and_cache_give_the_same_documents() {
    let published = published();
    let cache = published.cache.path().to_path_buf();
    let mirrored = Store::new(Some(published.mirror.path().into()), "no-such-folder".into());
    let expected = document_hashes(&published.manifest, &mirrored);
    assert_eq!(expected.len(), 2000);
    let (address, server) = serve(published.mirror.path(), vec![Manner::Honest]);
    let store = Store::new(None, cache).with_base_url(&address);
    assert_eq!(document_hashes(&published.manifest, &store), expected);
    let asked = server.join().unwrap();
    assert!(asked[0].0.ends_with("/%E0%A6%86%E0%A6%87%E0%A6%A8/act%201.txt"), "{asked:?}");
    assert_eq!(published.cached(), (Some(published.size), None));
    // The server is gone: this comes from the cache.
    assert_eq!(document_hashes(&published.manifest, &store), expected);
}

/// Needs a mirror folder (`SHIKHA_MIRROR`), and does nothing without one.
#[test]
fn the_small_manifest_gives_the_same_documents_from_a_mirror_and_from_a_server() {
    let Some(mirror) = std::env::var_os("SHIKHA_MIRROR").filter(|m| !m.is_empty()) else { return };
    let manifest = Manifest::load("small").unwrap();
    let cache = tempfile::tempdir().unwrap();
    let expected = document_hashes(&manifest, &Store::new(Some(mirror.clone().into()), "no-such-folder".into()));
    let files = files_to_read(&manifest).unwrap() as usize;
    let (address, server) = serve(Path::new(&mirror), vec![Manner::Honest; files]);
    let store = Store::new(None, cache.path().into()).with_base_url(&address);
    assert_eq!(document_hashes(&manifest, &store), expected);
    assert_eq!(server.join().unwrap().len(), files);
}

#[test]
fn a_lost_connection_is_continued_at_once_and_by_the_next_run() {
    let once = published();
    let (asked, result) = once.download(vec![Manner::CutAfter(1000), Manner::Honest]);
    assert_eq!(asked.iter().map(|a| a.1).collect::<Vec<_>>(), [0, 1000]);
    assert_eq!(result.unwrap().len(), once.size);
    let thrice = published();
    let (_, result) = thrice.download(vec![Manner::CutAfter(600), Manner::CutAfter(400), Manner::CutAfter(0)]);
    let message = result.unwrap_err();
    assert!(message.contains("the connection ended after 1000 of"), "{message}");
    assert!(message.contains("run again to continue"), "{message}");
    assert_eq!(thrice.cached(), (None, Some(1000)));
    let (asked, result) = thrice.download(vec![Manner::Honest]);
    assert_eq!((asked[0].1, result.unwrap().len()), (1000, thrice.size));
}

#[test]
fn two_programs_that_want_one_file_download_it_once() {
    let published = published();
    let (address, server) = serve(published.mirror.path(), vec![Manner::Hesitates; 3]);
    let source = &published.manifest.sources[0];
    // Each has its own file handles, as each program has.
    let get = || {
        let store = Store::new(None, published.cache.path().into()).with_base_url(&address);
        store.bytes(source, &source.files[0]).map(|bytes| hash_bytes(&bytes)).map_err(|e| e.to_string())
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(get)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(found, vec![Ok(source.files[0].sha256); 3]);
    drop(TcpStream::connect(address.trim_start_matches("http://")));
    let asked = server.join().unwrap();
    assert_eq!(asked.iter().map(|a| a.1).collect::<Vec<_>>(), [0], "the bytes are served once");
    assert_eq!(published.cached(), (Some(published.size), None));
    let folder = published.cache.path().join(format!("github.com/owner/texts/{COMMIT}/{PATH}"));
    assert_eq!(std::fs::read_dir(folder.parent().unwrap()).unwrap().count(), 1, "nothing else lies beside it");
}

/// What another program, which holds the `.partial` and has 1,000 bytes of it, does before it ends.
fn waited_for(published: &Published, ends: impl FnOnce(&Path)) -> Downloaded {
    let path = published.cache.path().join(format!("github.com/owner/texts/{COMMIT}/{PATH}"));
    let partial = path.with_file_name("act 1.txt.partial");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let content = std::fs::read(published.mirror.path().join(path.strip_prefix(published.cache.path()).unwrap()));
    std::fs::write(&partial, &content.unwrap()[..1000]).unwrap();
    let held = std::fs::File::open(&partial).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| published.download(vec![Manner::Honest]));
        std::thread::sleep(Duration::from_millis(200));
        assert!(!waits.is_finished(), "it waits");
        assert_eq!(published.cached(), (None, Some(1000)), "and changes nothing");
        ends(&partial);
        drop(held);
        waits.join().unwrap()
    })
}

#[test]
fn what_another_program_leaves_is_continued_made_anew_or_taken() {
    let asked = |asked: Vec<(String, usize)>| asked.into_iter().map(|a| a.1).collect::<Vec<_>>();
    let published_size = |published: &Published, (requests, result): Downloaded| {
        assert_eq!(result.map(|bytes| bytes.len()), Ok(published.size));
        assert_eq!(published.cached(), (Some(published.size), None));
        asked(requests)
    };
    let killed = published();
    let downloaded = waited_for(&killed, |_| {});
    assert_eq!(published_size(&killed, downloaded), [1000]);
    let refused = published();
    let downloaded = waited_for(&refused, |partial| std::fs::remove_file(partial).unwrap());
    assert_eq!(published_size(&refused, downloaded), [0]);
    let finished = published();
    let content = format!("github.com/owner/texts/{COMMIT}/{PATH}");
    let downloaded = waited_for(&finished, |partial| {
        std::fs::copy(finished.mirror.path().join(content), partial).unwrap();
        std::fs::rename(partial, partial.with_extension("")).unwrap();
    });
    assert!(published_size(&finished, downloaded).is_empty());
}

#[test]
fn a_server_without_ranges_starts_over() {
    let published = published();
    let (asked, result) = published.download(vec![Manner::CutAfter(1000), Manner::NoRanges]);
    assert_eq!((asked.len(), result.unwrap().len()), (2, published.size));
}

#[test]
fn another_file_is_refused_and_not_kept() {
    for (manner, expected) in
        [(Manner::Altered, "is not the file of the manifest: sha256"), (Manner::TooLong, "bytes, the manifest says")]
    {
        let published = published();
        let (_, result) = published.download(vec![manner]);
        let message = result.unwrap_err();
        assert!(message.contains(expected), "{message}");
        assert_eq!(published.cached(), (None, None));
    }
}

#[test]
fn what_an_earlier_run_left_of_another_file_is_dropped() {
    let published = published();
    let partial = published.cache.path().join(format!("github.com/owner/texts/{COMMIT}/{PATH}.partial"));
    std::fs::create_dir_all(partial.parent().unwrap()).unwrap();
    std::fs::write(&partial, [7; 500]).unwrap();
    let (asked, result) = published.download(vec![Manner::Honest, Manner::Honest]);
    assert_eq!(asked.iter().map(|a| a.1).collect::<Vec<_>>(), [500, 0]);
    assert_eq!(result.unwrap().len(), published.size);
}

#[test]
fn a_hostile_server_gets_no_file_taken_for_whole_and_no_memory() {
    let hostile = [
        (vec![Manner::Announces(1 << 40)], "bytes, the manifest says"),
        (vec![Manner::Announces(100); 3], "the connection ended after"),
        (vec![Manner::Drips; 3], "the connection ended after"),
        (vec![Manner::Bomb], "bytes, the manifest says"),
        (vec![Manner::EndlessHead; 3], "cannot download"),
    ];
    for (manners, expected) in hostile {
        let published = published();
        let started = std::time::Instant::now();
        let (_, result) = published.download(manners.clone());
        let message = result.unwrap_err();
        assert!(message.contains(expected), "{:?}: {message}", manners[0]);
        let (whole, partial) = published.cached();
        assert!(whole.is_none() && partial.unwrap_or(0) <= published.size, "{:?}", manners[0]);
        assert!(started.elapsed().as_secs() < 10, "{:?}", manners[0]);
        let names = std::fs::read_dir(published.cache.path()).unwrap().count();
        assert_eq!(names, usize::from(published.cache.path().join("github.com").exists()), "no file elsewhere");
        assert_eq!(published.download(vec![Manner::Honest; 2]).1.map(|bytes| bytes.len()), Ok(published.size));
    }
}

#[test]
fn a_name_that_leads_out_of_the_folder_is_refused() {
    for path in ["../../x", "/etc/passwd", "a/../../x", "a\\x", "C:x", "./x", "a//x"] {
        let manifest = format!(
            "[[source]]\nid = \"texts\"\nlanguage = \"bn\"\nrole = \"train\"\ndomain = \"web\"\norigin = \"github:owner/texts\"\n\
             revision = \"{COMMIT}\"\nlicence = \"CC0-1.0\"\nlicence_risk = \"none\"\nattribution = \"nobody\"\nreader = \"lines\"\n\
             files = [{{ path = '{path}', bytes = 1, sha256 = \"{}\" }}]\n",
            hash_bytes(b"x")
        );
        let message = Manifest::parse(&manifest, "test", Path::new("")).unwrap_err().to_string();
        assert!(message.contains("must be relative"), "{path}: {message}");
    }
}

#[test]
fn a_file_that_is_not_there_and_a_host_that_is_another_are_named() {
    let published = published();
    let (_, result) = published.download(vec![Manner::Redirect("https://elsewhere.example/act")]);
    let message = result.unwrap_err();
    assert!(message.contains("sends elsewhere, to `https://elsewhere.example/act`"), "{message}");
    let (_, result) = published.download(vec![Manner::Redirect("/no/such/file"), Manner::Honest]);
    let message = result.unwrap_err();
    assert!(message.contains("the server answered 404 Not Found"), "{message}");
    let endless = vec![Manner::Redirect("/again"); 4];
    std::fs::write(published.mirror.path().join("again"), "x").unwrap();
    assert!(published.download(endless).1.unwrap_err().contains("more than 3 redirects"));
    assert_eq!(published.cached(), (None, None));
}

#[test]
fn no_server_is_an_error_that_says_what_to_do() {
    let published = published();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = Store::new(None, published.cache.path().into()).with_base_url(&format!("http://127.0.0.1:{port}"));
    let source = &published.manifest.sources[0];
    let error = store.bytes(source, &source.files[0]).unwrap_err();
    assert!(matches!(&error, SourceError::Download { .. }), "{error}");
    assert!(error.to_string().contains("--mirror"), "{error}");
}

/// What a test server does with the file it is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Manner {
    /// Sends it, from the byte that was asked for.
    Honest,
    /// As honest, but only after a while.
    Hesitates,
    /// As honest, but closes the connection after so many bytes.
    CutAfter(usize),
    /// Always sends the whole file, whatever was asked for.
    NoRanges,
    /// Sends one byte more, without announcing a length.
    TooLong,
    /// Sends another file of the same size.
    Altered,
    /// Redirects to a host of its own liking, or to another path here.
    Redirect(&'static str),
    /// Announces another length than it sends: this one.
    Announces(usize),
    /// Sends a byte every 20 milliseconds, for ever.
    Drips,
    /// Says that the body is packed, and sends 64 MiB of zeros packed to 64 KiB.
    Bomb,
    /// Sends a head of a gigabyte, or as much of it as is taken.
    EndlessHead,
}

/// A server of a mirror folder on a port of its own, which answers as many requests as it is told to
/// and gives back what it was asked for: path and first byte.
pub fn serve(folder: &Path, manners: Vec<Manner>) -> (String, std::thread::JoinHandle<Vec<(String, usize)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let folder = folder.to_path_buf();
    let handle = std::thread::spawn(move || {
        let answer_one = |manner| answer(&folder, listener.accept().unwrap().0, manner);
        manners.into_iter().map_while(answer_one).collect()
    });
    (address, handle)
}

fn answer(folder: &Path, mut stream: TcpStream, manner: Manner) -> Option<(String, usize)> {
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
    if path.is_empty() {
        return None;
    }
    if manner == Manner::Drips {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        return Some((path, from));
    }
    if manner == Manner::EndlessHead {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        let line = format!("X-A: {}\r\n", "a".repeat(1 << 16));
        let _ = (0..1 << 14).try_for_each(|_| stream.write_all(line.as_bytes()));
        return Some((path, from));
    }
    let (head, body) = response(folder, &path, from, manner);
    // The client may close first when it has seen enough.
    let _ = stream.write_all(format!("HTTP/1.1 {head}Connection: close\r\n\r\n").as_bytes());
    let _ = stream.write_all(&body);
    Some((path, from))
}

fn response(folder: &Path, path: &str, from: usize, manner: Manner) -> (String, Vec<u8>) {
    let Ok(mut content) = std::fs::read(folder.join(decoded(&path[1..]))) else {
        return ("404 Not Found\r\nContent-Length: 0\r\n".into(), vec![]);
    };
    let whole = format!("200 OK\r\nContent-Length: {}\r\n", content.len());
    match manner {
        Manner::Redirect(to) => (format!("302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n"), vec![]),
        Manner::NoRanges => (whole, content),
        Manner::TooLong => {
            content.push(b'x');
            ("200 OK\r\n".into(), content)
        }
        Manner::Altered => {
            content[0] ^= 1;
            (whole, content)
        }
        Manner::Announces(length) => (format!("200 OK\r\nContent-Length: {length}\r\n"), content),
        Manner::Bomb => {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            packer.write_all(&vec![0; 64 << 20]).unwrap();
            let body = packer.finish().unwrap();
            (format!("200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n", body.len()), body)
        }
        Manner::Hesitates => {
            std::thread::sleep(Duration::from_millis(300));
            response(folder, path, from, Manner::Honest)
        }
        Manner::Drips | Manner::EndlessHead => unreachable!("answered by themselves"),
        Manner::CutAfter(bytes) => {
            let (head, body) = response(folder, path, from, Manner::Honest);
            (head, body[..bytes].to_vec())
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
