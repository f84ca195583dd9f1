//! What an embedder holds of a session.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use ennead_runtime::{
    catalogue::Catalogue,
    cost::CostLedger,
    digest::Digest,
    ids::{EntryId, RunId, SessionId, ToolName, ToolUseId},
    message::Messages,
    output::{ChannelPolicy, OutputSettings},
    run::{InvalidRequest, RunEnd, RunRequest, Sender},
    step::Step,
    step5_model_call::cache_watch::PromptCacheEvent,
    tokens::Usage,
    turn::effect::FallbackUsed,
};
use ractor::ActorRef;
use thiserror::Error;
use tokio::sync::oneshot;

use super::{Prompt, SessionMsg};
use crate::{
    channel::Channel,
    directory::{ActorKind, Directory, ParkedCall},
    events::{EventHub, Events},
    mailbox::{Mailbox, Refused},
};

/// A session. Clones are the same session. It lives until it is closed or its `Ennead` ends;
/// dropping handles does not end it.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub(crate) session: SessionId,
    pub(crate) transcript: PathBuf,
    pub(crate) actor: ActorRef<SessionMsg>,
    pub(crate) prompts: Mailbox<Box<Prompt>, SessionMsg>,
    pub(crate) hub: EventHub,
    pub(crate) directory: Directory,
}

/// What a run left.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Which run.
    pub run: RunId,
    /// Who asked for it, if that was said.
    pub sender: Option<Sender>,
    /// Why it ended.
    pub end: RunEnd,
    /// The text of its last answer; empty when there is none.
    pub text: String,
    /// Everything that was said in it, the prompt first.
    pub messages: Messages,
    /// Turns it took.
    pub turns: u32,
    /// Of all its model calls, sub-agents included.
    pub usage: Usage,
    /// Of all runs of the session so far, this one included.
    pub session_usage: Usage,
    /// The same calls by model and by what came of them, and what they cost.
    pub cost: CostLedger,
    /// The same for each turn, counted from 1; without sub-agents.
    pub turn_costs: BTreeMap<u32, CostLedger>,
    /// Of all runs of the session so far, this one included. Of those of earlier processes, all
    /// sub-agents stand right below the session.
    pub session_cost: CostLedger,
    /// What is known about models.
    pub models: Arc<Catalogue>,
    /// Lines of the summaries that were made in it; each stands for what was said before.
    pub compactions: Vec<EntryId>,
    /// Cached tokens that its model calls should have read and did not (CTX-7).
    pub cache_drops: Vec<PromptCacheEvent>,
    /// From prompt to end, in milliseconds.
    pub duration_ms: u64,
    /// The error that ended it, in words.
    pub error: Option<String>,
    /// Calls that were denied.
    pub denials: Vec<Denial>,
    /// The model that was asked.
    pub model: String,
    /// The last model that was turned to because that one could not answer.
    pub fallback: Option<FallbackUsed>,
    /// Hash of its last record.
    pub head: Option<Digest>,
}

/// A call that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The tool.
    pub tool: ToolName,
    /// The call.
    pub call: ToolUseId,
    /// Its input, JSON text.
    pub input: Arc<str>,
}

/// Why a run left no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The session holds as many prompts as it may. This one comes back.
    #[error("the session is busy: its queue of prompts is full")]
    Busy(Box<RunRequest>),
    /// It cannot be asked for like this. Nothing was recorded.
    #[error("the run cannot begin: {0}")]
    Invalid(#[from] InvalidRequest),
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// The run could not be recorded, or could not begin.
    #[error("the run failed: {0}")]
    Failed(String),
}

/// How a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The run under way.
    pub run: Option<RunId>,
    /// Its turn, from 1.
    pub turn: u32,
    /// Where its turn is.
    pub step: Option<Step>,
    /// Why its call of the model is not sent yet, if it waits for the governor.
    pub parked: Option<ParkedCall>,
    /// Prompts that wait.
    pub queued: usize,
    /// Sub-agents at work.
    pub agents: usize,
}

impl SessionHandle {
    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.session
    }

    /// Its transcript.
    pub fn transcript(&self) -> &std::path::Path {
        &self.transcript
    }

    /// Runs a prompt to its end. While a run is under way the prompt waits in the session's
    /// bounded queue. Dropping the future does not stop the run.
    ///
    /// # Errors
    ///
    /// [`RunError`] when there is no outcome. A run that ended with an error of the model has one.
    pub async fn run(&self, request: RunRequest) -> Result<RunOutcome, RunError> {
        let (reply, outcome) = oneshot::channel();
        let back = Box::new(move |result| {
            // An embedder that no longer waits is told by events.
            let _gone = reply.send(result);
        });
        match self.prompts.try_send(Box::new(Prompt { request, reply: back })) {
            Ok(()) => outcome.await.unwrap_or(Err(RunError::Ended)),
            Err(Refused::Full(prompt)) => Err(RunError::Busy(Box::new(prompt.request))),
            Err(Refused::Stopped(_)) => Err(RunError::Ended),
        }
    }

    /// Runs a text prompt to its end.
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::run`].
    pub async fn prompt(&self, text: impl Into<String>) -> Result<RunOutcome, RunError> {
        self.run(RunRequest::new(text)).await
    }

    /// Its events from now on.
    pub fn events(&self) -> Events {
        self.hub.subscribe()
    }

    /// What it says from now on, made ready for one place. Several channels, each with its own
    /// policy, hear the same run.
    pub fn channel(&self, policy: ChannelPolicy) -> Channel {
        Channel::new(self.events(), policy)
    }

    /// The defaults of channels, as the last turn found them.
    pub fn output(&self) -> Arc<OutputSettings> {
        self.hub.output()
    }

    /// Ends the run under way now: what it started is ended, its open calls are answered, and the
    /// session takes the next prompt. Does nothing when there is no run.
    pub fn interrupt(&self) {
        // A session that is gone has no run.
        let _gone = self.actor.cast(SessionMsg::Interrupt);
    }

    /// Ends the run under way after its present turn.
    pub fn stop(&self) {
        let _gone = self.actor.cast(SessionMsg::Stop);
    }

    /// How it stands.
    ///
    /// # Errors
    ///
    /// [`RunError::Ended`] when it is gone.
    pub async fn status(&self) -> Result<Status, RunError> {
        let (reply, status) = oneshot::channel();
        self.actor.cast(SessionMsg::Status(reply)).map_err(|_| RunError::Ended)?;
        let mut status = status.await.map_err(|_| RunError::Ended)?;
        let live = self.directory.of(&self.session);
        let turn = live.iter().find(|it| it.kind == ActorKind::TurnSupervisor);
        status.parked = self.directory.parked(&self.session);
        status.step = turn.and_then(|it| it.step);
        Ok(status)
    }

    /// Interrupts what runs, closes the transcript and ends the session. Prompts that wait are
    /// answered with [`RunError::Ended`].
    pub async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.actor.cast(SessionMsg::Close(reply)).is_ok() {
            // A session that ends on the way is closed, too.
            let _ended = closed.await;
        }
    }
}
