//! One conversation.
//!
//! [`Machine`] decides; this actor reads the clock, feeds it and carries out what it wants done. The
//! actor holds what the decisions name by number: the replies to prompts, the turn's supervisor, the
//! timer, the sub-agents, the writer of the transcript. Child of a shard, or of the session that
//! started it as a sub-agent. Idle, a session is this actor, its writer and nothing else.
//!
//! A prompt arrives from [`SessionHandle`](crate::SessionHandle) as [`SessionMsg::Prompt`]; the machine queues it
//! (`session/queue.rs` in `runtime`). What the machine wants done then is carried out in `session_effects.rs`;
//! to begin a turn, that has `turn_handles.rs` spawn its supervisor.

pub(crate) mod agents;
pub(crate) mod background;
mod child_end;
mod chosen;
pub(crate) mod context;
mod end_hooks;
mod file_watch;
mod hooks;
mod message;
mod opening;
pub(crate) mod processes;
mod servers;
mod session_effects;
mod shells;
mod state;
mod status;
mod timer;
pub(crate) mod tools;
mod turn_handles;
mod watcher;
mod woken;

use std::{collections::BTreeMap, sync::Arc};

pub(crate) use ennead_runtime::run::outcome::{RunError, RunOutcome};
use ennead_runtime::{
    approval::ModeError,
    ids::AgentId,
    permission::PermissionMode,
    run::conversation::Conversation,
    session::{Machine, MessageNumber, Now, PromptId, SessionInput, TreePlace},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::oneshot;

use crate::{
    groundwork::{
        directory::ActorKind,
        mailbox::Admitted,
        supervision::{ended_child, ended_without_reply},
    },
    ports::{events::EndOfEvents, transcript_store::layout::Layout},
    services::mcp_server::StartingServers,
    session::agents::children::{Children, Parent},
    storage::{
        archive::{ArchiveMsg, OpenTranscript},
        transcript_writer::Recorded,
    },
};
use child_end::ChildEnd;
pub(crate) use context::SessionContext;
pub(crate) use message::{HookToken, Prompt, SessionMsg, SpawnRequest, WaitingCall, WokenEnd};
use state::Starting;
pub(crate) use state::{OpenPlan, SessionState};
pub use status::Status;

/// What a session is given.
pub(crate) struct SessionSetup {
    pub(crate) session_context: Arc<SessionContext>,
    pub(crate) conversation: Conversation,
    pub(crate) archive: ActorRef<ArchiveMsg>,
    pub(crate) open: OpenPlan,
    pub(crate) parent: Option<Parent>,
    pub(crate) layout: Layout,
    /// What its subscribers receive with the first run.
    pub(crate) notices: Vec<Arc<str>>,
    /// MCP servers that have not answered yet.
    pub(crate) starting: Option<Box<StartingServers>>,
}

/// The actor that is a session.
pub(crate) struct Session;

impl Actor for Session {
    type Msg = SessionMsg;
    /// Boxed, because a state is moved half a dozen times when its actor starts.
    type State = Box<SessionState>;
    type Arguments = Box<SessionSetup>;

    async fn pre_start(
        &self,
        myself: ActorRef<SessionMsg>,
        setup: Box<SessionSetup>,
    ) -> Result<Box<SessionState>, ActorProcessingErr> {
        let setup = *setup;
        let (session_context, open) = (setup.session_context, setup.open);
        let (kind, place) = match &setup.parent {
            None => (ActorKind::Session, TreePlace::Top),
            Some(Parent { agent, lease, .. }) => {
                let (agent, lease) = (agent.clone(), lease.clone());
                (ActorKind::SubAgent, TreePlace::Below { agent, lease })
            }
        };
        let registration = session_context.directory.enter(
            kind,
            Some(&session_context.session),
            myself.get_cell(),
        );
        let server_waiter = match setup.starting {
            Some(starting) => Some(servers::wait(&session_context, *starting, &myself).await?),
            None => None,
        };
        let (opened, recorded) = (myself.clone(), myself);
        setup.archive.cast(ArchiveMsg::Open(OpenTranscript {
            paths: open.paths.clone(),
            frame: open.frame.clone(),
            durability: open.durability,
            meta: open.meta.clone(),
            redaction: session_context.redaction.clone(),
            owner: Some(recorded.get_cell()),
            reply: Arc::new(move |it| {
                // A session that is gone needs no transcript; it is closed with the session.
                let _gone = opened.cast(SessionMsg::Opened(it));
            }),
        }))?;
        Ok(Box::new(SessionState {
            _end_of_events: EndOfEvents(session_context.hub.clone()),
            machine: Machine::new(setup.conversation, place, setup.notices),
            children: Children::new(setup.parent.map(|it| it.top)),
            session_context,
            archive: setup.archive,
            layout: setup.layout,
            open,
            writer: None,
            recorded: Arc::new(move |it| {
                let _gone = recorded.cast(SessionMsg::Recorded(it));
            }),
            readiness: opening::Readiness::default(),
            loader: None,
            settings_reader: None,
            server_waiter,
            prompts: BTreeMap::new(),
            last_prompt: PromptId::default(),
            begins: None,
            messages: BTreeMap::new(),
            last_message: MessageNumber::default(),
            turn: None,
            timer: None,
            watcher: None,
            fingerprints: None,
            chosen: Default::default(),
            hooks: None,
            woken: Default::default(),
            processes: processes::Processes::default(),
            closing: Vec::new(),
            has_ended_hooks: false,
            _registration: registration,
        }))
    }

    async fn handle(
        &self,
        myself: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut Box<SessionState>,
    ) -> Result<(), ActorProcessingErr> {
        // This future is moved with every message, so it holds nothing but what must be waited for.
        if let Some(starting) = state.on_message(&myself, message)? {
            starting.await?;
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SessionMsg>,
        event: SupervisionEvent,
        state: &mut Box<SessionState>,
    ) -> Result<(), ActorProcessingErr> {
        // A turn that has reported its end owes nothing; the ends of others are noted all the same.
        let Some(child) = ended_child(&event) else { return Ok(()) };
        if ended_without_reply(&event).is_some() || !state.is_turn(child) {
            myself.cast(SessionMsg::ChildGone(child))?;
        }
        Ok(())
    }
}

impl SessionState {
    /// Takes a message. Returns what must be waited for.
    fn on_message<'a>(
        &'a mut self,
        myself: &'a ActorRef<SessionMsg>,
        message: SessionMsg,
    ) -> Starting<'a> {
        let input = match message {
            SessionMsg::Prompt(Admitted { work, slot }) => {
                let Prompt { request, reply, begun } = *work;
                let prompt = self.last_prompt.advance();
                self.prompts.insert(prompt, (reply, slot));
                self.begins = begun.map(|it| (prompt, it)).or(self.begins.take());
                SessionInput::Prompt { prompt, request: Box::new(request) }
            }
            SessionMsg::Message { id, text, reply } => self.take_message(id, text, reply),
            SessionMsg::Interrupt => SessionInput::Interrupt,
            SessionMsg::Stop => SessionInput::Stop,
            SessionMsg::Close(reply) => {
                self.closing.push(reply);
                SessionInput::Close
            }
            SessionMsg::SetMode(mode, reply) => match self.change_mode(mode, reply) {
                Some(input) => input,
                None => return Ok(None),
            },
            SessionMsg::Status(reply) => return self.reply_status(reply),
            SessionMsg::Ready(reply) => {
                self.readiness.answer_when_known(reply);
                return Ok(None);
            }
            SessionMsg::NextWoken(reply) => return self.wait_for_woken(reply),
            SessionMsg::Opened(opened) => SessionInput::Opened(self.take_opened(opened)),
            SessionMsg::Loaded(earlier) => self.take_loaded(earlier),
            SessionMsg::SettingsRead(merged) => self.take_settings(merged),
            SessionMsg::Recorded(Recorded { ticket, result }) => SessionInput::Written {
                ticket,
                result: result.map(|it| it.hash).map_err(|it| it.to_string()),
            },
            SessionMsg::Append { key, append } => SessionInput::Append { key, append },
            SessionMsg::Flush => SessionInput::Flush,
            SessionMsg::CallStarted { key, call, committed } => {
                let _over = self.turn_of(key).map(|it| it.committed.push((call, committed)));
                return Ok(None);
            }
            SessionMsg::RunHooks { firing, context, request } => {
                return Ok(Some(Box::pin(self.run_hooks(myself, *firing, *context, request))));
            }
            SessionMsg::HostProcess { key, work, detached } => {
                return Ok(Some(Box::pin(self.host_process(myself, key, work, detached))));
            }
            SessionMsg::ServerAnswered(answered, _taken_over) => self.server_answered(*answered),
            SessionMsg::Watch(input) => input,
            SessionMsg::HookEnded(ended) => SessionInput::HookEnded(ended),
            SessionMsg::ShellKept(status) => SessionInput::ShellKept(status),
            SessionMsg::ShellsEnded => return self.close_transcript(myself).map(|()| None),
            // Nothing is to be waited for: the next turn is given them.
            SessionMsg::SetModel(model) => {
                self.chosen.set_model(model);
                return Ok(None);
            }
            SessionMsg::DisableServers(names) => {
                self.chosen.disable_servers(names);
                return Ok(None);
            }
            SessionMsg::TurnDone { key, report, fingerprints, rests } => {
                if self.machine.is_turning(key) {
                    self.fingerprints = fingerprints;
                    self.note_rest(key, rests);
                }
                SessionInput::TurnDone { key, report }
            }
            SessionMsg::CannotRun { key, why } => SessionInput::TurnFailed { key, why },
            SessionMsg::TurnQuiet { key, late } => SessionInput::TurnQuiet { key, late },
            SessionMsg::TimeIsUp { run, deadline } => {
                let _over = self.timer.take_if(|it| (it.run, it.deadline) == (run, deadline));
                SessionInput::TimeIsUp { run, deadline }
            }
            SessionMsg::CallWaits(call) => self.take_waiting_call(call),
            SessionMsg::SpawnAgent(request) => self.children.requested(*request),
            SessionMsg::SendMessage(request) => self.children.message_requested(*request),
            SessionMsg::MessageAnswered { spawn, fate } => {
                SessionInput::MessageAnswered { spawn, fate }
            }
            SessionMsg::StopAgent(call) => SessionInput::StopAgent(call),
            SessionMsg::LastWords { of, reply } => return self.send_last_words(of.as_ref(), reply),
            SessionMsg::AgentEnded { agent, result } => SessionInput::AgentEnded { agent, result },
            SessionMsg::AgentCrashed { agent, used } => SessionInput::AgentCrashed { agent, used },
            SessionMsg::TreeQuestion { question, from } => {
                let is_open = |it: &AgentId| self.machine.is_agent_open(it);
                self.children.remember_asker(&question, from, is_open);
                SessionInput::TreeQuestion(question)
            }
            SessionMsg::TreeAnswer(answer) => SessionInput::TreeAnswer(answer),
            SessionMsg::ChildGone(child) => match self.child_gone(child) {
                ChildEnd::Input(input) => input,
                ChildEnd::Agent(agent) => {
                    return Ok(Some(Box::pin(self.read_crashed(myself, agent))));
                }
                ChildEnd::Timer { run, deadline } => {
                    return Ok(Some(Box::pin(self.watch_time(myself, run, deadline))));
                }
                ChildEnd::Start(start) => return self.start_deferred(myself, start),
                ChildEnd::Noted => return Ok(None),
            },
        };
        self.advance(myself, input)
    }

    fn reply_status<'a>(&self, reply: oneshot::Sender<Status>) -> Starting<'a> {
        // A caller that has left needs no answer.
        let _gone = reply.send(self.status());
        Ok(None)
    }

    /// Changes the permission mode here and in sub-agents, if it may be changed, and replies whether it may. Returns what
    /// the machine is asked.
    fn change_mode(
        &mut self,
        mode: PermissionMode,
        reply: oneshot::Sender<Result<(), ModeError>>,
    ) -> Option<SessionInput> {
        let may = self.machine.may_change_to(mode);
        // A caller that has left needs no answer.
        let _gone = reply.send(may);
        may.ok()?;
        self.children.set_mode(mode);
        Some(SessionInput::SetMode(mode))
    }

    /// Returns where the session is. The step and the parked call are known to the directory.
    fn status(&self) -> Status {
        Status::of(self.machine.summary(), self.session_context.shells.table.running())
    }

    fn now(&self) -> Now {
        let clock = &self.session_context.world.clock;
        Now { at: clock.now(), elapsed: clock.elapsed() }
    }
}
