//! One file over HTTPS: into `NAME.partial`, continued where an earlier attempt ended, and moved to its
//! place when size and sha256 are right.

use super::partial::Partial;
use super::store::{CACHE, check_file};
use super::{File, SourceError};
use crate::error::FileError;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use ureq::http::{Response, StatusCode, Uri, header};

/// Times a download is continued after the connection was lost.
const ATTEMPTS: u32 = 3;
/// Pause before the second of them; before the third it is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes that make an attempt one that brought something.
const PROGRESS: u64 = 1 << 20;
/// Redirects followed on the same host.
const REDIRECTS: u32 = 3;

/// Downloads `file` from `address` to `path` and gives its content.
///
/// # Errors
/// As [`download_to`].
pub fn download(agent: &ureq::Agent, address: &str, file: &File, path: &Path) -> Result<Vec<u8>, SourceError> {
    download_to(agent, address, file, path)?;
    Ok(std::fs::read(path).map_err(FileError::at("read", path))?)
}

/// Downloads `file` from `address` to `path`, holding no more than a piece of it; nothing but its `.partial` is
/// ever seen half written. When another program downloads the same file, this one waits for it and takes what it
/// brought, or goes on where it gave up.
///
/// # Errors
/// [`SourceError::Download`] when the server refuses, sends to another host or the connection is lost
/// (what came is kept and continued next time), [`SourceError::WrongSize`] or [`SourceError::WrongHash`]
/// when another file came (it is deleted), [`SourceError::File`] when writing fails.
pub fn download_to(agent: &ureq::Agent, address: &str, file: &File, path: &Path) -> Result<(), SourceError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(FileError::at("create the directory", directory))?;
    let Some(partial) = Partial::hold(path)? else {
        return check_file(path, file, &path.display().to_string(), CACHE);
    };
    let is_continued = partial.size() > 0;
    let mut result = bring(agent, address, file, &partial);
    // What an earlier run left may have been of another file; the server deserves a fresh start.
    if is_continued && matches!(&result, Err(SourceError::WrongHash { .. })) {
        result = bring(agent, address, file, &partial);
    }
    if result.is_err() {
        partial.remove_if_empty();
        return result;
    }
    Ok(partial.finish(path)?)
}

/// Brings all of the file into `partial`, in several attempts if need be; another file is not kept.
fn bring(agent: &ureq::Agent, address: &str, file: &File, partial: &Partial) -> Result<(), SourceError> {
    let (mut attempt, mut before) = (1, partial.size());
    while let Err(error) = fetch(agent, address, file, partial) {
        if attempt == ATTEMPTS || !matches!(error, Failure::Lost(_)) {
            return Err(error.into_source_error(address, file, partial)?);
        }
        std::thread::sleep(PAUSE * attempt);
        // Only attempts that bring nothing count: a slow line may need many.
        let now = partial.size();
        attempt = if now > before + PROGRESS { 1 } else { attempt + 1 };
        before = now;
    }
    let advice = "the origin serves another file than the manifest means";
    let checked = check_file(partial.path(), file, address, advice);
    if checked.is_err() {
        partial.clear()?;
    }
    checked
}

/// Most bytes of a list of files.
const LISTING: u64 = 16 << 20;

/// The content of a small document at `address`, whose size nobody states beforehand.
///
/// # Errors
/// [`SourceError::Download`].
pub fn listing(agent: &ureq::Agent, address: &str) -> Result<Vec<u8>, SourceError> {
    let failed = |message: String| SourceError::Download { address: address.to_owned(), message };
    let mut response = request(agent, address, 0).map_err(|failure| match failure {
        Failure::Lost(message) | Failure::Refused(message) => failed(message),
        Failure::TooLarge(_) | Failure::Write(_) => failed("the server answered out of turn".to_owned()),
    })?;
    if response.headers().get(header::LINK).is_some_and(|link| link.to_str().is_ok_and(|l| l.contains("next"))) {
        return Err(failed("the folder has more files than one list holds; list them in the manifest".to_owned()));
    }
    let body = response.body_mut().with_config().limit(LISTING);
    body.read_to_vec().map_err(|e| failed(e.to_string()))
}

/// Why one attempt ended early.
enum Failure {
    /// The connection: worth another attempt.
    Lost(String),
    /// The server's answer: final.
    Refused(String),
    /// More bytes than the manifest says.
    TooLarge(u64),
    Write(FileError),
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::Write(error)
    }
}

impl Failure {
    /// What is said of it; bytes of another file are not kept.
    fn into_source_error(self, address: &str, file: &File, partial: &Partial) -> Result<SourceError, FileError> {
        Ok(match self {
            Failure::Lost(message) | Failure::Refused(message) => {
                SourceError::Download { address: address.to_owned(), message }
            }
            Failure::TooLarge(found) => {
                partial.clear()?;
                let advice = "the origin serves another file than the manifest means";
                SourceError::WrongSize { place: address.to_owned(), found, expected: file.bytes, advice }
            }
            Failure::Write(error) => error.into(),
        })
    }
}

/// Brings `partial` to the size of the file, from where it ends.
fn fetch(agent: &ureq::Agent, address: &str, file: &File, partial: &Partial) -> Result<(), Failure> {
    if partial.size() > file.bytes {
        partial.clear()?;
    }
    let mut have = partial.size();
    if have == file.bytes && have > 0 {
        return Ok(());
    }
    let mut response = request(agent, address, have)?;
    if have > 0 && !continues_at(&response, have) {
        partial.clear()?; // The server sends the whole file again.
        have = 0;
    }
    let announced = response.body().content_length().unwrap_or(0);
    if have + announced > file.bytes {
        return Err(Failure::TooLarge(have + announced));
    }
    let mut output = partial.end()?;
    let result = copy(&mut response.body_mut().as_reader(), &mut output, have, file.bytes, partial.path());
    partial.sync()?;
    result
}

