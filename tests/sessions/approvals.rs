//! Questions about calls, from raising to their end, through whole sessions.

mod auto;
mod kills;
mod plans;
mod questions;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ennead::{
    Ennead, Event, Events, RunEnd, RunOutcome, SessionHandle, SessionOptions,
    data::{AnswerError, ModeError, QuestionKey, RuleDestination},
    permission::{PermissionAnswer, PermissionMode, PolicyVerdict, Question, RuleUpdate},
};
use ennead_runtime::{approval::AnsweredBy, digest::Digest};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::scripted::{Asked, Scripted, TestDirs, call, finish, model, says, text};

const LIMIT: Duration = Duration::from_secs(60);

/// A session that asks through its handle, with a run under way.
struct Asking {
    ennead: Ennead,
    session: SessionHandle,
    events: Events,
    run: JoinHandle<RunOutcome>,
}

impl Asking {
    async fn start(place: &TestDirs, model: &Arc<Scripted>, options: SessionOptions) -> Self {
        let ennead = place.start(model).await;
        let session = ennead.open(options.answers_by_handle(true)).await.unwrap();
        let (events, of_run) = (session.events(), session.clone());
        let run = tokio::spawn(async move { of_run.prompt("go").await.unwrap() });
        Self { ennead, session, events, run }
    }

    /// The next question that is told, which is listed then.
    async fn question(&mut self) -> Question {
        let key = self.key().await;
        let open = self.session.approvals();
        open.into_iter().find(|it| it.key() == key).expect("what is told is listed")
    }

    async fn key(&mut self) -> QuestionKey {
        let next = async {
            loop {
                let event = self.events.next().await.expect("a question").event;
                let event = match event {
                    Event::Agent { event, .. } => Event::clone(&event),
                    event => event,
                };
                if let Event::PermissionAsked { key, .. } = event {
                    return key;
                }
            }
        };
        tokio::time::timeout(LIMIT, next).await.expect("a question in time")
    }

    async fn settled(&mut self) -> AnsweredBy {
        let next = async {
            loop {
                let event = self.events.next().await.expect("an end").event;
                if let Event::PermissionSettled { by, .. } = event {
                    return by;
                }
            }
        };
        tokio::time::timeout(LIMIT, next).await.expect("an end in time")
    }

    async fn answer(&self, question: &Question, answer: PermissionAnswer) {
        self.session.answer(&question.key(), "page", answer).await.unwrap();
    }

    async fn outcome(self) -> RunOutcome {
        let outcome = tokio::time::timeout(LIMIT, self.run).await.expect("an end").unwrap();
        finish(self.ennead, self.session).await;
        outcome
    }
}

fn bash(id: &str, command: &str) -> crate::support::scripted::Reply {
    call(id, "Bash", json!({ "command": command }))
}

fn records(place: &TestDirs, kind: &str) -> Vec<Value> {
    place.lines().into_iter().filter(|it| it["kind"] == kind).collect()
}

// REQ: PRM-9, PRM-10
#[tokio::test]
async fn question_is_listed_and_answered_by_its_key_once() {
    let place = TestDirs::new();
    let model = says(vec![bash("t", "touch made"), text("done")]);
    let mut asking = Asking::start(&place, &model, place.session()).await;
    let question = asking.question().await;
    assert_eq!(asking.ennead.approvals(), std::slice::from_ref(&question));
    assert_eq!((question.call.name.as_str(), question.agents.len()), ("Bash", 0));
    assert!(!place.has("workspace/made"));
    let key = question.key();
    let with = |change: fn(&mut QuestionKey, Digest)| {
        let mut key = key.clone();
        change(&mut key, Digest::of(b"other"));
        key
    };
    let answer = |key: QuestionKey| {
        let session = asking.session.clone();
        async move { session.answer(&key, "page", PermissionAnswer::allow()).await }
    };
    let wrong = answer(with(|key, other| key.digest = other)).await.unwrap_err();
    assert_eq!(wrong.code(), "other_action");
    let wrong = answer(with(|key, other| key.epoch = other)).await.unwrap_err();
    assert_eq!(wrong, AnswerError::OldEpoch);
    let wrong = answer(with(|key, _| key.id = "q_0".into())).await.unwrap_err();
    assert_eq!(wrong.code(), "unknown");
    // Of many answers at once exactly one is taken.
    let all: Vec<_> = (0..16).map(|_| tokio::spawn(answer(key.clone()))).collect();
    let mut n_taken = 0;
    for one in all {
        match one.await.unwrap() {
            Ok(()) => n_taken += 1,
            Err(error) => assert_eq!(error.code(), "answered"),
        }
    }
    assert_eq!(n_taken, 1);
    assert_eq!(answer(key).await.unwrap_err().code(), "answered");
    assert_eq!(asking.settled().await, AnsweredBy::Surface);
    assert!(asking.session.approvals().is_empty());
    let outcome = asking.outcome().await;
    assert!(place.has("workspace/made"));
    let counts = &outcome.questions;
    assert_eq!((counts.asked, counts.answered, counts.expired), (1, 1, 0));
    assert_eq!(counts.by_handler[&AnsweredBy::Surface], 1);
    let approval = &records(&place, "approval")[0];
    assert_eq!((&approval["by"], &approval["surface"]), (&json!("surface"), &json!("page")));
    check_transcript(&place);
}

