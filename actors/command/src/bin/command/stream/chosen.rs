//! Which session it is: a new one, an earlier one, a part of it, or a copy of it.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ennead::{SessionId, SessionOptions, internal::Layout};
use ennead_command::stream_json::{fork, going_back, titles};
use ennead_runtime::entropy::EntropyStream;

use super::{configuration, now};
use crate::args::Print;

/// Sets in the options which session it is and where its transcript lies; the reason in words when there is none such.
pub(super) fn choose_session(
    options: &mut SessionOptions,
    args: &Print,
    ids: &EntropyStream,
) -> Result<SessionId, String> {
    let root = options.transcripts.clone().unwrap_or_else(|| projects(&options.workspace));
    options.transcripts = Some(root.clone());
    let layout = Layout::new(&root);
    let file_of = |id: &str| layout.session(&SessionId::new(id)).ok().map(|it| it.file);
    let protocol = &args.protocol;
    let earlier = match &protocol.resume {
        Some(id) => match file_of(id).filter(|it| it.is_file()) {
            Some(_) => Some(id.clone()),
            None => Some(known_by(&root, id)?),
        },
        None => protocol.goes_on.then(|| newest(&root)).flatten(),
    };
    if protocol.resume_drops_turn.is_some() && protocol.resume_session_at.is_none() {
        return Err("--resume-drops-turn needs --resume-session-at".into());
    }
    if let (Some(earlier), Some(until)) = (&earlier, &protocol.resume_session_at)
        && let Some(file) = file_of(earlier)
    {
        going_back::check(&file, until, protocol.resume_drops_turn.as_deref())?;
    }
    if let Some(id) = &args.session_id
        && file_of(id).is_some_and(|it| it.exists())
    {
        return Err(format!("Session ID {id} is already in use"));
    }
    let fresh = || args.session_id.clone().unwrap_or_else(|| ids.uuid(now(), "session", 0));
    let id = match earlier {
        Some(earlier) if protocol.fork_session => {
            let id = fresh();
            let (Some(source), Some(target)) = (file_of(&earlier), file_of(&id)) else {
                return Err(format!("{id} is no session id"));
            };
            fork::fork(&source, &target, &id, protocol.resume_session_at.as_deref())?;
            id
        }
        Some(earlier) => {
            options.goes_on_from.clone_from(&protocol.resume_session_at);
            earlier
        }
        None if protocol.resume_session_at.is_some() => {
            return Err("--resume-session-at needs a session to go on with".into());
        }
        None => fresh(),
    };
    let id = SessionId::new(id);
    options.id = Some(id.clone());
    Ok(id)
}

/// The session that is known by a title.
fn known_by(root: &Path, title: &str) -> Result<String, String> {
    let mut found = titles::sessions_of(root, title);
    match (found.pop(), found.len()) {
        (Some(id), 0) => Ok(id),
        (Some(_), n) => {
            Err(format!("{} sessions have the title {title}; name one by its id", n + 1))
        }
        (None, _) => Err(format!("No conversation found with session ID: {title}")),
    }
}

/// Where SDKs look for the transcripts of a directory.
fn projects(workspace: &Path) -> PathBuf {
    let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    Layout::sdk(&configuration(), &real.to_string_lossy()).root().to_owned()
}

/// Bytes of the first line of a transcript that are looked at.
const HEAD: u64 = 64 * 1024;

/// Whether a transcript is that of a sub-agent, by its first line.
fn is_sidechain(transcript: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(transcript).and_then(|it| it.take(HEAD).read_to_end(&mut head));
    let first = String::from_utf8_lossy(head.split(|it| *it == b'\n').next().unwrap_or_default());
    let marks = [r#""isSidechain":true"#, r#""isSidechain": true"#];
    read.is_ok() && marks.iter().any(|it| first.contains(it))
}

/// The session of a directory of transcripts that was written to last.
fn newest(root: &Path) -> Option<String> {
    let entries = std::fs::read_dir(root).ok()?.flatten();
    let transcripts = entries.filter_map(|entry| {
        let path = entry.path();
        let is_transcript = path.extension().is_some_and(|it| it == "jsonl");
        let id = path.file_stem()?.to_str()?.to_owned();
        let changed = entry.metadata().ok()?.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        (is_transcript && id.len() == 36).then_some((changed, id, path))
    });
    let mut transcripts: Vec<_> = transcripts.collect();
    transcripts.sort_unstable();
    transcripts.into_iter().rev().find(|it| !is_sidechain(&it.2)).map(|it| it.1)
}
