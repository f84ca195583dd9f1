//! What a parent does when a child crashes: one test for each row of the table of supervision.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
};

use ennead::{
    Event, Options, Placement, RunEnd, SessionOptions,
    data::{ActorKind, Step, StoreAccess},
    testing::FaultyStore,
    transcript::FileStore,
};
use ennead_runtime::transcript::entry::{RecordKind, StepDetail};
use serde_json::json;

use crate::support::settings::SettingsJson as _;
use crate::support::{
    events::EventLog,
    host::{Host, check_record, check_usable, prompt_to, results},
    hunter::hunt,
    processes::GRANDCHILD,
    record,
};

fn with_hook(host: &Host, event: &str) -> SessionOptions {
    let handlers = json!([{ "hooks": [{ "type": "command", "command": "true" }] }]);
    host.options().setting("hooks", json!({ event: handlers }))
}

// REQ: TOL-4, RUN-2
#[tokio::test]
async fn panic_of_a_tool_is_an_error_result_of_that_call_only() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let outcome = session.prompt("use echo panics echo").await.unwrap();
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let results = results(&outcome);
    assert_eq!(results.iter().map(|it| it.0).collect::<Vec<_>>(), [false, true, false]);
    assert!(results[1].1.contains("crashed"), "{}", results[1].1);
    assert_eq!((host.workshop.n_runs("panics"), host.workshop.n_runs("echo")), (1, 2));
    check_usable(&session).await;
}

// REQ: TOL-4, SES-3
#[tokio::test]
async fn executor_that_dies_behind_the_point_of_no_return_is_recorded_as_done() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let run = prompt_to(&session, "use settle", &host.workshop.thread).await;
    host.live(session.id(), ActorKind::ToolExecutor)[0].cell.kill();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(results(&outcome), [(false, "it is done".to_owned())]);
    host.workshop.thread.open();
    check_usable(&session).await;
}

// REQ: TOL-4, TOL-8, RUN-2
#[tokio::test]
async fn crashed_process_is_an_error_result_of_its_call_and_leaves_nothing_behind() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let (run, reader) = host.prompt_alive(&session, format!("run {GRANDCHILD}")).await;
    let processes = host.live(session.id(), ActorKind::ShellProcess);
    let [process] = &processes[..] else { panic!("{processes:?}") };
    process.cell.kill();
    let outcome = run.await.unwrap().unwrap();
    reader.await.unwrap();
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let results = results(&outcome);
    assert_eq!(results.len(), 1);
    assert!(results[0].0 && results[0].1.contains("crashed"), "{results:?}");
    assert_eq!(host.live(session.id(), ActorKind::ShellProcess).len(), 0);
    check_usable(&session).await;
}

// REQ: TOL-8, RUN-2
#[tokio::test]
async fn process_ends_with_the_call_that_waits_for_it_and_with_its_turn() {
    for (kind, end) in [
        (ActorKind::ToolExecutor, RunEnd::NoPendingTools),
        (ActorKind::ToolDispatcher, RunEnd::NoPendingTools),
        (ActorKind::TurnSupervisor, RunEnd::Crashed),
    ] {
        let (host, session) = Host::open_one(Placement::Ambient).await;
        let (run, reader) = host.prompt_alive(&session, format!("run {GRANDCHILD}")).await;
        host.live(session.id(), kind)[0].cell.kill();
        let outcome = run.await.unwrap().unwrap();
        reader.await.unwrap();
        assert_eq!(outcome.end, end, "{kind:?}");
        assert!(results(&outcome)[0].0, "{kind:?}");
        check_usable(&session).await;
        assert_eq!(host.live(session.id(), ActorKind::ShellProcess).len(), 0, "{kind:?}");
    }
}

// REQ: RUN-2, MDL-7
#[tokio::test(start_paused = true)]
async fn crashed_model_call_is_asked_again_in_one_piece() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let mut log = EventLog::new(session.events());
    host.model.panics.store(true, Ordering::SeqCst);
    let outcome = session.prompt("again").await.unwrap();
    assert_eq!(outcome.text, "still here");
    assert!(log.has(|it| matches!(it, Event::RecoveryTaken { .. })));
    let attempts: Vec<_> = record::records(session.transcript())
        .into_iter()
        .filter_map(|it| match it.what {
            RecordKind::ModelAttempt { outcome, streamed, .. } => Some((outcome, streamed)),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [("stream_broken".into(), true), ("ok".into(), false)]);
    check_usable(&session).await;
}