fn check_transcript(place: &TestDirs) {
    if let Err(wrong) = ennead::transcript::verify(&place.path(&transcript())) {
        panic!("{wrong}");
    }
}

fn transcript() -> String {
    format!("transcripts/{}.jsonl", crate::support::scripted::SESSION)
}

// REQ: PRM-5, RUN-2
#[tokio::test]
async fn interrupt_and_close_end_a_question_as_no_with_a_reason() {
    for is_close in [false, true] {
        let place = TestDirs::new();
        let model = says(vec![bash("t", "touch made"), text("done")]);
        let mut asking = Asking::start(&place, &model, place.session()).await;
        let question = asking.question().await;
        if is_close {
            asking.session.close().await
        } else {
            asking.session.interrupt()
        }
        assert_eq!(asking.settled().await, AnsweredBy::Interrupt);
        let late = asking.session.answer(&question.key(), "page", PermissionAnswer::allow()).await;
        assert_eq!(late.unwrap_err().code(), "answered");
        let outcome = asking.outcome().await;
        assert_eq!(outcome.end, RunEnd::Interrupted);
        assert_eq!(outcome.questions.by_handler[&AnsweredBy::Interrupt], 1);
        assert!(!place.has("workspace/made"));
        let approval = &records(&place, "approval")[0];
        assert_eq!((&approval["by"], &approval["allowed"]), (&json!("interrupt"), &json!(false)));
        let transcript_text = place.read(&transcript());
        assert!(
            transcript_text
                .contains("Permission denied: the run was ended while permission was asked")
        );
        check_transcript(&place);
    }
}

// REQ: PRM-9
#[tokio::test]
async fn question_that_nobody_answers_in_time_is_answered_with_no() {
    let place = TestDirs::new();
    let model = says(vec![bash("t", "touch made"), text("done")]);
    let options = place
        .session()
        .settings_json(json!({"ennead": {"approvals": {"expirySeconds": 1}}}))
        .unwrap();
    let mut asking = Asking::start(&place, &model, options).await;
    let question = asking.question().await;
    assert_eq!(question.expires.millis_since(question.asked_at), 1_000);
    assert_eq!(asking.settled().await, AnsweredBy::Expiry);
    let outcome = asking.outcome().await;
    assert_eq!((outcome.end, outcome.questions.expired), (RunEnd::NoPendingTools, 1));
    assert!(model.last().result("t").contains("nobody answered in time"));
}

