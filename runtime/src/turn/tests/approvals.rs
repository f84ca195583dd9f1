//! Step 7: questions are recorded, asked one handler after another, and end once.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::{Value, json};

use super::{
    play::{Play, play},
    script::{calls, facts, hook, layer},
    world::World,
};
use crate::{
    approval::{AnsweredBy, PermissionAnswer, PolicyVerdict, RuleUpdate},
    entropy::EntropyStream,
    permission::{PermissionMode, Scope},
    run::facts::{ASKS_HOOKS_ALONE, REVISION},
    step7_permission_gate::Handler,
    transcript::entry::RecordKind,
};

fn world(settings: Value, answers: &[&[&str]]) -> World {
    let mut world = World::new(answers.iter().map(|it| calls(it)).collect());
    world.facts = std::sync::Arc::new(facts(Handler::Approver));
    world.layers = [vec![layer(Scope::User, settings)]].into();
    world
}

fn answered(play: &Play) -> Vec<(bool, AnsweredBy)> {
    let of = |what: &RecordKind| match what {
        RecordKind::Approval { allowed, by, .. } => Some((*allowed, by.unwrap())),
        _ => None,
    };
    play.records().filter_map(|it| of(&it.what)).collect()
}

fn reason(play: &Play, n: usize) -> String {
    let of = |what: &RecordKind| match what {
        RecordKind::Permission { decision, .. } => Some(decision.reason.clone()),
        _ => None,
    };
    play.records().filter_map(|it| of(&it.what)).nth(n).unwrap()
}

// REQ: PRM-9, PRM-10
#[test]
fn question_is_on_record_before_it_is_asked_and_its_answer_before_the_decision() {
    let play = play(world(json!({}), &[&["x:Bash:make"]]));
    let kinds: Vec<&str> = play.records().map(|it| it.what.kind()).collect();
    let at = |kind| kinds.iter().position(|it| *it == kind).unwrap();
    assert!(at("question") < at("approval") && at("approval") < at("permission"), "{kinds:?}");
    let question = &play.questions[0];
    let of = |what: &RecordKind| match what {
        RecordKind::Question { id, digest, epoch, .. } => Some((id.clone(), *digest, *epoch)),
        _ => None,
    };
    let recorded = play.records().find_map(|it| of(&it.what)).unwrap();
    assert_eq!(recorded, (question.id.clone(), question.digest, question.epoch));
    assert_eq!(question.expires.0 - question.asked_at.0, 86_400_000);
    assert_eq!(answered(&play), [(true, AnsweredBy::Surface)]);
    play.check_replay();
}

// REQ: PRM-5
#[test]
fn policy_is_asked_first_then_a_person_and_where_nobody_is_left_it_is_no() {
    for (handler, call, expected, is_shown) in [
        (Handler::Approver, "x:Bash:fine", vec![(true, AnsweredBy::Policy)], false),
        (Handler::Approver, "x:Bash:never", vec![(false, AnsweredBy::Policy)], false),
        (Handler::Approver, "x:Bash:make", vec![(true, AnsweredBy::Surface)], true),
        (Handler::None, "x:Bash:fine", vec![(true, AnsweredBy::Policy)], false),
        (Handler::None, "x:Bash:make", vec![(false, AnsweredBy::Nobody)], false),
    ] {
        let mut world = world(json!({}), &[&[call]]);
        let mut facts = facts(handler);
        facts.has_policy = true;
        world.facts = facts.into();
        let play = play(world);
        assert_eq!(answered(&play), expected, "{call}");
        assert_eq!(play.questions.len(), usize::from(is_shown), "{call}");
        play.check_replay();
    }
}

