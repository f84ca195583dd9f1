//! What a session is known by: the titles and tags that programs append to its transcript.
//!
//! Programs that list sessions read the last 64 KiB of a transcript and no more. What a session adds pushes
//! such lines out of reach, so the last one of each kind is appended again when the session is closed, as
//! programs append them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use serde_json::Value;

/// Bytes at the end of a transcript that programs read.
const TAIL: u64 = 64 * 1024;

/// Bytes of such a line at most; longer ones are nobody's title.
const MAX_LINE: usize = 4096;

/// What lines of each kind begin with.
const KINDS: [&str; 3] = [r#"{"type":"custom-title""#, r#"{"type":"ai-title""#, r#"{"type":"tag""#];

/// Finds the ids of the sessions of a directory that are known by this title: the last one that a program gave each, as
/// far as those that list sessions read. What cannot be read is not known by any.
pub fn sessions_of(root: &Path, title: &str) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let path = entry.path();
        let is_transcript = path.extension().is_some_and(|it| it == "jsonl");
        // What is not a plain file may never end.
        let is_file = entry.file_type().is_ok_and(|it| it.is_file());
        let id = path.file_stem()?.to_str().filter(|_| is_transcript && is_file)?.to_owned();
        (title_of(&path).ok()??.trim() == title.trim()).then_some(id)
    });
    found.collect()
}

fn title_of(transcript: &Path) -> io::Result<Option<String>> {
    let mut file = File::open(transcript)?;
    let length = file.metadata()?.len();
    for start in [length.saturating_sub(TAIL), 0] {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        (&file).take(TAIL).read_to_end(&mut bytes)?;
        let mut lines =
            bytes.rsplit(|it| *it == b'\n').filter(|it| it.starts_with(KINDS[0].as_bytes()));
        let title = lines.find_map(|line| {
            let line: Value = serde_json::from_slice(line).ok()?;
            line["customTitle"].as_str().map(str::to_owned)
        });
        if title.is_some() {
            return Ok(title);
        }
    }
    Ok(None)
}

/// Appends the last line of each kind again that lies out of reach of the end. Work is linear in the file,
/// in pieces of bounded size.
///
/// # Errors
///
/// Those of the file system; what was appended before stays.
pub fn keep(transcript: &Path) -> io::Result<()> {
    let file = File::open(transcript)?;
    let length = file.metadata()?.len();
    if length <= TAIL {
        return Ok(());
    }
    let mut found: [Option<(u64, Vec<u8>)>; 3] = Default::default();
    let mut lines = BufReader::new(&file);
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        let start = at;
        line.clear();
        let n = lines.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        if n == 0 {
            break;
        }
        at += n as u64;
        if line.last() != Some(&b'\n') {
            // The rest of a long line.
            at += skip_line(&mut lines)?;
            continue;
        }
        if let Some(kind) = KINDS.iter().position(|it| line.starts_with(it.as_bytes())) {
            found[kind] = Some((start, line.clone()));
        }
    }
    let lost = found.into_iter().flatten().filter(|(start, _)| start + TAIL / 2 < at);
    let again: Vec<u8> = lost.flat_map(|(_, line)| line).collect();
    if again.is_empty() {
        return Ok(());
    }
    let mut out = OpenOptions::new().append(true).read(true).mode(0o600).open(transcript)?;
    out.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    out.read_exact(&mut last)?;
    // A torn line must not swallow what is appended.
    let torn: &[u8] = if last == *b"\n" { b"" } else { b"\n" };
    out.write_all(&[torn, &again].concat())
}

/// Bytes up to the end of the line.
fn skip_line(lines: &mut impl BufRead) -> io::Result<u64> {
    let mut n_skipped = 0;
    loop {
        let buffer = lines.fill_buf()?;
        let end = buffer.iter().position(|it| *it == b'\n').map(|it| it + 1);
        let n = end.unwrap_or(buffer.len());
        lines.consume(n);
        n_skipped += n as u64;
        if end.is_some() || n == 0 {
            return Ok(n_skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: &str = "{\"type\":\"custom-title\",\"customTitle\":\"b\",\"sessionId\":\"s\"}\n";
    const TAG: &str = "{\"type\":\"tag\",\"tag\":\"\",\"sessionId\":\"s\"}\n";

    #[track_caller]
    fn check(before: &str, added: &str) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.jsonl");
        std::fs::write(&path, before).unwrap();
        keep(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{before}{added}"));
        keep(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{before}{added}"));
    }

    // REQ: SES-5
    #[test]
    fn last_title_and_tag_stay_within_reach_of_the_end() {
        let long = format!("{{\"type\":\"user\",\"text\":\"{}\"}}\n", "x".repeat(100_000));
        let first = TITLE.replace('b', "a");
        check(&format!("{first}{TITLE}{TAG}"), "");
        check(&format!("{first}{TITLE}{long}{TAG}"), TITLE);
        check(&format!("{first}{TITLE}{TAG}{long}"), &format!("{TITLE}{TAG}"));
        check(&long, "");
        let torn = long.trim_end();
        check(&format!("{TITLE}{torn}"), &format!("\n{TITLE}"));
    }
}