// REQ: PRM-9
#[tokio::test]
async fn rule_of_an_answer_is_kept_where_it_says_or_the_answer_is_refused() {
    let place = TestDirs::new();
    let before = r#"{"z": {"unknown": [1]}, "permissions": {"deny": ["Bash(rm *)"]}}"#;
    let file = place.write("workspace/.claude/settings.local.json", before);
    let again = |asked: &Asked| match asked.results().len() {
        0 => bash("a", "touch made"),
        1 => bash("b", "touch made"),
        _ => text("done"),
    };
    let model = model(again);
    let mut asking = Asking::start(&place, &model, place.session()).await;
    let question = asking.question().await;
    let rule = || RuleUpdate::allow("Bash(touch made)");
    let keep = |to| PermissionAnswer::allow().with_rule(rule().kept_in(to));
    // The user's file is a link.
    place.write("outside/settings.json", "{}");
    place.write("home/.claude/x", "");
    std::os::unix::fs::symlink(
        place.path("outside/settings.json"),
        place.path("home/.claude/settings.json"),
    )
    .unwrap();
    let refused = asking
        .session
        .answer(&question.key(), "page", keep(RuleDestination::UserSettings))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), "rule_not_kept");
    assert_eq!(place.read("outside/settings.json"), "{}");
    asking.answer(&question, keep(RuleDestination::LocalSettings)).await;
    let outcome = asking.outcome().await;
    assert_eq!(outcome.questions.asked, 1, "the second call needs no question");
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(kept.starts_with(r#"{"z": {"unknown": [1]}, "#), "{kept}");
    assert!(kept.contains(r#""Bash(rm *)""#) && kept.contains(r#""Bash(touch made)""#), "{kept}");
    // The session of another process reads it there.
    let next = says(vec![bash("c", "touch made"), text("done")]);
    place.clock.advance(Duration::from_secs(1));
    let options = place.session().trust(ennead::permission::Trust::Trusted);
    let outcome = place.run(&next, options).await;
    assert!(outcome.denials.is_empty(), "{:?}", outcome.denials);
}

// REQ: PRM-5
#[tokio::test]
async fn changed_input_must_fit_the_tool_and_is_judged_again() {
    let place = TestDirs::new();
    let model = says(vec![bash("t", "touch made"), text("done")]);
    let options = place.session().deny("Bash(rm *)").unwrap();
    let mut asking = Asking::start(&place, &model, options).await;
    let question = asking.question().await;
    let with = |input: Value| PermissionAnswer::allow().with_input(input.to_string());
    let refused = asking.session.answer(&question.key(), "page", with(json!({"cmd": 1}))).await;
    assert_eq!(refused.unwrap_err().code(), "bad_input");
    asking.answer(&question, with(json!({"command": "touch other"}))).await;
    asking.outcome().await;
    assert!(place.has("workspace/other") && !place.has("workspace/made"));
}

// REQ: PRM-4
#[tokio::test]
async fn mode_changes_while_a_run_is_under_way() {
    let place = TestDirs::new();
    let write = |id: &str| call(id, "Write", json!({"file_path": "new.txt", "content": id}));
    let model = says(vec![write("a"), text("done")]);
    let mut asking = Asking::start(&place, &model, place.session()).await;
    asking.question().await;
    let session = asking.session.clone();
    let bypass = PermissionMode::BypassPermissions;
    assert_eq!(session.set_mode(bypass).await, Err(ModeError::NoLeave));
    session.set_mode(PermissionMode::AcceptEdits).await.unwrap();
    assert_eq!(asking.settled().await, AnsweredBy::Change);
    let outcome = asking.outcome().await;
    assert_eq!(outcome.end, RunEnd::NoPendingTools);
    assert_eq!(place.read("workspace/new.txt"), "a");
    let mode = &records(&place, "mode")[0];
    assert_eq!(mode["mode"], "acceptEdits");
    let permission = &records(&place, "permission")[0];
    assert_eq!(permission["mode"], "acceptEdits");
    check_transcript(&place);
}

// REQ: PRM-4
#[tokio::test]
async fn mode_that_is_set_between_runs_holds_for_the_next_and_needs_leave_to_bypass() {
    let place = TestDirs::new();
    let model = model(|asked: &Asked| match asked.n_answers() % 2 {
        0 => bash(&format!("t{}", asked.n_answers()), "touch made"),
        _ => text("done"),
    });
    let ennead = place.start(&model).await;
    let session = ennead.open(place.session().may_bypass(true)).await.unwrap();
    session.set_mode(PermissionMode::Plan).await.unwrap();
    let first = session.prompt("go").await.unwrap();
    assert_eq!(first.denials.len(), 1);
    session.set_mode(PermissionMode::BypassPermissions).await.unwrap();
    let second = session.prompt("go").await.unwrap();
    assert!(second.denials.is_empty() && place.has("workspace/made"));
    finish(ennead, session).await;
    assert_eq!(records(&place, "mode").len(), 2);
    check_transcript(&place);
}

// REQ: PRM-5
#[tokio::test]
async fn policy_decides_before_anybody_is_asked() {
    let place = TestDirs::new();
    let model = model(|asked: &Asked| match asked.results().len() {
        0 => bash("a", "touch fine"),
        1 => bash("b", "touch never"),
        2 => bash("c", "touch unknown"),
        _ => text("done"),
    });
    let seen = Arc::new(Mutex::new(0));
    let counter = seen.clone();
    let options = place.session().policy_fn(move |question| {
        *counter.lock().unwrap() += 1;
        match &*question.call.input {
            it if it.contains("fine") => PolicyVerdict::Allow { reason: "it is fine".into() },
            it if it.contains("never") => PolicyVerdict::Deny { reason: "never that".into() },
            _ => PolicyVerdict::Abstain,
        }
    });
    let mut asking = Asking::start(&place, &model, options).await;
    let question = asking.question().await;
    assert!(question.call.input.contains("unknown"));
    asking.answer(&question, PermissionAnswer::deny("not now")).await;
    let outcome = asking.outcome().await;
    assert!(place.has("workspace/fine") && !place.has("workspace/never"));
    assert!(model.last().result("b").contains("never that"));
    assert!(model.last().result("c").contains("not now"));
    assert_eq!(*seen.lock().unwrap(), 3);
    let counts = outcome.questions;
    assert_eq!((counts.asked, counts.by_handler[&AnsweredBy::Policy]), (3, 2));
}

// REQ: PRM-4, PRM-5, AGT-9
#[tokio::test]
async fn question_of_a_sub_agent_comes_up_to_its_parent_and_names_the_agent() {
    let place = TestDirs::new();
    let model = model(|asked: &Asked| match (asked.is_agent(), asked.results().len()) {
        (false, 0) => call("d", "Agent", json!({"description": "a task", "prompt": "do it"})),
        (true, 0) => bash("t", "touch made"),
        _ => text("done"),
    });
    let mut asking = Asking::start(&place, &model, place.session()).await;
    let question = asking.question().await;
    assert_eq!(question.agents.len(), 1);
    asking.answer(&question, PermissionAnswer::allow()).await;
    let outcome = asking.outcome().await;
    assert!(place.has("workspace/made"));
    assert_eq!(outcome.questions.by_handler[&AnsweredBy::Bubble], 1);
    let sidechain = std::fs::read_to_string(&place.sidechains()[0]).unwrap();
    assert!(sidechain.contains(r#""by":"bubble""#) && sidechain.contains(r#""agents":[""#));
}
