//! The lines of a transcript since a time, as events of a stream.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use axum::body::Bytes;
use ennead_runtime::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::hosting::blocking;

/// Bytes of a line at most; a longer one is a gap.
const MAX_LINE: u64 = 4 * 1024 * 1024;

/// Bytes of lines that are written at once at most, but for a single longer one.
const BATCH: usize = 256 * 1024;

/// Reads the lines of a transcript since a time, a batch after the other.
#[derive(Debug)]
pub(crate) struct Replay {
    path: PathBuf,
    from: Timestamp,
    /// Where the next batch begins; `None`: that is still to be looked for.
    offset: Option<u64>,
    last_at: Timestamp,
}

/// When a line was written: records of the harness have `at`, those of the conversation `timestamp`.
#[derive(Deserialize)]
struct Times<'a> {
    at: Option<u64>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
}

impl Replay {
    pub(crate) fn new(path: PathBuf, from: Timestamp) -> Self {
        Self { path, from, offset: None, last_at: from }
    }

    /// Returns the time of the last line so far.
    pub(crate) fn last_at(&self) -> Timestamp {
        self.last_at
    }

    /// Returns the next batch; `None` at the end of the file, as long as it is now.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let (path, from, offset) = (self.path.clone(), self.from, self.offset);
        let mut last_at = self.last_at;
        let read = move || {
            let offset = match offset {
                Some(offset) => offset,
                None => first_since(&path, from)?,
            };
            batch(&path, from, offset, &mut last_at).map(|(text, end)| (text, end, last_at))
        };
        match blocking(read).await.ok()? {
            Ok((text, end, last_at)) => {
                (self.offset, self.last_at) = (Some(end), last_at);
                (!text.is_empty()).then(|| text.into())
            }
            // A session without a run has no transcript.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::error!(%error, "a transcript cannot be read");
                None
            }
        }
    }
}

/// A batch of lines from an offset on, and where it ends.
fn batch(
    path: &Path,
    from: Timestamp,
    offset: u64,
    last_at: &mut Timestamp,
) -> io::Result<(String, u64)> {
    let mut file = BufReader::with_capacity(64 * 1024, File::open(path)?);
    file.seek(SeekFrom::Start(offset))?;
    let (mut text, mut end) = (String::new(), offset);
    while text.len() < BATCH {
        let mut line = Vec::new();
        let n = file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? as u64;
        match line.last() {
            Some(b'\n') => end += n,
            // The writer is at it; or it is too long.
            _ if n < MAX_LINE => break,
            _ => {
                end += n + file.skip_until(b'\n')? as u64;
                text.push_str("data: {\"type\":\"gap\",\"missed\":1}\n\n");
                continue;
            }
        }
        let Some(at) = time_of(&line) else { continue };
        *last_at = at.max(*last_at);
        let line = String::from_utf8_lossy(line.trim_ascii());
        if from <= at {
            let at = at.0;
            text.push_str(&format!(
                "id: 0-{at}\ndata: {{\"type\":\"recorded\",\"at\":{at},\"line\":{line}}}\n\n"
            ));
        }
    }
    Ok((text, end))
}

/// Where a line begins that is not after the first one of this time. Lines are in the order of their
/// times, so half of what is left is passed over with each look.
fn first_since(path: &Path, from: Timestamp) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let (mut low, mut high) = (0, file.metadata()?.len());
    while 64 * 1024 < high - low {
        let middle = low + (high - low) / 2;
        file.seek(SeekFrom::Start(middle))?;
        let mut reader = BufReader::new((&file).take(MAX_LINE));
        let skipped = reader.skip_until(b'\n')? as u64;
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line)?;
        match time_of(&line) {
            Some(at) if at < from && middle + skipped < high => low = middle + skipped,
            _ => high = middle,
        }
    }
    Ok(low)
}

fn time_of(line: &[u8]) -> Option<Timestamp> {
    let times: Times<'_> = serde_json::from_slice(line.trim_ascii()).ok()?;
    match (times.at, times.timestamp) {
        (Some(at), _) => Some(Timestamp(at)),
        (None, Some(text)) => Timestamp::parse(text.get().trim_matches('"')),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(n: u64) -> String {
        let line = |at: u64| {
            format!("{{\"type\":\"ennead\",\"at\":{at},\"x\":\"{}\"}}\n", "y".repeat(100))
        };
        (0..n).map(line).collect()
    }

    // REQ: INP-3
    #[tokio::test]
    async fn lines_since_a_time_are_found_in_a_long_transcript_and_none_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        std::fs::write(&path, lines(20_000) + "{\"at\":99999,\"torn").unwrap();
        for from in [0, 1, 7_000, 19_999, 20_000] {
            let mut replay = Replay::new(path.clone(), Timestamp(from));
            let mut text = String::new();
            while let Some(batch) = replay.next().await {
                text.push_str(std::str::from_utf8(&batch).unwrap());
            }
            let first = text.lines().next().map(str::to_owned);
            assert_eq!(first, (from < 20_000).then(|| format!("id: 0-{from}")));
            assert_eq!(text.matches("id: ").count() as u64, 20_000 - from);
        }
        let at = first_since(&path, Timestamp(19_000)).unwrap();
        assert!(2_000_000 < at, "most of the file is not read: {at}");
    }
}
