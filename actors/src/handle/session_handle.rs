//! What an embedder holds of a session.
//!
//! A prompt takes a slot of the session's mailbox and leaves as `SessionMsg::Prompt`, with the way for its
//! outcome to come back; `session.rs` says what becomes of it. Steering goes past the mailbox.

use std::{path::PathBuf, sync::Arc};

use ennead_runtime::{
    approval::{AnswerError, ModeError, PermissionAnswer, Question, QuestionKey},
    ids::{SessionId, ToolUseId},
    output::{ChannelPolicy, OutputSettings},
    permission::PermissionMode,
    run::{
        RunRequest,
        outcome::{RunError, RunOutcome},
    },
};
use ractor::ActorRef;
use tokio::sync::oneshot;

use crate::{
    groundwork::{
        directory::{ActorKind, Directory},
        mailbox::{Mailbox, Refused},
    },
    ports::{
        channel::Channel,
        events::{EventHub, Events, Wants},
    },
    services::mcp_server::{McpServerStatus, SessionServers},
    session::{Prompt, SessionMsg, Status, tools::SessionTools},
    turn::approval::pending::Approvals,
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
    pub(crate) approvals: Approvals,
    /// Names of the tools, in the order they are offered.
    pub(crate) tools: Arc<[String]>,
    pub(crate) servers: SessionServers,
    /// The tools themselves, for what the embedder calls at servers.
    pub(crate) callable: SessionTools,
}

impl SessionHandle {
    /// Returns the id of the session.
    pub fn id(&self) -> &SessionId {
        &self.session
    }

    /// Returns the path of the transcript.
    pub fn transcript(&self) -> &std::path::Path {
        &self.transcript
    }

