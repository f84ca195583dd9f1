//! A page in one file that shows a transcript of the past, offline.
//!
//! It is the live page with its scripts and its style inside, and with the lines of the transcript as
//! data. A browser runs nothing of the data: it lies in an element of the type JSON in which every `<` is
//! escaped, so no text of it ends that element, and the policy of the page names the digests of the only
//! script and the only style that may be used.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use ennead::internal::{PAGE_INDEX, PAGE_SCRIPTS, PAGE_STYLE};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Bytes of lines that the page holds at most, over all transcripts in it.
pub const MAX_BYTES: usize = 24 * 1024 * 1024;

/// Bytes of one text in a line that is longer than this; the page shows no more of it than a beginning.
const MAX_TEXT: usize = 64 * 1024;

/// A line that is longer is read to make its texts shorter.
const LONG_LINE: usize = 128 * 1024;

/// A transcript that the page shows.
#[derive(Debug)]
pub struct PageTranscript {
    /// What names it among the others.
    pub name: String,
    /// The id of the sub-agent whose it is; `None` for the session itself.
    pub agent: Option<String>,
    /// A few words for people about the sub-agent.
    pub description: String,
    /// The end of the file, from the beginning of a line; all of it, unless it is longer than the page.
    pub bytes: Vec<u8>,
    /// Bytes of the file before those.
    pub left_out: u64,
}

/// Reads a transcript and those of the sub-agents next to it.
///
/// # Errors
///
/// When the transcript cannot be read. A sub-agent's that cannot be read is left out, as is what is no
/// regular file.
pub fn read(file: &Path) -> io::Result<Vec<PageTranscript>> {
    let name = |it: &Path| it.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (bytes, left_out) = end_of(file, MAX_BYTES)?;
    let mut room = MAX_BYTES.saturating_sub(bytes.len());
    let main = PageTranscript {
        name: name(file),
        agent: None,
        description: String::new(),
        bytes,
        left_out,
    };
    let mut all = vec![main];
    let beside = fs::read_dir(file.with_extension("").join("subagents"));
    let mut sidechains: Vec<PathBuf> =
        beside.into_iter().flatten().filter_map(|it| Some(it.ok()?.path())).collect();
    // What a link leads to may be anybody's, and the page is shown around.
    sidechains.retain(|it| {
        it.extension().is_some_and(|it| it == "jsonl")
            && fs::symlink_metadata(it).is_ok_and(|it| it.is_file())
    });
    sidechains.sort();
    for path in sidechains {
        let Ok((bytes, left_out)) = end_of(&path, room) else { continue };
        room -= bytes.len();
        let meta = end_of(&path.with_extension("meta.json"), LONG_LINE).unwrap_or_default().0;
        let meta: Value = serde_json::from_slice(&meta).unwrap_or_default();
        let description = meta["description"].as_str().unwrap_or_default().to_owned();
        let (name, agent) = (name(&path), name(&path).trim_start_matches("agent-").to_owned());
        all.push(PageTranscript { name, agent: Some(agent), description, bytes, left_out });
    }
    Ok(all)
}

/// The end of a file, at most `max` bytes and from the beginning of a line, and how many bytes are before.
fn end_of(path: &Path, max: usize) -> io::Result<(Vec<u8>, u64)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut file = File::open(path)?;
    let max = max as u64;
    let before = file.metadata()?.len().saturating_sub(max);
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    if before == 0 {
        return Ok((bytes, 0));
    }
    let begin = bytes.iter().position(|it| *it == b'\n').map_or(bytes.len(), |it| it + 1);
    bytes.drain(..begin);
    Ok((bytes, before + begin as u64))
}

/// Returns the page for these transcripts, the one of the session first.
///
/// Of what does not fit into [`MAX_BYTES`] the oldest lines are left out, and the page says how many bytes
/// they were.
pub fn page(transcripts: &[PageTranscript]) -> String {
    let mut room = MAX_BYTES;
    let transcripts: Vec<Value> = transcripts
        .iter()
        .map(|it| {
            let (lines, left_out) = newest(&it.bytes, &mut room);
            json!({
                "name": it.name,
                "agent": it.agent,
                "description": it.description,
                "left_out": left_out as u64 + it.left_out,
                "lines": lines,
            })
        })
        .collect();
    let data = json!({ "v": 1, "transcripts": transcripts }).to_string();
    assemble(&escaped(&data))
}

/// The newest lines that fit into what is left of the room, in their order, and the bytes of the others.
fn newest(bytes: &[u8], room: &mut usize) -> (Vec<String>, usize) {
    let (mut lines, mut left_out, mut is_full) = (Vec::new(), 0, false);
    for line in bytes.rsplit(|it| *it == b'\n').filter(|it| !it.trim_ascii().is_empty()) {
        let text = if is_full { None } else { shortened(line) };
        match text {
            Some(text) if text.len() <= *room => {
                *room -= text.len();
                lines.push(text);
            }
            text => {
                is_full |= text.is_some();
                left_out += line.len();
            }
        }
    }
    lines.reverse();
    (lines, left_out)
}

/// A line with texts of bounded length. `None` for a long line that cannot be read.
fn shortened(line: &[u8]) -> Option<String> {
    if line.len() <= LONG_LINE {
        return Some(String::from_utf8_lossy(line).into_owned());
    }
    let mut value: Value = serde_json::from_slice(line).ok()?;
    shorten(&mut value);
    Some(value.to_string())
}

/// Shortens every text. The depth is that of the reader of JSON, which refuses more than 128 levels.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if MAX_TEXT < text.len() => {
            let n_cut = text.len() - text.floor_char_boundary(MAX_TEXT);
            text.truncate(text.len() - n_cut);
            let _always = write!(text, "… ({n_cut} more bytes are in the transcript)");
        }
        Value::Array(all) => all.iter_mut().for_each(shorten),
        Value::Object(all) => all.values_mut().for_each(shorten),
        _ => {}
    }
}

/// JSON that no reader of HTML takes for markup, and no reader of scripts for the end of a line.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 16);
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _always = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text
}

fn assemble(data: &str) -> String {
    let script: String = PAGE_SCRIPTS.iter().map(|it| format!("// {}\n{}", it.0, it.1)).collect();
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        digest(&script),
        digest(PAGE_STYLE),
    );
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<style>{PAGE_STYLE}</style>\n"
    );
    let before = PAGE_INDEX.split_once("<!-- files -->").map_or("", |it| it.0);
    let after = PAGE_INDEX.split_once("<!-- /files -->").map_or("", |it| it.1);
    let (body, end) = after.split_once("</body>").unwrap_or((after, ""));
    [
        before,
        &head,
        body,
        "<script type=\"application/json\" id=\"recorded\">",
        data,
        "</script>\n<script>",
        &script,
        "</script>\n</body>",
        end,
    ]
    .concat()
}

/// The source expression of a policy that lets exactly this text be used.
fn digest(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests;
