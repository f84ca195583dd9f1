//! One victim at one step.

use std::time::Duration;

use ennead::{
    Options, Placement, RunEnd, RunError, RunOutcome, RunRequest, SessionHandle, SessionId,
    SessionOptions,
    data::{ActorKind, Live, Step},
    tool::{McpLimits, ServerConfig},
};

use super::plan::{Meaning, Meet, Plan, Where};
use crate::support::settings::SettingsJson as _;
use crate::support::{
    barrier::Barrier,
    events::EventLog,
    host::{Host, Running, ask, check_answers, check_record, is_of, prompt},
    hunter::hunt,
    mcp_server,
    processes::{GRANDCHILD, fifo},
    record,
};

/// Kills the victim and checks what became of everything.
#[expect(clippy::print_stderr, reason = "shown only when the test fails: names the case")]
pub(super) fn run(step: Step, kind: ActorKind, plan: &Plan) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // A retry waits for a moment, and nothing else in these cases knows the time.
        .start_paused(kind == ActorKind::ModelCall)
        .build()
        .unwrap();
    eprintln!("{kind:?} at {step:?}: {plan:?}");
    runtime.block_on(Case::new(step, kind, plan).run());
    runtime.shutdown_background();
}

struct Case<'a> {
    step: Step,
    kind: ActorKind,
    plan: &'a Plan,
}

impl<'a> Case<'a> {
    fn new(step: Step, kind: ActorKind, plan: &'a Plan) -> Self {
        Self { step, kind, plan }
    }

    async fn run(&self) {
        // With the shard its sessions end, so the neighbour lives on another one.
        let placement = match self.plan.meaning {
            Meaning::ShardEnds => Placement::Threads(2),
            Meaning::Ends(_) | Meaning::SessionEnds => Placement::Ambient,
        };
        let host = match self.kind {
            ActorKind::McpWaiter => Host::start_with(placement, impatient).await,
            _ => Host::start(placement).await,
        };
        let session = host.ennead.open(self.options(&host)).await.unwrap();
        let other = host.open().await;
        host.workshop.other.close();
        let other_log = EventLog::new(other.events());
        let neighbour = prompt(&other, "use other");
        host.workshop.other.arrived().await;
        if !self.plan.hooks.is_empty() {
            // The hook runner lives from its first use on.
            session.prompt("use echo").await.unwrap();
        }
        let log = EventLog::new(session.events());
        let outcome = self.kill(&host, &session).await;
        self.check_outcome(&session, log, outcome).await;
        match self.plan.meaning {
            Meaning::Ends(_) => {
                check_answers(&session).await;
                check_record(session.transcript());
            }
            Meaning::SessionEnds => {
                let options = self.options(&host).id(session.id().clone());
                let again = host.ennead.open(options).await.unwrap();
                check_answers(&again).await;
                check_record(again.transcript());
            }
            Meaning::ShardEnds => {}
        }
        check_neighbour(&host, &other, other_log, neighbour).await;
        host.ennead.shutdown().await;
    }

    fn options(&self, host: &Host) -> SessionOptions {
        let mut options = host.options().allow("echo").unwrap().allow("look").unwrap();
        if !self.plan.hooks.is_empty() {
            let hooks: serde_json::Map<String, serde_json::Value> = self
                .plan
                .hooks
                .iter()
                .map(|event| {
                    // For hooks of files this is the name of one, which is not there.
                    let matcher = if *event == "FileChanged" { "watched" } else { "*" };
                    let handlers = serde_json::json!([{
                        "matcher": matcher,
                        "hooks": [{ "type": "command", "command": "true" }]
                    }]);
                    ((*event).to_owned(), handlers)
                })
                .collect();
            options = options.setting("hooks", hooks.into());
        }
        if matches!(self.kind, ActorKind::McpServer | ActorKind::McpConnection) {
            options = options.mcp_server(mcp_server::configured("srv"));
        }
        if self.kind == ActorKind::McpWaiter {
            // Nobody lets it go.
            fifo(&host.path("go"));
            let silent = ServerConfig::stdio("silent", "sh", &["-c", "read -r _ < go"]);
            options = options.mcp_server(silent);
        }
        if self.plan.prompt == "loop" {
            options = options
                .own_setting("autoCompact", serde_json::json!({ "maxTokens": 3000 }))
                .own_setting("shapers", serde_json::json!({ "perResultCapChars": 1500 }));
        }
        options
    }

    /// Begins the run; for its timer to live it has a limit, which is far away.
    fn prompt(&self, session: &SessionHandle) -> Running {
        let request = RunRequest::new(self.plan.prompt);
        ask(
            session,
            match self.kind {
                ActorKind::RunTimer => request.time_limit(Duration::from_secs(3600)),
                _ => request,
            },
        )
    }