/// Copies what the server sends, and stops at the first byte too many.
fn copy(input: &mut dyn Read, output: &mut dyn Write, have: u64, size: u64, partial: &Path) -> Result<(), Failure> {
    let mut have = have;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = input.read(&mut buffer).map_err(|e| lost(have, size, &format!(": {e}")))?;
        if read == 0 {
            break;
        }
        have += read as u64;
        if have > size {
            return Err(Failure::TooLarge(have));
        }
        output.write_all(&buffer[..read]).map_err(|e| Failure::Write(FileError::at("write", partial)(e)))?;
    }
    if have < size { Err(lost(have, size, "")) } else { Ok(()) }
}

fn lost(have: u64, size: u64, reason: &str) -> Failure {
    Failure::Lost(format!("the connection ended after {have} of {size} bytes{reason}"))
}

/// Asks for the file from byte `from` on, following redirects that stay on the host.
fn request(agent: &ureq::Agent, address: &str, from: u64) -> Result<Response<ureq::Body>, Failure> {
    let mut target: Uri = address.parse().map_err(|e| Failure::Refused(format!("not an address: {e}")))?;
    for _ in 0..=REDIRECTS {
        let mut request = agent.get(&target);
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        let response = request.call().map_err(|e| Failure::Lost(e.to_string()))?;
        let status = response.status();
        if status == StatusCode::RANGE_NOT_SATISFIABLE && from > 0 {
            return self::request(agent, address, 0);
        }
        if !status.is_redirection() {
            return answer(response);
        }
        target = redirected(&target, &response)?;
    }
    Err(Failure::Refused(format!("more than {REDIRECTS} redirects")))
}

fn answer(response: Response<ureq::Body>) -> Result<Response<ureq::Body>, Failure> {
    match response.status() {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(response),
        status if status.is_server_error() || is_busy(status) => {
            Err(Failure::Lost(format!("the server answered {status}")))
        }
        status => Err(Failure::Refused(format!("the server answered {status}"))),
    }
}

/// Whether the server would rather be asked later.
fn is_busy(status: StatusCode) -> bool {
    [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status)
}

/// Where a redirect leads; another host or scheme is refused, whatever it holds.
fn redirected(from: &Uri, response: &Response<ureq::Body>) -> Result<Uri, Failure> {
    let location = response.headers().get(header::LOCATION).and_then(|l| l.to_str().ok()).unwrap_or_default();
    let refused = || Failure::Refused(format!("the server sends elsewhere, to `{location}`, which is not followed"));
    let to: Uri = location.parse().map_err(|_| refused())?;
    if to.host().is_some_and(|host| serves_files_of(from, host)) && to.scheme_str() == Some("https") {
        return Ok(to);
    }
    if to.authority().is_some() && (to.authority() != from.authority() || to.scheme() != from.scheme()) {
        return Err(refused());
    }
    let path = to.path_and_query().filter(|p| p.as_str().starts_with('/')).ok_or_else(refused)?;
    let mut parts = from.clone().into_parts();
    parts.path_and_query = Some(path.clone());
    Uri::from_parts(parts).map_err(|_| refused())
}

/// Whether `host` belongs to the publisher at `from`, who keeps large files elsewhere. What it holds is checked as
/// any other file.
fn serves_files_of(from: &Uri, host: &str) -> bool {
    let own = |host: &str| host == "huggingface.co" || host.ends_with(".huggingface.co") || host.ends_with(".hf.co");
    from.scheme_str() == Some("https") && from.host().is_some_and(own) && own(host)
}

/// Whether the body goes on where the file ends that is already here.
fn continues_at(response: &Response<ureq::Body>, have: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|r| r.to_str().ok()).unwrap_or_default();
    response.status() == StatusCode::PARTIAL_CONTENT && range.starts_with(&format!("bytes {have}-"))
}

/// Time for the body of one answer. A server that drips is cut off then; what came is kept.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The client for addresses that start like `address`; it keeps connections open between files and waits
/// as long as `patience` for a body.
pub fn agent(address: &str, patience: Duration) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .https_only(address.starts_with("https:"))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        // A packed body could not be continued by byte ranges.
        .accept_encoding("identity")
        .user_agent(concat!("shikha/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(Duration::from_secs(30)))
        .timeout_recv_body(Some(patience));
    if address.starts_with("http://127.0.0.1") {
        config = config.proxy(None); // No proxy reaches a server on this machine.
    }
    ureq::Agent::new_with_config(config.build())
}

/// A path as it stands in an address: every byte but letters, digits and `-._~/` as `%XX`.
pub fn percent_encoded(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'/');
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bangla_folders_are_encoded() {
        assert_eq!(percent_encoded("a-b/২/x y.html"), "a-b/%E0%A7%A8/x%20y.html");
        assert_eq!(percent_encoded("a%b@1?c#d"), "a%25b%401%3Fc%23d");
    }

    #[test]
    fn only_a_publisher_s_own_hosts_serve_its_files() {
        let from = |address: &'static str| Uri::from_static(address);
        let hub = from("https://huggingface.co/datasets/a/b");
        assert!(serves_files_of(&hub, "cas-bridge.xethub.hf.co") && serves_files_of(&hub, "cdn-lfs.huggingface.co"));
        assert!(!serves_files_of(&hub, "hf.co.example") && !serves_files_of(&hub, "nothf.co"));
        assert!(!serves_files_of(&from("https://raw.githubusercontent.com/a"), "cdn-lfs.hf.co"));
        assert!(!serves_files_of(&from("http://huggingface.co/a"), "cdn-lfs.hf.co"));
    }
}