// REQ: RUN-2, TRN-4
#[tokio::test]
async fn without_settings_a_run_fails_and_the_next_one_may_go_well() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    *host.files.fails.lock().unwrap() = Some(io::ErrorKind::PermissionDenied);
    let outcome = session.prompt("use echo").await.unwrap();
    assert_eq!(outcome.end, RunEnd::Error);
    let error = outcome.error.unwrap();
    assert!(error.contains("cannot read the settings"), "{error}");
    assert_eq!(host.model.simulator.log().n_requests, 0, "the model was not asked");
    check_usable(&session).await;
}

// REQ: RUN-2
#[tokio::test]
async fn without_its_sources_a_turn_goes_on_with_what_the_embedder_gave() {
    let host = Host::start(Placement::Ambient).await;
    let options = host.options().system_prompt("You are a test.");
    let session = host.ennead.open(options).await.unwrap();
    let mut log = EventLog::new(session.events());
    host.files.sources.close();
    let (id, directory) = (session.id().clone(), host.ennead.directory().clone());
    let killed = hunt(directory, move |live, all| {
        live.kind == ActorKind::SourceReader
            && all.iter().any(|it| {
                it.session.as_ref() == Some(&id) && it.step == Some(Step::ContextAssembly)
            })
    });
    session.prompt("again").await.unwrap();
    assert!(killed.is_finished());
    assert!(log.has(|it| matches!(it, Event::Alert { .. })), "it is told");
    let texts = record::records(session.transcript()).into_iter().find_map(|it| match it.what {
        RecordKind::TurnStep { detail: StepDetail::Context { texts, .. }, .. } => Some(texts),
        _ => None,
    });
    assert!(format!("{texts:?}").contains("You are a test."), "{texts:?}");
    check_usable(&session).await;
}

// REQ: RUN-2, SHP-1
#[tokio::test]
async fn crashed_shaper_leaves_the_context_as_it_was() {
    let host = Host::start(Placement::Ambient).await;
    let shapers = json!({ "perResultCapChars": 1500 });
    let session = host.ennead.open(host.options().own_setting("shapers", shapers)).await.unwrap();
    let killed =
        hunt(host.ennead.directory().clone(), |live, _| live.kind == ActorKind::ShaperStage);
    let outcome = session.prompt("loop").await.unwrap();
    assert!(killed.is_finished());
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let cuts: Vec<_> = record::records(session.transcript())
        .into_iter()
        .filter_map(|it| match it.what {
            RecordKind::Shaper { stage, fired, tokens_before, tokens_after, why, .. }
                if stage == "budget_reduction" =>
            {
                Some((fired, tokens_after < tokens_before, why))
            }
            _ => None,
        })
        .collect();
    // The first turn has no result, so no stage runs; the second one's was killed; the third cuts
    // both.
    assert_eq!((cuts[0].0, cuts[0].1), (false, false), "{cuts:?}");
    assert!(cuts[0].2.contains("crash"), "{:?}", cuts[0]);
    assert_eq!((cuts[1].0, cuts[1].1), (true, true), "{cuts:?}");
    check_usable(&session).await;
}

// REQ: RUN-2, HKS-5
#[tokio::test]
async fn crashed_hook_denies_before_a_call_and_is_noted_behind_it() {
    for (event, is_denied) in [("PreToolUse", true), ("PostToolUse", false), ("Stop", false)] {
        let host = Host::start(Placement::Ambient).await;
        let session = host.ennead.open(with_hook(&host, event)).await.unwrap();
        let mut log = EventLog::new(session.events());
        let killed =
            hunt(host.ennead.directory().clone(), |live, _| live.kind == ActorKind::HookExecution);
        let outcome = session.prompt("use echo").await.unwrap();
        assert!(killed.is_finished(), "{event}");
        assert_eq!(outcome.end, RunEnd::NoPendingTools, "{event}");
        assert_eq!(results(&outcome)[0].0, is_denied, "{event}: {:?}", results(&outcome));
        assert_eq!(host.workshop.n_runs("echo"), usize::from(!is_denied), "{event}");
        assert!(log.has(|it| matches!(it, Event::Alert { .. })), "{event}");
        check_record(session.transcript());
    }
}

