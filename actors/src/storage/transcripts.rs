//! Transcripts, for people: what happened, and whether it is in order.
//!
//! The checks are those of `runtime::transcript::audit`, and then all turns are walked again by
//! `runtime::transcript::replay`. Here is only where the files lie that a
//! check needs: the stored texts, the sidechains and the checkpoint next to the transcript.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    digest::Digest,
    ids::{AgentId, SessionId},
    run::facts::SessionFacts,
    step1_settings_resolution::merge,
    transcript::{
        audit::{self, Evidence, Verified, Violation},
        entry::{Record, RecordKind, SidechainHead, Stored},
        lines::FileLines,
        load::ends_of_runs,
        replay::{ReplayError, Replayed},
        trace,
    },
};

use crate::{
    ports::transcript_store::{FileStore, TranscriptStore},
    storage::{checkpoint, vault::replayed::VaultOpener},
};

/// A transcript that is in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// Path of the transcript.
    pub file: PathBuf,
    /// What was found in it.
    pub verified: Verified,
    /// Lines that were found equal up to redaction: the model was shown secrets that they do not have.
    pub up_to_redaction: u64,
    /// Messages and records that were compared with their secrets, which the vault has.
    pub restored: u64,
    /// What of the vault could not be used, in words; nothing where no key was given.
    pub vault_gaps: Vec<String>,
}

/// Why a transcript cannot be shown, or is not in order. One line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// It cannot be read.
    #[error("cannot read {}: {cause}", file.display())]
    Unreadable {
        /// Path of the transcript.
        file: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// Something in it is wrong.
    #[error("{}: {violation}", file.display())]
    Violated {
        /// Path of the transcript.
        file: PathBuf,
        /// The first thing that is wrong.
        violation: Violation,
    },
    /// It holds nothing, but sidechains lie next to it.
    #[error("{}: [emptied] it holds nothing, but sub-agents left transcripts next to it", file.display())]
    Emptied {
        /// Path of the transcript.
        file: PathBuf,
    },
    /// Not one line of it is of a transcript.
    #[error("{}: it is not a transcript: not one of its lines is a message or a record", file.display())]
    NoTranscript {
        /// Path of the transcript.
        file: PathBuf,
    },
    /// A sub-agent's transcript without what was noted about it when it was started.
    #[error("{}: [no_meta] the .meta.json next to it is missing or says nothing", file.display())]
    NoMeta {
        /// Path of the transcript.
        file: PathBuf,
    },
    /// A text is not the secret key of a vault.
    #[error("{why}")]
    NoVaultKey {
        /// What a key looks like.
        why: String,
    },
    /// No given key opens the vault of a transcript.
    #[error("{}: [vault_key] it is sealed to another key", vault.display())]
    WrongVaultKey {
        /// Path of the vault.
        vault: PathBuf,
    },
    /// A turn that is walked again from the record does something else than what is recorded.
    #[error("{}: [replay] {error}", file.display())]
    Differs {
        /// Path of the transcript.
        file: PathBuf,
        /// The first line that differs, and how.
        error: ReplayError,
    },
}

/// Returns the nine steps of each turn of a transcript file as text, one line per fact.
///
/// # Errors
///
/// [`TranscriptError::Unreadable`]; [`TranscriptError::NoTranscript`].
pub fn trace(file: &Path) -> Result<String, TranscriptError> {
    let text = trace::render(&read(&FileStore::default(), file)?);
    text.ok_or_else(|| TranscriptError::NoTranscript { file: file.to_owned() })
}

/// Checks a transcript file, then the sidechains that lie next to it, in the order of their names.
///
/// # Errors
///
/// The first violation, or the first file that cannot be read; [`TranscriptError::NoTranscript`] for
/// one without lines.
pub fn verify(file: &Path) -> Result<Vec<Checked>, TranscriptError> {
    verify_in(&FileStore::default(), file, &VaultOpener::default())
}

