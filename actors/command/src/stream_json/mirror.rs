//! `--session-mirror`: what is written to a session's transcripts, shown again to the program.
//!
//! The files are read again, so what is shown is what lies on the disk. While a run is under way that happens a few
//! times a second; all that a run wrote is shown before its result.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs::{self, File},
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::spawn_blocking, time::interval};

use super::pipe::Output;
use ennead_tools::locked::Locked as _;

/// Time between two looks while a run is under way.
const PAUSE: Duration = Duration::from_millis(250);

/// Lines of one frame at most; programs hand them on as many at a time.
const MAX_ENTRIES: usize = 500;

/// Bytes of the lines of one frame after which the next begins. A single longer line is shown cut, as any line is.
const MAX_BYTES: usize = 500_000;

/// Shows the transcripts of one session after another. Clones are one.
#[derive(Clone, Debug)]
pub struct Mirror {
    output: Output,
    files: Arc<Mutex<Files>>,
}

/// What was shown of each file.
#[derive(Debug, Default)]
struct Files {
    transcript: PathBuf,
    /// Bytes of each file that were shown.
    shown: BTreeMap<PathBuf, u64>,
}

impl Mirror {
    /// Shows what is written to this transcript and to those of its sub-agents from now on; with `whole` what they
    /// have by now, too. Looks at files on the thread of the caller.
    pub fn new(output: Output, transcript: &Path, whole: bool) -> Self {
        let mut files = Files { transcript: transcript.to_owned(), shown: BTreeMap::new() };
        if !whole {
            let all = files.all();
            let length = |it: &Path| fs::metadata(it).map_or(0, |it| it.len());
            files.shown = all.into_iter().map(|it| (it.clone(), length(&it))).collect();
        }
        Self { output, files: Arc::new(Mutex::new(files)) }
    }

    /// Continues with another session, if it is one, from its first line.
    pub(super) fn follow(&self, transcript: &Path) {
        let mut files = self.files.locked();
        if files.transcript != transcript {
            *files = Files { transcript: transcript.to_owned(), shown: BTreeMap::new() };
        }
    }

    /// Shows what was written since.
    pub(super) async fn show(&self) {
        let mirror = self.clone();
        // A transcript that cannot be read any more is shown no further.
        let _shown = spawn_blocking(move || {
            let mut files = mirror.files.locked();
            files.frames(&mut |frame| mirror.output.write(frame));
        })
        .await;
    }

    /// Shows what is written, a few times a second, until this is dropped.
    pub(super) async fn show_on(&self) -> Infallible {
        let mut looks = interval(PAUSE);
        loop {
            looks.tick().await;
            self.show().await;
        }
    }
}

impl Files {
    /// The transcript, then those of sub-agents, by name.
    fn all(&self) -> Vec<PathBuf> {
        let beside = self.transcript.with_extension("").join("subagents");
        let entries = fs::read_dir(beside).into_iter().flatten().flatten();
        let mut agents: Vec<PathBuf> = entries.map(|it| it.path()).collect();
        agents.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
        agents.sort();
        [self.transcript.clone()].into_iter().chain(agents).collect()
    }

    fn frames(&mut self, show: &mut impl FnMut(Value)) {
        for path in self.all() {
            let from = self.shown.get(&path).copied().unwrap_or_default();
            // One that cannot be read now is looked at again the next time.
            if let Ok(end) = frames_of(&path, from, path != self.transcript, show) {
                self.shown.insert(path, end);
            }
        }
    }
}

/// Shows the whole lines of a file after this place; returns where the last one ends.
fn frames_of(
    path: &Path,
    from: u64,
    is_agent: bool,
    show: &mut impl FnMut(Value),
) -> io::Result<u64> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() <= from {
        return Ok(from);
    }
    let (mut at, mut n_bytes, mut entries) = (file.seek(SeekFrom::Start(from))?, 0, Vec::new());
    if is_agent && from == 0 {
        entries.extend(metadata(path));
    }
    let mut send = |entries: &mut Vec<Value>| {
        if !entries.is_empty() {
            let entries = std::mem::take(entries);
            show(json!({"type": "transcript_mirror", "filePath": path, "entries": entries}));
        }
    };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    // What has no end is still being written.
    while lines.read_until(b'\n', &mut line)? != 0 && line.ends_with(b"\n") {
        at += line.len() as u64;
        if MAX_ENTRIES <= entries.len() || MAX_BYTES < n_bytes + line.len() {
            send(&mut entries);
            n_bytes = 0;
        }
        n_bytes += line.len();
        // Programs take objects alone; a damaged line stays on the disk.
        entries.extend(serde_json::from_slice::<Value>(&line).ok().filter(Value::is_object));
        line.clear();
    }
    send(&mut entries);
    Ok(at)
}

/// What is known of a sub-agent, as an entry of its transcript.
fn metadata(transcript: &Path) -> Option<Value> {
    let text = fs::read(transcript.with_extension("meta.json")).ok()?;
    let mut entry: Value = serde_json::from_slice(&text).ok().filter(Value::is_object)?;
    entry["type"] = "agent_metadata".into();
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_json::pipe::{SharedBytes, written};

    // REQ: SUR-3
    #[tokio::test]
    async fn whole_lines_are_shown_once_and_agents_with_what_is_known_of_them() {
        let place = tempfile::tempdir().unwrap();
        let transcript = place.path().join("s.jsonl");
        fs::write(&transcript, "{\"n\":1}\n").unwrap();
        let bytes = SharedBytes::default();
        let (output, unread) = Output::start(bytes.clone());
        let mirror = Mirror::new(output.clone(), &transcript, false);
        mirror.show().await;
        let agents = place.path().join("s/subagents");
        fs::create_dir_all(&agents).unwrap();
        fs::write(agents.join("agent-a.meta.json"), "{\"agentType\":\"poet\"}").unwrap();
        fs::write(agents.join("agent-a.jsonl"), "{\"n\":7}\nno json\n{\"n\":8}\n").unwrap();
        fs::write(&transcript, "{\"n\":1}\n{\"n\":2}\n{\"n\":").unwrap();
        mirror.show().await;
        fs::write(&transcript, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n").unwrap();
        mirror.show().await;
        let other = place.path().join("t.jsonl");
        let many = "{\"long\":\"0123456789\"}\n".repeat(MAX_ENTRIES + 1);
        fs::write(&other, &many).unwrap();
        mirror.follow(&other);
        mirror.show().await;
        mirror.follow(&other);
        mirror.show().await;
        output.end();
        unread.await.unwrap().unwrap();
        let frames = written(&bytes.0.lock().unwrap());
        let entries: Vec<_> = frames.iter().map(|it| &it["entries"]).collect();
        assert_eq!(*entries[0], json!([{"n": 2}]));
        let of_agent = json!([{"agentType": "poet", "type": "agent_metadata"}, {"n": 7}, {"n": 8}]);
        assert_eq!(*entries[1], of_agent);
        assert_eq!(*entries[2], json!([{"n": 3}]));
        let counts: Vec<_> = entries[3..].iter().map(|it| it.as_array().unwrap().len()).collect();
        assert_eq!(counts, [MAX_ENTRIES, 1]);
        assert_eq!(frames[1]["filePath"], agents.join("agent-a.jsonl").to_str().unwrap());
        assert!(frames.iter().all(|it| it["type"] == "transcript_mirror"), "{frames:?}");
    }
}