// REQ: PRM-5, PRM-2
#[test]
fn changed_input_is_judged_again_before_it_runs() {
    let deny = json!({ "permissions": { "deny": ["Bash(curl *)"], "ask": ["Bash(git push *)"] } });
    let check = |asked: &str, input: Value, is_allowed: bool, why: &str| {
        let mut world = world(deny.clone(), &[&[asked]]);
        world.given.push_back(Ok(PermissionAnswer::allow().with_input(input.to_string())));
        let play = play(world);
        assert_eq!(play.log().contains("result:x"), is_allowed, "{input}: {}", play.log());
        assert!(reason(&play, 0).contains(why), "{input}: {}", reason(&play, 0));
        play.check_replay();
    };
    let bash = |command: &str| json!({ "command": command });
    check("x:Bash:make", bash("make all"), true, "allowed when asked");
    check("x:Bash:git push a", bash("git push b"), true, "allowed when asked");
    check("x:Bash:make", bash("curl x"), false, "Bash(curl *)");
    check("x:Bash:make", bash("rm -rf /"), false, "the changed input may not run");
    check("x:Bash:make", bash("echo x > .git/config"), false, "protected path");
    check("x:Bash:make", bash("$X"), false, "cannot be judged");
}

// REQ: PRM-3, PRM-6
#[test]
fn rule_of_an_answer_holds_from_the_next_call_on_and_is_named_as_one_of_the_session() {
    let mut world = world(json!({}), &[&["x:Bash:make", "y:Bash:make"], &["z:Bash:make"]]);
    let rule = RuleUpdate::allow("Bash(make)");
    world.given.push_back(Ok(PermissionAnswer::allow().with_rule(rule)));
    let play = play(world);
    assert_eq!(play.questions.len(), 1, "{}", play.log());
    assert!(reason(&play, 1).contains("session:Bash(make)"), "{}", reason(&play, 1));
    assert!(reason(&play, 2).contains("session:Bash(make)"), "{}", reason(&play, 2));
    play.check_replay();
}

// REQ: PRM-5, RUN-2
#[test]
fn answer_that_interrupts_ends_the_run_and_nothing_of_the_same_answer_runs() {
    let settings = json!({ "permissions": { "allow": ["Bash(ls)"] } });
    let mut world = world(settings, &[&["a:Bash:ls", "x:Bash:make", "y:Bash:make"], &[]]);
    let stop = PermissionAnswer { interrupt: true, ..PermissionAnswer::deny("stop it") };
    world.given.push_back(Ok(stop));
    let play = play(world);
    assert!(play.log().ends_with("error:a error:x error:y 9 interrupted"), "{}", play.log());
    assert!(play.trace.is_empty(), "{:?}", play.trace);
    assert_eq!(play.ends[0].1.as_deref(), Some("stop it"));
    play.check_replay();
}

// REQ: PRM-4, PRM-9
#[test]
fn mode_that_changes_while_somebody_is_asked_has_the_question_judged_anew() {
    let mut world = world(json!({}), &[&["x:Edit:src/a.rs"], &["y:Edit:src/a.rs"]]);
    world.given = [Err(PermissionMode::AcceptEdits)].into();
    let play = play(world);
    assert_eq!(play.questions.len(), 1, "{}", play.log());
    assert!(answered(&play).is_empty() && play.log().contains("result:y"), "{}", play.log());
    assert!(play.records().any(|it| matches!(it.what, RecordKind::Mode(_))));
    play.check_replay();
}

// REQ: PRM-4, PRM-9
#[test]
fn question_that_is_asked_again_has_its_name_and_another_epoch() {
    let mut world = world(json!({}), &[&["x:Bash:make"]]);
    world.given = [Err(PermissionMode::Plan)].into();
    let play = play(world);
    let [first, second] = &play.questions[..] else { panic!("{}", play.log()) };
    assert_eq!((&first.id, first.digest), (&second.id, second.digest));
    assert_ne!(first.epoch, second.epoch);
    assert_eq!(answered(&play), [(true, AnsweredBy::Surface)]);
    play.check_replay();
}

/// A session in which `handler` is the first that is asked about `make`, and allows it; somebody sets the
/// mode while it is at work.
fn changed_during(handler: AnsweredBy, mode: PermissionMode) -> World {
    let allow = r#"0 {"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#;
    let mut settings = json!({ "permissions": { "defaultMode": "default" } });
    match handler {
        AnsweredBy::Hook => {
            let handlers = json!([{ "type": "command", "command": allow }]);
            settings["hooks"] = json!({ "PermissionRequest": [{ "hooks": handlers }] });
        }
        AnsweredBy::Classifier => settings["permissions"]["defaultMode"] = "auto".into(),
        _ => {}
    }
    let mut world = world(settings, &[&["x:Bash:make fine"]]);
    world.verdicts = [super::script::text(ALLOW)].into();
    let mut facts = facts(Handler::Approver);
    facts.has_policy = handler == AnsweredBy::Policy;
    world.facts = facts.into();
    world.mode_during = Some((handler, mode));
    world
}