impl dyn TranscriptStore + '_ {
    /// Checks a transcript in this store as [`verify`] does a file.
    ///
    /// # Errors
    ///
    /// Those of [`verify`].
    pub fn verify(&self, file: &Path) -> Result<Vec<Checked>, TranscriptError> {
        verify_in(self, file, &VaultOpener::default())
    }

    /// Checks a transcript as [`verify`] does, with what the vaults next to it hold: what the model was shown is
    /// compared byte for byte. `keys` are texts of secret keys, as `ennead vault keygen` makes them. Where a vault is damaged,
    /// missing or does not fit, its transcript is compared up to redaction, and [`Checked::vault_gaps`] says why.
    ///
    /// # Errors
    ///
    /// Those of [`verify`]; [`TranscriptError::NoVaultKey`]; [`TranscriptError::WrongVaultKey`] where no entry in the vault of
    /// `file` can be opened. One of a sub-agent that is sealed to another key is a gap.
    #[cfg(feature = "vault")]
    pub fn verify_with_vault(
        &self,
        file: &Path,
        keys: &[String],
    ) -> Result<Vec<Checked>, TranscriptError> {
        verify_in(self, file, &VaultOpener::new(keys)?)
    }
}

fn verify_in(
    store: &dyn TranscriptStore,
    file: &Path,
    opener: &VaultOpener,
) -> Result<Vec<Checked>, TranscriptError> {
    let folder = folder_of(file);
    let mut files = vec![file.to_owned()];
    let sidechains = sidechains(store, &folder)?;
    if !is_sidechain(file) {
        files.extend(sidechains.iter().cloned());
    }
    if read(store, file)?.trim_ascii().is_empty() {
        let file = file.to_owned();
        return Err(match files.len() {
            1 => TranscriptError::NoTranscript { file },
            // Sidechains without anybody who started them: the transcript was emptied.
            _ => TranscriptError::Emptied { file },
        });
    }
    let tree = RefCell::default();
    let place = SessionFiles { store, named: file, folder, sidechains, tree, opener };
    files.into_iter().map(|file| place.verify_one(file)).collect()
}

/// What the checks of one session have in common.
struct SessionFiles<'a> {
    store: &'a dyn TranscriptStore,
    /// The transcript that is to be checked, with those of its sub-agents.
    named: &'a Path,
    /// The directory of what belongs to the transcript.
    folder: PathBuf,
    /// The transcripts of sub-agents that are there.
    sidechains: BTreeSet<PathBuf>,
    tree: TreeSessions,
    opener: &'a VaultOpener,
}

/// The sessions whose runs were found in a transcript: more than one, if it goes on under other names.
type TreeSessions = RefCell<BTreeSet<SessionId>>;

