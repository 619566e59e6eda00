//! How fast text becomes tokens while a GPU trains, from the stored measurement of `benches/stream.rs`.

use super::Table;
use serde::{Deserialize, Serialize};

/// What the streaming benchmark measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streaming {
    /// What the text is.
    pub text: String,
    /// Bytes of UTF-8 text in each of two Parquet files.
    pub file_bytes: u64,
    /// Bytes of text in a slice.
    pub slice: u64,
    /// The processor, where the system tells.
    pub processor: Option<String>,
    /// Each part of the way, and the whole.
    pub parts: Vec<Part>,
}

/// One part of the way from Parquet to tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What was done.
    pub part: String,
    /// Threads that did it.
    pub threads: usize,
    /// Bytes of UTF-8 text.
    pub bytes: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// The largest resident set meanwhile, in bytes, of which so much was there before; absent where the system does
    /// not tell, and where memory was taken already or all of the text is held.
    pub memory: Option<[u64; 2]>,
}

impl Part {
    /// Megabytes of text a second.
    pub fn speed(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }
}

/// One row a part: threads, MB of text a second, seconds of a GB, and the memory that streaming takes.
pub fn table(measured: &Streaming) -> Table {
    let header = ["part", "threads", "MB of text", "MB/s", "seconds a GB", "peak memory, MB", "of it streaming, MB"];
    let mut table = Table::new("stream", &header);
    for part in &measured.parts {
        let memory = part.memory.map(|[peak, before]| [peak, peak.saturating_sub(before)]);
        let megabytes = |i: usize| memory.map_or(String::new(), |m| format!("{:.0}", m[i] as f64 / 1e6));
        table.push(vec![
            part.part.clone(),
            part.threads.to_string(),
            format!("{:.0}", part.bytes as f64 / 1e6),
            format!("{:.0}", part.speed()),
            format!("{:.1}", 1e3 / part.speed()),
            megabytes(0),
            megabytes(1),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_speed_and_its_memory() {
        let part = |seconds, memory| Part { part: "all".to_owned(), threads: 2, bytes: 200_000_000, seconds, memory };
        let parts = vec![part(2.0, Some([150_000_000, 30_000_000])), part(0.5, None)];
        let rows = table(&Streaming { parts, ..Streaming::default() }).to_csv().unwrap();
        let lines: Vec<&str> = rows.lines().skip(1).collect();
        assert_eq!(lines, ["all,2,200,100,10.0,150,120", "all,2,200,400,2.5,\"\",\"\""]);
    }
}
