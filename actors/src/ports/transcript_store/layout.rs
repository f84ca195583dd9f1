//! Where transcripts lie: names, and which of them are those of sub-agents.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ennead_runtime::ids::{AgentId, SessionId};

use crate::ports::transcript_store::TranscriptStore;

/// Characters of a project's name before a hash represents the rest.
const MAX_NAME: usize = 200;

/// Where one transcript and what belongs to it lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptPaths {
    /// Path of the transcript itself.
    pub file: PathBuf,
    /// The directory next to it: stored texts, tool results, sub-agents. Made when first needed.
    pub directory: PathBuf,
}

/// An id that cannot be the name of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{id}` cannot name a transcript")]
pub struct BadName {
    /// The id, as it was given.
    pub id: String,
}

/// The directory that transcripts of one project lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Lays transcripts out in `root` itself.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Lays transcripts out as Agent SDKs read them: `<config>/projects/<name of the working directory>`. `cwd` is
    /// absolute and without links.
    pub fn sdk(config: &Path, cwd: &str) -> Self {
        Self::new(config.join("projects").join(project_name(cwd)))
    }

    /// Returns the directory that transcripts are written to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the paths of a session's transcript.
    ///
    /// # Errors
    ///
    /// [`BadName`] when the id holds anything but letters, digits, `-` and `_`.
    pub fn session(&self, session: &SessionId) -> Result<TranscriptPaths, BadName> {
        let name = checked(session.as_str())?;
        Ok(TranscriptPaths {
            file: self.root.join(format!("{name}.jsonl")),
            directory: self.root.join(name),
        })
    }

    /// Returns the paths of a sub-agent's transcript; all generations are in one directory.
    ///
    /// # Errors
    ///
    /// [`BadName`] as for sessions.
    pub fn sidechain(
        &self,
        session: &SessionId,
        agent: &AgentId,
    ) -> Result<TranscriptPaths, BadName> {
        let directory = self.session(session)?.directory;
        Ok(TranscriptPaths { file: sidechain(&directory, agent)?, directory })
    }
}

impl TranscriptPaths {
    /// Returns the path of what is known about a sub-agent: `agent-<id>.meta.json`.
    pub(crate) fn meta(&self) -> PathBuf {
        self.file.with_extension("meta.json")
    }

    /// Returns the path of the lock, `<session>.lock`, which names the writer.
    pub fn lock(&self) -> PathBuf {
        self.file.with_extension("lock")
    }

    /// Returns the path of the checkpoint, which holds the end of the transcript as of the last orderly close.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.file.with_extension("checkpoint")
    }

    /// Returns the path of the vault, which holds sealed what was taken out of the transcript.
    pub(crate) fn vault(&self) -> PathBuf {
        vault_of(&self.file)
    }
}

/// Returns the path of the vault of a transcript: in the directory of the session, where no call writes, and next to the
/// transcript of a sub-agent.
pub(crate) fn vault_of(transcript: &Path) -> PathBuf {
    match transcript.parent() {
        Some(parent) if parent.ends_with("subagents") => transcript.with_extension("vault"),
        _ => transcript.with_extension("").join("vault"),
    }
}

/// Returns the path of a sub-agent's transcript in the directory next to that of its session.
///
/// # Errors
///
/// [`BadName`] as for sessions.
pub(crate) fn sidechain(directory: &Path, agent: &AgentId) -> Result<PathBuf, BadName> {
    let name = format!("agent-{}.jsonl", checked(agent.as_str())?);
    Ok(directory.join("subagents").join(name))
}

/// Lists the transcripts of sub-agents in the directory next to that of their session, by id. Where none can be listed
/// there are none.
pub(crate) fn sidechains(
    store: &dyn TranscriptStore,
    directory: &Path,
) -> BTreeMap<AgentId, PathBuf> {
    let names = store.list(&directory.join("subagents")).unwrap_or_default();
    let of = |path: PathBuf| {
        let id = path.file_name()?.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
        Some((AgentId::new(id), path))
    };
    names.into_iter().filter_map(of).collect()
}

fn checked(id: &str) -> Result<&str, BadName> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !id.is_empty() && id.bytes().all(is_plain) { Ok(id) } else { Err(BadName { id: id.into() }) }
}

/// Returns the name of a project's directory: every character but ASCII letters and digits becomes `-`; of a long one
/// the first 200 stay, and a hash of the whole path.
pub(crate) fn project_name(cwd: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // Made at each look at the notes of a directory: a byte at a time where that is a character.
    let of_bytes = |it: &str| it.bytes().map(|byte| plain(char::from(byte)) as u8).collect();
    let of_ascii = cwd.is_ascii().then(|| String::from_utf8(of_bytes(cwd)).ok()).flatten();
    let name = of_ascii.unwrap_or_else(|| cwd.chars().map(plain).collect());
    if name.len() <= MAX_NAME {
        return name;
    }
    let hash = cwd.chars().fold(0_i32, |hash, c| {
        hash.wrapping_mul(31).wrapping_add(i32::from_ne_bytes(u32::from(c).to_ne_bytes()))
    });
    format!("{}-{}", &name[..MAX_NAME], base36(hash.unsigned_abs()))
}

fn base36(mut value: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(value % 36, 36));
        value /= 36;
        if value == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SES-1
    #[test]
    fn project_is_named_after_its_path() {
        assert_eq!(project_name("/home/a/my.proj_x"), "-home-a-my-proj-x");
        let long = format!("/{}", "x".repeat(199));
        assert_eq!(project_name(&long).len(), 200);
    }

    // REQ: SES-1
    #[test]
    fn long_name_ends_with_a_hash() {
        let long = format!("/{}", "x".repeat(200));
        let name = project_name(&long);
        assert!(name.starts_with(&format!("-{}-", "x".repeat(199))), "{name}");
    }

    // REQ: SES-1
    #[test]
    fn sidechain_lies_below_its_top_session() {
        let layout = Layout::new("/r");
        let place = layout.sidechain(&"s-1".into(), &"0011".into()).unwrap();
        assert_eq!(place.file, Path::new("/r/s-1/subagents/agent-0011.jsonl"));
        assert_eq!(place.meta(), Path::new("/r/s-1/subagents/agent-0011.meta.json"));
        assert_eq!(place.directory, Path::new("/r/s-1"));
        assert_eq!(place.vault(), Path::new("/r/s-1/subagents/agent-0011.vault"));
        let top = layout.session(&"s-1".into()).unwrap();
        assert_eq!(top.vault(), Path::new("/r/s-1/vault"));
        assert!(layout.session(&"../x".into()).is_err());
    }
}