// REQ: RUN-2, PRM-1
#[tokio::test]
async fn what_cannot_be_asked_or_looked_at_is_denied() {
    for (kind, tool) in [(ActorKind::Approval, "asked"), (ActorKind::GateWorker, "look")] {
        let host = Host::start(Placement::Ambient).await;
        let session = host.ennead.open(host.options().allow("look").unwrap()).await.unwrap();
        let killed = hunt(host.ennead.directory().clone(), move |live, _| live.kind == kind);
        let outcome = session.prompt(format!("use {tool}")).await.unwrap();
        assert!(killed.is_finished(), "{tool}");
        assert!(results(&outcome)[0].0, "{tool}: {:?}", results(&outcome));
        assert_eq!(outcome.denials.len(), 1, "{tool}");
        assert_eq!(host.workshop.n_runs(tool), 0, "{tool}");
        check_usable(&session).await;
    }
}

// REQ: RUN-2, TRN-11, SES-3
#[tokio::test]
async fn turn_of_a_crashed_supervisor_is_closed_and_its_calls_are_answered() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let mut log = EventLog::new(session.events());
    let run = prompt_to(&session, "use echo wait wait echo", &host.workshop.wait).await;
    host.workshop.wait.arrived().await;
    host.live(session.id(), ActorKind::TurnSupervisor)[0].cell.kill();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.end, RunEnd::Crashed);
    assert!(results(&outcome).iter().skip(1).all(|it| it.0), "{:?}", results(&outcome));
    assert_eq!(results(&outcome).len(), 4);
    assert!(log.has(|it| matches!(it, Event::RunLost { .. })));
    assert!(!log.has(|it| matches!(it, Event::RunFinished { .. })));
    assert_eq!(record::early_ends(session.transcript()), [("crashed".to_owned(), Some(8))]);
    assert_eq!(record::run_ends(session.transcript()), ["crashed"]);
    host.workshop.wait.open();
    check_usable(&session).await;
    assert_eq!(host.workshop.n_runs("wait"), 2, "nothing is run again");
}

// REQ: RUN-2, SES-2
#[tokio::test]
async fn crashed_writer_loses_no_line_and_doubles_none() {
    let mut lines = None;
    for bytes in [0, 10, usize::MAX] {
        for at in 0.. {
            let store = FaultyStore::new(Arc::new(FileStore::default()));
            store.crash_append(at, bytes);
            let change = |options: Options| options.transcript_store(Arc::new(store.clone()));
            let host = Host::start_with(Placement::Ambient, change).await;
            let session = host.open().await;
            let outcome = session.prompt("use echo echo").await.unwrap();
            assert_eq!(outcome.end, RunEnd::NoPendingTools, "write {at} after {bytes} bytes");
            check_usable(&session).await;
            let kinds: Vec<String> = record::records(session.transcript())
                .into_iter()
                .map(|it| it.what.kind().to_owned())
                .filter(|it| it != "repair")
                .collect();
            assert_eq!(lines.get_or_insert(kinds.clone()), &kinds, "write {at}, {bytes} bytes");
            if store.n_begun(StoreAccess::Append) <= at {
                assert!(4 < at, "only {at} writes");
                break;
            }
        }
    }
}

// REQ: RUN-2, AGT-3
#[tokio::test]
async fn crashed_sub_agent_is_an_error_result_in_its_parent() {
    let (host, session) = Host::open_one(Placement::Ambient).await;
    let run = prompt_to(&session, "delegate use wait", &host.workshop.wait).await;
    host.live(session.id(), ActorKind::SubAgent)[0].cell.kill();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    let results = results(&outcome);
    assert!(results[0].0 && results[0].1.contains("the sub-agent crashed"), "{results:?}");
    host.workshop.wait.open();
    check_usable(&session).await;
    let left = |kind| host.ennead.directory().all().iter().filter(|it| it.kind == kind).count();
    assert_eq!((left(ActorKind::SubAgent), left(ActorKind::ToolExecutor)), (0, 0));
    session.close().await;
    assert_eq!(left(ActorKind::TranscriptWriter), 0, "its transcript was closed, too");
}
