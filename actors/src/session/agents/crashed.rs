//! A sub-agent that crashed: what it used is read from its transcript.
//!
//! Sub-agents that end in order report it themselves. The writer of a transcript is a child of
//! the archive and so outlives the crash: what was handed over to it is written before it is read.

use std::{
    collections::BTreeMap,
    iter,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::{event::Event, ids::AgentId};
use ractor::ActorRef;
use tokio::sync::mpsc;

use super::orphans;
use crate::{
    groundwork::{
        directory::ActorKind,
        supervision::{HandlerResult, spawn_leaf},
    },
    ports::transcript_store::{TranscriptStore, layout},
    session::{SessionMsg, SessionState},
    storage::archive::{ArchiveMsg, CloseReply},
};

impl SessionState {
    /// Makes the closer of transcripts whose sub-agents cannot close them themselves.
    pub(in crate::session) fn closer(&self) -> orphans::Closer {
        orphans::Closer {
            archive: self.archive.clone(),
            frame: self.open.frame.clone(),
            redaction: self.session_context.redaction.clone(),
            directory: self.open.paths.directory.clone(),
            durability: self.open.durability,
            clock: Arc::clone(&self.session_context.world.clock),
            stream: self.machine.conversation().stream.child("orphans"),
        }
    }

    /// Starts a leaf that reads what a crashed sub-agent used, and those below it.
    pub(in crate::session) async fn read_crashed(
        &mut self,
        myself: &ActorRef<SessionMsg>,
        agent: AgentId,
    ) -> HandlerResult {
        let (directory, archive) = (self.open.paths.directory.clone(), self.archive.clone());
        let name = agent.clone();
        let (back, closer, hub) = (myself.clone(), self.closer(), self.session_context.hub.clone());
        let store = Arc::clone(&self.session_context.world.transcripts);
        let work = Box::pin(async move {
            let listed = Arc::clone(&store);
            let top = agent.clone();
            let found =
                tokio::task::spawn_blocking(move || those_below(&*listed, &directory, &top));
            let files = found.await.unwrap_or_default();
            let (closed, mut open) = mpsc::unbounded_channel::<()>();
            for file in files.values().cloned() {
                let closed = closed.clone();
                let done: CloseReply = Arc::new(move || {
                    let _gone = closed.send(());
                });
                // An archive that is gone takes its sessions along.
                let _gone = archive.cast(ArchiveMsg::Close { file, done: Some(done) });
            }
            drop(closed);
            // Over when all that report have reported or are gone.
            while open.recv().await.is_some() {}
            let read = tokio::task::spawn_blocking(move || orphans::find(&*store, files));
            let (found, unread) = read.await.unwrap_or_default();
            let problems = closer.close_all(&found).await;
            for what in unread.into_iter().chain(problems) {
                hub.publish(Event::Alert { what: what.into() });
            }
            let used = found.iter().map(|it| (it.agent.clone(), it.used())).collect();
            let _gone = back.cast(SessionMsg::AgentCrashed { agent, used });
        });
        let job = self.session_context.job(ActorKind::SourceReader, work);
        let reader = spawn_leaf(job, myself.get_cell()).await?.get_id();
        if let Some(running) = self.children.running.get_mut(&name) {
            running.reader = Some(reader);
        }
        Ok(())
    }
}

/// The transcripts of a sub-agent and of those below it.
fn those_below(
    store: &dyn TranscriptStore,
    directory: &Path,
    agent: &AgentId,
) -> BTreeMap<AgentId, PathBuf> {
    let mut all = layout::sidechains(store, directory);
    let parent = |file: &PathBuf| {
        let meta = store.read(&file.with_extension("meta.json")).ok()?;
        let meta: serde_json::Value = serde_json::from_slice(&meta).ok()?;
        Some(AgentId::new(meta["parentAgentId"].as_str()?))
    };
    let parents: BTreeMap<_, _> =
        all.iter().filter_map(|(id, file)| Some((id.clone(), parent(file)?))).collect();
    // No chain of parents is longer, whatever a damaged file says.
    let is_below = |id: &AgentId| {
        let above = iter::successors(Some(id), |it| parents.get(*it));
        above.take(parents.len() + 1).any(|it| it == agent)
    };
    all.retain(|id, _| is_below(id));
    all
}