    /// Returns the names of the session's tools, in the order in which a model is offered them. Tools that rules deny
    /// altogether are among them.
    pub fn tools(&self) -> Vec<String> {
        self.tools.to_vec()
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
            // An embedder that no longer waits receives events.
            let _gone = reply.send(result);
        });
        match self.prompts.try_send(Box::new(Prompt { request, reply: back, begun: None })) {
            Ok(()) => outcome.await.unwrap_or(Err(RunError::Ended)),
            Err(Refused::Full(prompt)) => Err(RunError::Busy(Box::new(prompt.request))),
            Err(Refused::Stopped(_)) => Err(RunError::Ended),
        }
    }

    /// Runs a text prompt to its end.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use ennead::{Endpoint, Ennead, SessionOptions};
    ///
    /// let ennead = Ennead::simulated().await?;
    /// let session = ennead.open(SessionOptions::new(".", Endpoint::simulated())).await?;
    /// println!("{}", session.prompt("Hello!").await?.into_answer()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::run`].
    pub async fn prompt(&self, text: impl Into<String>) -> Result<RunOutcome, RunError> {
        self.run(RunRequest::new(text)).await
    }

    /// Waits for the next run that the session begins by itself, which it does when a sub-agent in the background has
    /// ended while no run was under way, and returns its outcome. Returns `None` once nothing is under way: no run, no
    /// agent in the background. Of the runs that ended before they were asked for, the last 16 are kept.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ennead::{Endpoint, Ennead, SessionOptions};
    /// # let ennead = Ennead::simulated().await?;
    /// # let session = ennead.open(SessionOptions::new(".", Endpoint::simulated())).await?;
    /// let mut outcome = session.prompt("Have an agent look for it in the background.").await?;
    /// while let Some(next) = session.next_woken_run().await? {
    ///     outcome = next;
    /// }
    /// # let _last = outcome;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::run`].
    pub async fn next_woken_run(&self) -> Result<Option<RunOutcome>, RunError> {
        let (reply, next) = oneshot::channel();
        self.actor.cast(SessionMsg::NextWoken(reply)).map_err(|_| RunError::Ended)?;
        next.await.map_err(|_| RunError::Ended)?.transpose()
    }

    /// Subscribes to the events of the session from now on.
    pub fn events(&self) -> Events {
        self.hub.subscribe()
    }

    /// Subscribes to its events from now on, and with them each message as it is handed to the transcript
    /// ([`Event::MessageRecorded`](crate::Event::MessageRecorded)), those of sub-agents included. With
    /// `streamed` also the events of answers as a server of the Messages API streams them.
    pub fn conversation(&self, streamed: bool) -> Events {
        self.hub.subscribe_to(Wants { messages: true, stream: streamed })
    }

    /// Opens a channel: the messages of the session from now on, made ready for one place. Several
    /// channels, each with its own policy, receive the same run.
    pub fn channel(&self, policy: ChannelPolicy) -> Channel {
        Channel::new(self.events(), policy)
    }

    /// Returns the defaults of channels, as the last turn found them.
    pub fn output(&self) -> Arc<OutputSettings> {
        self.hub.output()
    }

    /// Returns its MCP servers and how far they are, the caller's own before those of the project. One that may
    /// not start is not there. [`Event::McpServer`](crate::Event::McpServer) reports changes.
    pub fn mcp_servers(&self) -> Vec<McpServerStatus> {
        self.servers.all()
    }

    /// Has an MCP server of the session connected to again that has failed or was dropped, or started again. Returns how
    /// far it is after that; `None`: the session has no server of this name. The tools of one that was not there join
    /// with the next turn, of the run under way too. One that is connected stays as it is.
    ///
    /// ```
    /// # async fn example(session: ennead::SessionHandle) {
    /// if let Some(server) = session.reconnect_server("tickets").await {
    ///     println!("{} is {}", server.name, server.state.code());
    /// }
    /// # }
    /// ```
    pub async fn reconnect_server(&self, name: &str) -> Option<McpServerStatus> {
        let answered = self.servers.again(name)?.answered().await;
        let (sender, taken_over) = oneshot::channel();
        let message = SessionMsg::ServerAnswered(Box::new(answered), Some(sender));
        if self.actor.cast(message).is_ok() {
            // Nothing is ever sent: the end of it is the message.
            let _over = taken_over.await;
        }
        self.servers.all().into_iter().find(|it| *it.name == *name)
    }

    /// Ends the run under way now: what it started is ended, its open calls are answered, and the
    /// session takes the next prompt. Does nothing when there is no run.
    pub fn interrupt(&self) {
        // A session that is gone has no run.
        let _gone = self.actor.cast(SessionMsg::Interrupt);
    }

    /// Asks this model from the next turn on, of the run under way too; `None`: the model of the settings
    /// again. Settings of an organisation are stronger. Sub-agents that are at work keep theirs.
    ///
    /// A session that reads no settings files ([`SessionOptions::reads_settings`]) keeps its model.
    ///
    /// [`SessionOptions::reads_settings`]: crate::SessionOptions::reads_settings
    pub fn set_model(&self, model: Option<&str>) {
        // A session that is gone asks no model.
        let _gone = self.actor.cast(SessionMsg::SetModel(model.map(Into::into)));
    }

    /// Withholds the tools of these MCP servers, and of no others, from the next turn on, of the run under way too:
    /// the model is not offered them, and a call of one is denied. The servers go on running. Withheld are all tools
    /// whose names begin with `mcp__name__`. Sub-agents that are at work keep theirs.
    ///
    /// A session that reads no settings files ([`SessionOptions::reads_settings`](crate::SessionOptions::reads_settings))
    /// keeps all its tools.
    ///
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ennead::{Endpoint, Ennead, SessionOptions};
    /// # let ennead = Ennead::simulated().await?;
    /// # let session = ennead.open(SessionOptions::new(".", Endpoint::simulated())).await?;
    /// session.disable_servers(vec!["tickets".into()]);
    /// // All of them are at hand again.
    /// session.disable_servers(Vec::new());
    /// # Ok(())
    /// # }
    /// ```
    pub fn disable_servers(&self, names: Vec<String>) {
        // A session that is gone calls no tool.
        let _gone = self.actor.cast(SessionMsg::DisableServers(names));
    }

    /// Ends the run under way after its present turn.
    pub fn stop(&self) {
        let _gone = self.actor.cast(SessionMsg::Stop);
    }

    /// Ends the sub-agent that this call of the session's model began; the call gets an error result, and the run
    /// goes on. Does nothing when none is at work for it.
    pub fn stop_agent(&self, call: &str) {
        let _gone = self.actor.cast(SessionMsg::StopAgent(ToolUseId::new(call)));
    }

    /// Returns its questions about calls that wait for an answer, those of its sub-agents included, oldest first.
    pub fn approvals(&self) -> Vec<Question> {
        self.approvals.list(Some(&self.session))
    }

    /// Answers one of its questions. `surface` names who answers, for the record; at most 64 characters.
    /// Of several answers one wins.
    ///
    /// # Errors
    ///
    /// [`AnswerError`] when the answer is not taken: the question is as it was.
    pub async fn answer(
        &self,
        key: &QuestionKey,
        surface: &str,
        answer: PermissionAnswer,
    ) -> Result<(), AnswerError> {
        self.approvals.answer(Some(&self.session), key, surface, answer).await
    }

    /// Puts the session, and its sub-agents at work, into another permission mode. It holds from the
    /// next call on; a question that is open is judged anew.
    ///
    /// # Errors
    ///
    /// [`ModeError`] when the session may not be put into this mode.
    pub async fn set_mode(&self, mode: PermissionMode) -> Result<(), ModeError> {
        let (reply, changed) = oneshot::channel();
        self.actor.cast(SessionMsg::SetMode(mode, reply)).map_err(|_| ModeError::Ended)?;
        changed.await.unwrap_or(Err(ModeError::Ended))
    }

    /// Returns whether its actor lives.
    #[cfg(feature = "serve")]
    pub(crate) fn is_alive(&self) -> bool {
        self.actor.get_status() < ractor::ActorStatus::Draining
    }

    /// Returns the state of the session.
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
