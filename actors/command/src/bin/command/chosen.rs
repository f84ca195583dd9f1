//! Which session it is: a new one, an earlier one, a part of it, or a copy of it.

use std::{
    env,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ennead::{
    SessionId, SessionOptions,
    internal::{Layout, prepare},
    permission::Trust,
};
use ennead_command::{
    exit::{Exit, Failure},
    stream_json::{fork, going_back, titles},
};
use ennead_runtime::entropy::EntropyStream;

use crate::{
    args::{Print, Protocol},
    stream::{configuration, now},
};

/// Where transcripts of a directory may lie.
pub(crate) struct Roots {
    /// New ones lie in the first; earlier ones are looked for in each.
    all: Vec<PathBuf>,
    /// From which of them on the newest session may be gone on with, though nobody names it: what lies in the working
    /// directory may have come with it.
    n_named: usize,
}

impl Roots {
    /// Returns where SDKs look for them, unless the options name another place.
    pub(crate) fn of_sdk(options: &SessionOptions) -> Self {
        let root = options.transcripts.clone().unwrap_or_else(|| projects(&options.workspace));
        Self { all: vec![root], n_named: 0 }
    }

    /// Returns where the command has them that no SDK drives. `.transcripts` in the working directory is made if it is not there.
    ///
    /// # Errors
    ///
    /// `.transcripts` cannot be believed.
    pub(crate) fn of_command(options: &SessionOptions) -> Result<Self, Failure> {
        if options.transcripts.is_some() || env::var_os("CLAUDE_CONFIG_DIR").is_some() {
            return Ok(Self::of_sdk(options));
        }
        let own = options.workspace.join(".transcripts");
        prepare(&own).map_err(|error| Failure::of(Exit::BadInput, &error))?;
        let n_named = usize::from(options.trust != Trust::Trusted);
        Ok(Self { all: vec![own, projects(&options.workspace)], n_named })
    }

    /// Finds the session that the flags name; the reason in words when there is none such.
    fn find(&self, protocol: &Protocol) -> Result<Option<(PathBuf, String)>, String> {
        let Some(id) = &protocol.resume else {
            let looked_at = self.all[self.n_named..].iter().filter(|_| protocol.goes_on);
            let newest = looked_at.filter_map(|root| Some((newest(root)?, root)));
            let newest = newest.max_by(|(left, _), (right, _)| left.cmp(right));
            return Ok(newest.map(|((_, id), root)| (root.clone(), id)));
        };
        let is_there = |root: &&PathBuf| file_of(root, id).is_some_and(|it| it.is_file());
        if let Some(root) = self.all.iter().find(is_there) {
            return Ok(Some((root.clone(), id.clone())));
        }
        let titled = |root: &PathBuf| {
            let ids = titles::sessions_of(root, id);
            ids.into_iter().map(|it| (root.clone(), it)).collect::<Vec<_>>()
        };
        let mut found: Vec<_> = self.all.iter().flat_map(titled).collect();
        match (found.pop(), found.len()) {
            (Some(found), 0) => Ok(Some(found)),
            (Some(_), n) => {
                Err(format!("{} sessions have the title {id}; name one by its id", n + 1))
            }
            (None, _) => Err(format!("No conversation found with session ID: {id}")),
        }
    }
}

/// Sets in the options which session it is and where its transcript lies; the reason in words when there is none such.
pub(crate) fn choose_session(
    options: &mut SessionOptions,
    args: &Print,
    ids: &EntropyStream,
    roots: &Roots,
) -> Result<SessionId, String> {
    let protocol = &args.protocol;
    if protocol.fork_session && protocol.resume.is_none() && !protocol.goes_on {
        return Err("--fork-session needs a session to go on with: --resume or --continue".into());
    }
    let earlier = roots.find(protocol)?;
    let root = earlier.as_ref().map_or(&roots.all[0], |it| &it.0).clone();
    options.transcripts = Some(root.clone());
    let file_of = |id: &str| file_of(&root, id);
    let earlier = earlier.map(|it| it.1);
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
                return Err(format!("{id} is not a session id"));
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

fn file_of(root: &Path, id: &str) -> Option<PathBuf> {
    Layout::new(root).session(&SessionId::new(id)).ok().map(|it| it.file)
}

/// The session of a directory of transcripts that was written to last, and when.
fn newest(root: &Path) -> Option<(SystemTime, String)> {
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
    transcripts.into_iter().rev().find(|it| !is_sidechain(&it.2)).map(|it| (it.0, it.1))
}
