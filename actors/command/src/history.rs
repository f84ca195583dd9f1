//! The prompts that people typed, of all directories: `history.jsonl` in the user's configuration directory.
//!
//! One JSON object per line, with the fields that other tools know: `display`, `pastedContents`, `timestamp` in
//! milliseconds, `project` and `sessionId`. Several processes append to it, other programs too, so no line is ever taken
//! out: a file that is full is put aside as a whole, in place of the one that was put aside before.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Name of the file.
pub const FILE: &str = "history.jsonl";

/// Name of the file that was full.
const FULL: &str = "history.full.jsonl";

/// Bytes of a file from which on it is put aside.
const MAX_FILE: u64 = 8 << 20;

/// Bytes of a prompt that are kept.
const MAX_PROMPT: usize = 64 << 10;

/// A prompt that somebody typed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypedPrompt {
    /// The prompt; its beginning, if it is longer than 64 KiB.
    pub display: String,
    #[serde(default, rename = "pastedContents")]
    pasted: Map<String, Value>,
    /// When it was recorded, in milliseconds since 1970.
    #[serde(default)]
    pub timestamp: u64,
    /// The directory it was about.
    #[serde(default)]
    pub project: String,
    /// The session that it was typed to.
    #[serde(default, rename = "sessionId")]
    pub session: String,
}

impl TypedPrompt {
    /// Makes the record of a prompt, whose secrets have been taken out.
    pub fn new(text: &str, timestamp: u64, project: &str, session: &str) -> Self {
        let display = text[..text.floor_char_boundary(MAX_PROMPT)].to_owned();
        let (project, session) = (project.to_owned(), session.to_owned());
        Self { display, pasted: Map::new(), timestamp, project, session }
    }
}

/// Appends a prompt to the history of this directory, which is made if it is not there. Only its owner can read the file.
///
/// # Errors
///
/// Those of the file.
pub fn append(directory: &Path, prompt: &TypedPrompt) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let path = directory.join(FILE);
    let mut file = locked(&path)?;
    if MAX_FILE < file.metadata()?.len() {
        fs::rename(&path, directory.join(FULL))?;
        file = locked(&path)?;
    }
    let mut line = Vec::new();
    // After a line that another process could not write whole.
    if !ends_a_line(&mut file)? {
        line.push(b'\n');
    }
    serde_json::to_writer(&mut line, prompt)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Returns the newest prompts, at most this number, the oldest of them first; of one project, if it is named. Lines that
/// cannot be read are passed over.
///
/// # Errors
///
/// Those of the file; a file that is not there holds no prompts.
pub fn newest(directory: &Path, n: usize, project: Option<&str>) -> io::Result<Vec<TypedPrompt>> {
    let mut newest = Vec::new();
    for name in [FILE, FULL] {
        let mut file = match File::open(directory.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let bytes = tail(&mut file, 2 * MAX_FILE)?;
        let prompts = bytes.rsplit(|it| *it == b'\n').filter_map(|line| {
            let prompt: TypedPrompt = serde_json::from_slice(line).ok()?;
            project.is_none_or(|it| prompt.project == it).then_some(prompt)
        });
        newest.extend(prompts.take(n - newest.len()));
    }
    newest.reverse();
    Ok(newest)
}

/// Opens the file to append to it, and keeps other processes from doing so until it is dropped.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a plain file"));
        }
        file.lock()?;
        // Another process may have put it aside meanwhile.
        let is_still_there = fs::metadata(path).is_ok_and(|it| {
            file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (it.dev(), it.ino()))
        });
        if is_still_there {
            return Ok(file);
        }
    }
}

fn ends_a_line(file: &mut File) -> io::Result<bool> {
    let last = tail(file, 1)?;
    Ok(last.first().is_none_or(|it| *it == b'\n'))
}

fn tail(file: &mut File, n_bytes: u64) -> io::Result<Vec<u8>> {
    let start = file.metadata()?.len().saturating_sub(n_bytes);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    (&*file).take(n_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn prompt(text: &str, project: &str) -> TypedPrompt {
        TypedPrompt::new(text, 7, project, "s")
    }

    fn texts(directory: &Path, n: usize, project: Option<&str>) -> Vec<String> {
        let found = newest(directory, n, project).unwrap();
        found.into_iter().map(|it| it.display).collect()
    }

    // REQ: SES-6
    #[test]
    fn prompts_of_all_projects_are_kept_in_the_order_in_which_they_came() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("new/.claude");
        assert_eq!(texts(&directory, 9, None), [""; 0]);
        for (text, project) in [("one", "/a"), ("two\nlines", "/b"), ("three", "/a")] {
            append(&directory, &prompt(text, project)).unwrap();
        }
        assert_eq!(texts(&directory, 9, None), ["one", "two\nlines", "three"]);
        assert_eq!(texts(&directory, 2, None), ["two\nlines", "three"]);
        assert_eq!(texts(&directory, 9, Some("/a")), ["one", "three"]);
        let text = fs::read_to_string(directory.join(FILE)).unwrap();
        let expected =
            r#"{"display":"one","pastedContents":{},"timestamp":7,"project":"/a","sessionId":"s"}"#;
        assert_eq!(text.lines().next(), Some(expected));
        let mode = fs::metadata(directory.join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    // REQ: SES-6
    #[test]
    fn torn_and_foreign_lines_lose_no_other() {
        let place = tempfile::tempdir().unwrap();
        let foreign =
            "{\"display\":\"theirs\",\"project\":\"/a\",\"new\":1}\n\u{0}[]\n{\"display\":\"to";
        fs::write(place.path().join(FILE), foreign).unwrap();
        append(place.path(), &prompt("ours", "/a")).unwrap();
        assert_eq!(texts(place.path(), 9, None), ["theirs", "ours"]);
    }

    // REQ: SES-6
    #[test]
    fn full_file_is_put_aside_whole_and_a_long_prompt_keeps_its_beginning() {
        let place = tempfile::tempdir().unwrap();
        let long = "ä".repeat(MAX_PROMPT);
        let n_lines = usize::try_from(MAX_FILE).unwrap() / MAX_PROMPT + 1;
        for n in 0..n_lines {
            append(place.path(), &prompt(&format!("{n} {long}"), "/a")).unwrap();
        }
        append(place.path(), &prompt("last", "/a")).unwrap();
        let kept = texts(place.path(), n_lines + 1, None);
        assert_eq!((kept.len(), kept.last().map(String::as_str)), (n_lines + 1, Some("last")));
        assert!(kept.iter().all(|it| it.len() <= MAX_PROMPT));
        let size = fs::metadata(place.path().join(FILE)).unwrap().len();
        assert!(size < 3 * u64::try_from(MAX_PROMPT).unwrap(), "{size}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
        assert_eq!(texts(place.path(), 2, None).len(), 2);
    }

    // REQ: SES-6
    #[test]
    fn processes_that_append_at_once_lose_no_line() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let place = place.path();
                scope.spawn(move || {
                    for n in 0..50 {
                        append(place, &prompt(&format!("{thread} {n}"), "/a")).unwrap();
                    }
                });
            }
        });
        assert_eq!(texts(place.path(), 999, None).len(), 200);
    }
}
