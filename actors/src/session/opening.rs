//! Before the first run: the transcript is opened, and leaves read what lies on disk.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use ennead_runtime::{
    digest::Digest,
    ids::{AgentId, EntryId},
    session::{EarlierConversation, KeptHook, OpenedTranscript, SessionInput},
    step1_settings_resolution::Merged,
    transcript::{
        entry::{MessageRecord, Stored},
        load::{LoadAs, Loaded, load_until},
    },
    turn::input::SettingsRead,
};
use ractor::ActorRef;
use tokio::sync::oneshot;

use super::{SessionMsg, SessionState, agents::orphans};
use crate::{
    groundwork::{
        directory::ActorKind,
        merging::merged,
        supervision::{HandlerResult, spawn_leaf},
    },
    ports::{
        errors::OpenError,
        transcript_store::{StoreError, TranscriptStore, layout},
    },
    storage::{archive::OpenOutcome, transcript_index},
};

/// Whether the transcript is open, or why not, and who waits to know.
#[derive(Default)]
pub(super) struct Readiness {
    is_open: Option<bool>,
    /// Given to the first who asks; the others learn only that it cannot be opened.
    error: Option<OpenError>,
    waiting: Vec<oneshot::Sender<Result<(), OpenError>>>,
}

impl Readiness {
    /// Sets the error that is reported should the session not become ready.
    pub(super) fn fails_with(&mut self, error: OpenError) {
        if self.is_open.is_none() {
            self.error = Some(error);
        }
    }

    pub(super) fn known(&mut self, is_open: bool) {
        self.is_open = Some(is_open);
        for waiting in std::mem::take(&mut self.waiting) {
            self.answer_when_known(waiting);
        }
    }

    pub(super) fn answer_when_known(&mut self, reply: oneshot::Sender<Result<(), OpenError>>) {
        let answer = match self.is_open {
            None => return self.waiting.push(reply),
            Some(true) => Ok(()),
            Some(false) => Err(self.error.take().unwrap_or(OpenError::Crashed)),
        };
        let _gone = reply.send(answer);
    }
}

impl SessionState {
    /// Keeps the writer, or the error.
    pub(super) fn take_opened(&mut self, opened: OpenOutcome) -> OpenedTranscript {
        match opened {
            OpenOutcome::Restarted { handle } => {
                self.writer = Some(handle);
                OpenedTranscript::Restarted
            }
            OpenOutcome::Ready { handle, is_new, .. } => {
                self.writer = Some(handle);
                if is_new { OpenedTranscript::New } else { OpenedTranscript::Existing }
            }
            OpenOutcome::Failed(error) => {
                let why = error.to_string();
                match self.readiness.is_open {
                    None => self.readiness.fails_with(error),
                    Some(_) => self.readiness.is_open = Some(false),
                }
                OpenedTranscript::Failed(why)
            }
        }
    }

    /// Takes over what was read of the earlier conversation.
    pub(super) fn take_loaded(
        &mut self,
        earlier: Box<Result<EarlierConversation, String>>,
    ) -> SessionInput {
        self.loader = None;
        match &*earlier {
            Ok(earlier) => {
                self.session_context.shells.table.resume(earlier.loaded.background.last_shell)
            }
            Err(why) => {
                let error = std::io::Error::other(why.clone());
                self.readiness.fails_with(OpenError::File(error));
            }
        }
        SessionInput::Loaded(earlier)
    }

    /// Takes over the settings layers, where they could be read.
    pub(super) fn take_settings(&mut self, merged: Option<Arc<Merged>>) -> SessionInput {
        self.settings_reader = None;
        SessionInput::SettingsRead(merged)
    }

    /// Starts a leaf that reads the settings layers, and merges them.
    pub(super) async fn read_settings(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        let look = self.session_context.world.files.settings(&self.session_context.dirs, None);
        let order = self.machine.merge_order();
        let back = myself.clone();
        let work = Box::pin(async move {
            let merged = match look.await {
                Ok((SettingsRead::Layers(layers), _)) => merged(order.with(layers)).await,
                Ok(_) | Err(_) => None,
            };
            let _gone = back.cast(SessionMsg::SettingsRead(merged));
        });
        let job = self.session_context.job(ActorKind::SourceReader, work);
        self.settings_reader = Some(spawn_leaf(job, myself.get_cell()).await?.get_id());
        Ok(())
    }