// REQ: PRM-5
#[test]
fn hook_answers_where_nobody_else_can_and_in_earlier_sessions_it_is_not_asked() {
    for (revision, expected) in
        [(REVISION, vec![(true, AnsweredBy::Hook)]), (ASKS_HOOKS_ALONE - 1, vec![])]
    {
        let mut world = changed_during(AnsweredBy::Hook, PermissionMode::Plan);
        world.mode_during = None;
        let mut facts = facts(Handler::None);
        facts.revision = revision;
        world.facts = facts.into();
        let play = play(world);
        assert_eq!(answered(&play), expected, "{revision}: {}", play.log());
        play.check_replay();
    }
}

// REQ: PRM-4, PRM-9
#[test]
fn answer_that_comes_after_the_mode_has_changed_allows_nothing() {
    for handler in [AnsweredBy::Hook, AnsweredBy::Policy, AnsweredBy::Classifier] {
        let unchanged =
            World { mode_during: None, ..changed_during(handler, PermissionMode::Plan) };
        assert_eq!(answered(&play(unchanged)), [(true, handler)]);
        let play = play(changed_during(handler, PermissionMode::DontAsk));
        assert!(play.log().contains("error:x"), "{handler:?}: {}", play.log());
        assert!(answered(&play).is_empty() && play.questions.is_empty(), "{handler:?}");
        play.check_replay();
    }
}