impl SessionFiles<'_> {
    fn verify_one(&self, file: PathBuf) -> Result<Checked, TranscriptError> {
        let Self { store, folder, .. } = self;
        // Before the lines that it knows of, since the session may be closed meanwhile. It is of no
        // copy.
        let is_original = file.extension().is_some_and(|it| it == "jsonl");
        let checkpoint =
            is_original.then(|| checkpoint::read(*store, &file.with_extension("checkpoint")));
        let bytes = read(*store, &file)?;
        let heads = Heads::default();
        let stored = &|digest: Digest| {
            let text = store.read(&folder.join("stored").join(format!("{digest}.txt")));
            String::from_utf8(text.ok()?).ok()
        };
        let evidence = Evidence {
            stored,
            sidechain: &|head: &SidechainHead| heads.has(*store, folder, head),
            checkpoint: checkpoint.flatten().map(|it| it.head),
            run_budget: &run_budget,
            also: &|record| {
                self.sidechain_is_there(record)?;
                is_of_file(record, &file, stored, &self.tree)
            },
        };
        // One to which nothing was written may have been left by a crash.
        if is_sidechain(&file) && !bytes.trim_ascii().is_empty() && !self.has_meta(&file) {
            return Err(TranscriptError::NoMeta { file });
        }
        let lines = FileLines::read(&bytes);
        let verified = match audit::verify_lines(&lines, &evidence) {
            Ok(verified) => verified,
            Err(violation) => return Err(TranscriptError::Violated { file, violation }),
        };
        // The digests of the requests follow from everything before them: the turns are walked again.
        let vault = self.opener.vault_of(*store, &file, file == self.named)?;
        match vault.replayed(&lines, evidence.stored) {
            Ok((Replayed { up_to_redaction, restored, .. }, vault_gaps)) => {
                Ok(Checked { file, verified, up_to_redaction, restored, vault_gaps })
            }
            Err(error) => Err(TranscriptError::Differs { file, error }),
        }
    }

    /// A sidechain that is gone took with it what its agent did.
    fn sidechain_is_there(&self, record: &Record) -> Result<(), String> {
        match &record.what {
            RecordKind::ToolEnd { sidechain: Some(head), .. }
            | RecordKind::Hook { sidechain: Some(head), .. } => {
                let file = sidechain(&self.folder, &head.agent);
                if self.sidechains.contains(&file) {
                    Ok(())
                } else {
                    Err(format!("the sidechain {} is missing", file.display()))
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether it is known who started a sub-agent, and as what.
    fn has_meta(&self, sidechain: &Path) -> bool {
        let text = self.store.read(&sidechain.with_extension("meta.json")).unwrap_or_default();
        let meta: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        ["agentType", "toolUseId"].iter().all(|it| meta[it].is_string())
    }
}

/// The ends of sidechains, each looked for once.
#[derive(Default)]
struct Heads(RefCell<BTreeMap<AgentId, Option<BTreeSet<Digest>>>>);

impl Heads {
    fn has(
        &self,
        store: &dyn TranscriptStore,
        folder: &Path,
        head: &SidechainHead,
    ) -> Option<bool> {
        let mut known = self.0.borrow_mut();
        let ends = known.entry(head.agent.clone()).or_insert_with(|| {
            store.read(&sidechain(folder, &head.agent)).ok().map(|bytes| ends_of_runs(&bytes))
        });
        ends.as_ref().map(|it| it.contains(&head.head))
    }
}

/// A sidechain under another name, or of another session, represents what no agent of this one did.
fn is_of_file(
    record: &Record,
    file: &Path,
    stored: &dyn Fn(Digest) -> Option<String>,
    tree: &TreeSessions,
) -> Result<(), String> {
    let RecordKind::RunStart { setup, .. } = &record.what else { return Ok(()) };
    let text = match setup {
        Stored::Text(text) => Some(text.to_string()),
        Stored::At(digest) | Stored::Again(digest) => stored(*digest),
    };
    let facts = text.and_then(|it| serde_json::from_str::<SessionFacts>(&it).ok());
    let Some(facts) = facts else { return Ok(()) };
    if !is_sidechain(file) {
        tree.borrow_mut().insert(facts.session);
        return Ok(());
    }
    let named = facts.agent.map(|it| format!("agent-{it}.jsonl"));
    if file.file_name().and_then(|it| it.to_str()) != named.as_deref() {
        return Err("this is the transcript of another agent than its name says".into());
    }
    let tree = tree.borrow();
    if tree.is_empty() || tree.contains(&facts.session) {
        Ok(())
    } else {
        Err("this is the transcript of an agent of another session".into())
    }
}

fn sidechain(folder: &Path, agent: &AgentId) -> PathBuf {
    folder.join("subagents").join(format!("agent-{agent}.jsonl"))
}

/// The token limit of a run, from what was fixed when its session was opened.
fn run_budget(setup: &str) -> Option<u64> {
    let facts: SessionFacts = serde_json::from_str(setup).ok()?;
    merge(&facts.layers).settings.run_token_budget
}

/// The directory of what belongs to a transcript; a sidechain shares that of its top session.
fn folder_of(file: &Path) -> PathBuf {
    match file.parent().and_then(Path::parent) {
        Some(top) if is_sidechain(file) => top.to_owned(),
        _ => file.with_extension(""),
    }
}

fn is_sidechain(file: &Path) -> bool {
    file.parent().is_some_and(|it| it.ends_with("subagents"))
}

fn sidechains(
    store: &dyn TranscriptStore,
    folder: &Path,
) -> Result<BTreeSet<PathBuf>, TranscriptError> {
    let directory = folder.join("subagents");
    match store.list(&directory) {
        Ok(mut names) => {
            names.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
            Ok(names.into_iter().collect())
        }
        Err(error) => Err(TranscriptError::Unreadable { file: directory, cause: error.into() }),
    }
}

fn read(store: &dyn TranscriptStore, file: &Path) -> Result<Vec<u8>, TranscriptError> {
    store
        .read(file)
        .map_err(|error| TranscriptError::Unreadable { file: file.to_owned(), cause: error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SES-1
    #[test]
    fn what_belongs_to_a_transcript_lies_beside_it() {
        assert_eq!(folder_of(Path::new("/r/s-1.jsonl")), Path::new("/r/s-1"));
        assert_eq!(folder_of(Path::new("/r/s-1/subagents/agent-7.jsonl")), Path::new("/r/s-1"));
    }
}