    /// Starts a leaf that reads the earlier conversation, on the blocking pool.
    pub(super) async fn load_earlier(&mut self, myself: &ActorRef<SessionMsg>) -> HandlerResult {
        let (file, back) = (self.open.paths.file.clone(), myself.clone());
        let sidechain = self.open.frame.agent.is_some();
        let directory = self.open.paths.directory.clone();
        let (closer, facts) = (self.closer(), Arc::clone(&self.session_context.facts));
        let store = Arc::clone(&self.session_context.world.transcripts);
        let from = self.session_context.goes_on_from.clone();
        let work = Box::pin(async move {
            let caller = facts.agent.clone();
            let read = move || {
                let shown = &facts.directory;
                read(&*store, &file, &directory, shown, sidechain, from.as_ref())
            };
            let read = tokio::task::spawn_blocking(read).await;
            let earlier = match read.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(ReadTranscripts {
                    loaded,
                    cut,
                    system,
                    hooks,
                    unread,
                    agents,
                    mut problems,
                }) => {
                    // Before the session records of a call that its agent was cut off.
                    problems.extend(closer.close_all(&agents).await);
                    Ok(EarlierConversation {
                        ended: orphans::ended(&agents, &loaded),
                        committed: orphans::outcomes(&agents, caller.as_ref(), &loaded),
                        agents: agents.iter().map(|it| (it.agent.clone(), it.used())).collect(),
                        unread,
                        system,
                        hooks,
                        cut,
                        loaded,
                        problems,
                    })
                }
                Err(why) => Err(why),
            };
            let _gone = back.cast(SessionMsg::Loaded(Box::new(earlier)));
        });
        let job = self.session_context.job(ActorKind::SourceReader, work);
        self.loader = Some(spawn_leaf(job, myself.get_cell()).await?.get_id());
        Ok(())
    }
}

/// What the turns of an open run have after the system prompt. A run whose text is gone goes on without.
fn system_of(store: &dyn TranscriptStore, loaded: &Loaded, texts: &Path) -> Option<String> {
    text_of(store, loaded.open_run.as_ref()?.system.as_ref()?, texts)
}

/// A text of a record, wherever it is kept.
fn text_of(store: &dyn TranscriptStore, stored: &Stored, texts: &Path) -> Option<String> {
    match stored {
        Stored::Text(text) => Some(text.to_string()),
        Stored::At(digest) | Stored::Again(digest) => {
            let text = store.read(&texts.join(format!("{digest}.txt"))).ok()?;
            let text = String::from_utf8(text).ok()?;
            (Digest::of(text.as_bytes()) == *digest).then_some(text)
        }
    }
}

/// A transcript and those of its sub-agents, as they were read.
struct ReadTranscripts {
    loaded: Loaded,
    cut: Option<Box<Loaded>>,
    system: Option<String>,
    hooks: Vec<KeptHook>,
    unread: Vec<(EntryId, String)>,
    agents: Vec<orphans::FoundAgent>,
    problems: Vec<String>,
}

/// Reads a transcript and those of its sub-agents; `shown` is what the model reads of their directory. Blocks.
fn read(
    store: &dyn TranscriptStore,
    file: &Path,
    directory: &Path,
    shown: &str,
    sidechain: bool,
    from: Option<&EntryId>,
) -> Result<ReadTranscripts, String> {
    let load_as = if sidechain { LoadAs::Sidechain } else { LoadAs::Session };
    let in_file = |it: StoreError| format!("{}: {it}", file.display());
    let loaded = transcript_index::load(store, file, load_as).map_err(in_file)?;
    let cut = match from.filter(|it| loaded.last.as_ref() != Some(*it)) {
        Some(from) => {
            let bytes = store.read(file).map_err(in_file)?;
            let cut = load_until(&bytes, load_as, from);
            Some(Box::new(cut.ok_or_else(|| format!("no message of the session is named {from}"))?))
        }
        None => None,
    };
    let all: BTreeMap<AgentId, _> =
        if sidechain { BTreeMap::new() } else { layout::sidechains(store, directory) };
    let (agents, problems) = orphans::find(store, all);
    let texts = directory.join("stored");
    let system = system_of(store, &loaded, &texts);
    let hooks = KeptHook::read_all(&loaded.background, shown, |it| text_of(store, it, &texts));
    // One whose text is gone cannot be shown.
    let text = |it: &MessageRecord| Some((it.message.clone(), text_of(store, &it.text, &texts)?));
    let unread = loaded.unread().iter().filter_map(text).collect();
    Ok(ReadTranscripts { loaded, cut, system, hooks, unread, agents, problems })
}