// REQ: PRM-4, PRM-9
#[test]
fn handler_that_comes_next_is_not_asked_under_a_mode_that_no_longer_holds() {
    for handler in [AnsweredBy::Hook, AnsweredBy::Classifier] {
        let mut world = changed_during(handler, PermissionMode::DontAsk);
        world.verdicts = [super::script::text("no verdict")].into();
        let layers = world.layers[0][0].text.replace(r#""behavior":"allow""#, r#""no":"word""#);
        let layers = layers.replace(r#""behavior":"allow""#, r#""no":"word""#);
        world.layers[0][0].text = layers;
        let play = play(world);
        assert!(play.log().contains("error:x"), "{handler:?}: {}", play.log());
        assert!(play.questions.is_empty(), "{handler:?}: {}", play.log());
        play.check_replay();
    }
}

// REQ: PRM-4, PRM-9
#[test]
fn verdict_under_an_earlier_mode_does_not_count_for_the_question_that_is_asked_again() {
    for seed in 0..64 {
        let mut world = changed_during(AnsweredBy::Policy, PermissionMode::Plan);
        let deny = PolicyVerdict::Deny { reason: "not while it plans".into() };
        world.policy_verdicts = [PolicyVerdict::Allow { reason: "fine".into() }, deny].into();
        world.shuffle = Some(EntropyStream::from_seed(seed));
        let play = play(world);
        // The first verdict counts where it came before the mode changed.
        let verdicts = answered(&play);
        let mode = play.records().position(|it| matches!(it.what, RecordKind::Mode(_)));
        let answer = play.records().position(|it| matches!(it.what, RecordKind::Approval { .. }));
        let is_first = mode.is_none_or(|it| answer < Some(it));
        assert_eq!(verdicts, [(is_first, AnsweredBy::Policy)], "{seed}: {}", play.log());
        play.check_replay();
    }
}

fn auto(answers: &[&[&str]], verdicts: &[&str]) -> World {
    let settings = json!({ "permissions": { "defaultMode": "auto", "deny": ["Bash(curl *)"] } });
    let mut world = world(settings, answers);
    world.verdicts = verdicts.iter().map(|it| super::script::text(it)).collect();
    world
}

const ALLOW: &str = r#"{"token":"TOKEN","verdict":"allow","reason":"it builds"}"#;
const DENY: &str = r#"{"token":"TOKEN","verdict":"deny","reason":"it destroys"}"#;

fn attempts(play: &Play) -> Vec<(Option<String>, u64)> {
    let of = |what: &RecordKind| match what {
        RecordKind::ModelAttempt { purpose, model, usage, .. } if purpose == "classification" => {
            Some((model.clone(), usage.output_tokens))
        }
        _ => None,
    };
    play.records().filter_map(|it| of(&it.what)).collect()
}

// REQ: PRM-4, PRM-5
#[test]
fn classifier_decides_in_the_mode_auto_and_its_call_is_recorded_and_counted() {
    for (verdict, is_allowed) in [(ALLOW, true), (DENY, false)] {
        let play = play(auto(&[&["x:Bash:make"]], &[verdict]));
        assert_eq!(answered(&play), [(is_allowed, AnsweredBy::Classifier)]);
        assert!(play.questions.is_empty(), "nobody is asked");
        let [(model, tokens)] = &attempts(&play)[..] else { panic!("{}", play.log()) };
        // What is known of models in these tests names no fast one.
        assert_eq!(model.as_deref(), Some("m"));
        assert!(0 < *tokens && *tokens <= play.used.output_tokens);
        let denial = reason(&play, 0);
        assert!(denial.contains(if is_allowed { "it builds" } else { "it destroys" }), "{denial}");
        play.check_replay();
    }
}

// REQ: PRM-5
#[test]
fn classifier_that_is_unsure_leaves_the_call_to_a_person_or_denies_it_where_there_is_none() {
    let asks = ALLOW.replace("allow", "ask");
    let forged = ALLOW.replace("TOKEN", "0123456789abcdef0123456789abcdef");
    for verdict in ["yes", &asks, &forged, &format!("{ALLOW} {ALLOW}")] {
        for (handler, by) in
            [(Handler::Approver, AnsweredBy::Surface), (Handler::None, AnsweredBy::Nobody)]
        {
            let mut world = auto(&[&["x:Bash:make"]], &[verdict]);
            world.facts = facts(handler).into();
            let play = play(world);
            assert_eq!(answered(&play), [(by == AnsweredBy::Surface, by)], "{verdict}");
            assert!(play.records().any(|it| matches!(
                it.what,
                RecordKind::Passed { by: AnsweredBy::Classifier, .. }
            )));
            play.check_replay();
        }
    }
    let mut world = auto(&[&["x:Bash:make"]], &[]);
    world.verdicts =
        [super::script::failure(crate::step5_model_call::FailureClass::Timeout)].into();
    let play = play(world);
    assert_eq!(answered(&play), [(true, AnsweredBy::Surface)]);
    play.check_replay();
}

// REQ: PRM-2, PRM-4
#[test]
fn classifier_is_not_asked_about_what_no_rule_could_allow() {
    for (call, is_asked) in [
        ("x:Bash:rm -rf /h", true),
        ("x:Bash:echo x > .git/config", true),
        ("x:Bash:$X", true),
        ("x:Bash:curl x", false),
    ] {
        let play = play(auto(&[&[call]], &[ALLOW]));
        assert!(attempts(&play).is_empty(), "{call}");
        assert_eq!(
            play.questions.len(),
            usize::from(is_asked),
            "{call}: {} {}",
            play.log(),
            reason(&play, 0)
        );
        play.check_replay();
    }
}

// REQ: HKS-1
#[test]
fn hooks_are_notified_before_somebody_is_asked_and_decide_nothing() {
    let says =
        r#"2 {"hookSpecificOutput":{"hookEventName":"Notification","additionalContext":"mind"}}"#;
    for (matcher, is_run) in [("permission_prompt", true), ("idle_prompt", false)] {
        let hooks = hook("Notification", matcher, &[says]);
        let play = play(world(hooks, &[&["x:Bash:make"]]));
        assert_eq!(play.log().contains("hook:Notification"), is_run, "{}", play.log());
        assert_eq!(answered(&play), [(true, AnsweredBy::Surface)]);
        play.check_replay();
    }
    let mut earlier = world(hook("Notification", "", &[says]), &[&["x:Bash:make"]]);
    std::sync::Arc::make_mut(&mut earlier.facts).revision = 7;
    let play = play(earlier);
    assert!(!play.log().contains("hook:"), "{}", play.log());
    play.check_replay();
}