    /// Sets the run going, meets the victim, kills it, and lets everything go.
    async fn kill(&self, host: &Host, session: &SessionHandle) -> Result<RunOutcome, RunError> {
        match self.plan.meet {
            Meet::Breakpoint => {
                host.breaks.hold(session.id(), self.step);
                let run = self.prompt(session);
                host.breaks.reached().await;
                kill_and_wait(&self.victim(host, session.id())).await;
                host.open_all();
                run.await.unwrap()
            }
            Meet::Barrier(at) => {
                let barrier = barrier(host, at);
                barrier.close();
                let run = prompt(session, self.plan.prompt);
                barrier.arrived().await;
                let status = session.status().await.unwrap();
                assert_eq!(status.step, Some(self.step));
                kill_and_wait(&self.victim(host, session.id())).await;
                host.open_all();
                run.await.unwrap()
            }
            Meet::Process => {
                let (run, reader) =
                    host.prompt_alive(session, format!("{} {GRANDCHILD}", self.plan.prompt)).await;
                let status = session.status().await.unwrap();
                assert_eq!(status.step, Some(self.step));
                kill_and_wait(&self.victim(host, session.id())).await;
                reader.await.unwrap();
                run.await.unwrap()
            }
            Meet::Birth => {
                let killed = self.hunt(host, session.id());
                let outcome = session.prompt(self.plan.prompt).await;
                assert!(killed.is_finished(), "nobody was met: {outcome:?}");
                outcome
            }
            Meet::Interrupt => {
                host.breaks.hold(session.id(), self.step);
                let run = prompt(session, self.plan.prompt);
                host.breaks.reached().await;
                let killed = self.hunt(host, session.id());
                session.interrupt();
                let outcome = run.await.unwrap();
                assert!(killed.is_finished(), "nobody was met: {outcome:?}");
                outcome
            }
        }
    }

    fn victim(&self, host: &Host, session: &SessionId) -> Live {
        host.live(session, self.kind).into_iter().next().expect("it lives")
    }

    fn hunt(&self, host: &Host, session: &SessionId) -> tokio::task::JoinHandle<()> {
        let (kind, step, session) = (self.kind, self.step, session.clone());
        let is_at_step = move |all: &[Live]| {
            let supervisor = all.iter().find(|it| {
                it.kind == ActorKind::TurnSupervisor && it.session.as_ref() == Some(&session)
            });
            (supervisor.is_none() && kind == ActorKind::TurnEnding)
                || supervisor.is_some_and(|it| it.step == Some(step))
        };
        let of = self.kind;
        hunt(host.ennead.directory().clone(), move |live, all| live.kind == of && is_at_step(all))
    }

    async fn check_outcome(
        &self,
        session: &SessionHandle,
        mut log: EventLog,
        outcome: Result<RunOutcome, RunError>,
    ) {
        match self.plan.meaning {
            Meaning::Ends(end) => {
                let outcome = outcome.unwrap();
                assert_eq!(outcome.end, end, "{outcome:?}");
                if end == RunEnd::Crashed {
                    let ends = record::early_ends(session.transcript());
                    let [(reason, Some(at))] = &ends[..] else { panic!("{ends:?}") };
                    // Steps that wait for nobody are recorded together, so it may lag after.
                    assert!(reason == "crashed" && *at <= self.step.number(), "{ends:?}");
                }
            }
            Meaning::SessionEnds | Meaning::ShardEnds => {
                assert_eq!(outcome.unwrap_err(), RunError::Ended);
                assert_eq!(session.status().await, Err(RunError::Ended));
                log.until_end().await;
            }
        }
        assert_eq!(log.runs(), (1, 1), "{:?}", log.seen());
    }
}

/// Waits for no server.
fn impatient(options: Options) -> Options {
    let mut mcp = McpLimits::default();
    mcp.wait = Duration::ZERO;
    options.mcp(mcp)
}

fn barrier(host: &Host, at: Where) -> Barrier {
    match at {
        Where::Settings => &host.files.settings,
        Where::Sources => &host.files.sources,
        Where::Stream => &host.model.stream,
        Where::Approval => &host.approver.barrier,
        Where::Tool => &host.workshop.wait,
    }
    .clone()
}

async fn kill_and_wait(victim: &Live) {
    victim.cell.kill_and_wait(None).await.unwrap();
}

/// The neighbour was in the middle of a call all the time.
async fn check_neighbour(host: &Host, other: &SessionHandle, mut log: EventLog, run: Running) {
    assert!(!run.is_finished());
    host.workshop.other.open();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.end, outcome.text.as_str()), (RunEnd::NoPendingTools, "done with 1"));
    assert_eq!(log.runs(), (1, 1));
    check_answers(other).await;
    check_record(other.transcript());
    assert!(is_of(&host.live(other.id(), ActorKind::Session)[0], other.id()));
}
