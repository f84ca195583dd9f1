//! Which answers are taken, and for which action.

use super::*;

fn call(input: &str) -> ToolCall {
    ToolCall { id: "t".into(), name: "Bash".into(), input: input.into() }
}

fn question() -> Question {
    let call = call(r#"{"command":"make"}"#);
    let digest = action_digest(&call, "/w");
    Question {
        id: question_id(&"s".into(), Some(&"e".into()), digest),
        session: "s".into(),
        run: "r".into(),
        agents: Arc::default(),
        call,
        cwd: "/w".into(),
        digest,
        epoch: Digest::of(b"rules"),
        class: None,
        reason: "no rule allows it".into(),
        suggestions: Vec::new(),
        blocked_path: None,
        asked_at: Timestamp(10),
        expires: Timestamp(20),
    }
}

// REQ: PRM-9
#[test]
fn digest_is_that_of_tool_input_and_directory_and_of_nothing_else() {
    let one = action_digest(&call(r#"{"command":"make","timeout":5}"#), "/w");
    let same = ToolCall { id: "u".into(), ..call("{\"timeout\": 5,\n \"command\": \"make\"}") };
    assert_eq!(action_digest(&same, "/w"), one);
    let another = |call: ToolCall, cwd: &str| assert_ne!(action_digest(&call, cwd), one);
    another(call(r#"{"command":"make","timeout":6}"#), "/w");
    another(call(r#"{"command":"make","timeout":5}"#), "/x");
    another(call("no JSON"), "/w");
    another(ToolCall { name: "Edit".into(), ..same }, "/w");
}

// REQ: PRM-9
#[test]
fn answer_fits_one_action_under_one_set_of_rules_until_it_expires() {
    let question = question();
    let key = question.key();
    assert_eq!(question.accepts(&key, Timestamp(19)), Ok(()));
    let code = |key: &QuestionKey, at| question.accepts(key, Timestamp(at)).unwrap_err().code();
    assert_eq!(code(&key, 20), "expired");
    let other = Digest::of(b"other");
    assert_eq!(code(&QuestionKey { digest: other, ..key.clone() }, 19), "other_action");
    assert_eq!(code(&QuestionKey { epoch: other, ..key.clone() }, 19), "old_epoch");
    assert_eq!(code(&QuestionKey { id: "q_0".into(), ..key }, 19), "unknown");
}

// REQ: PRM-9
#[test]
fn name_of_a_question_is_that_of_its_action_in_one_answer_of_the_model() {
    let digest = Digest::of(b"action");
    let id = |session: &str, entry: &str, digest| {
        question_id(&session.into(), Some(&entry.into()), digest)
    };
    assert_eq!(id("s", "e", digest), id("s", "e", digest));
    assert_ne!(id("s", "e", digest), id("s", "f", digest));
    assert_ne!(id("s", "e", digest), id("t", "e", digest));
    assert_ne!(id("s", "e", digest), id("s", "e", Digest::of(b"other")));
}

// REQ: PRM-9, SES-9
#[test]
fn answer_that_cannot_be_taken_is_refused_with_a_code() {
    let code = |answer: PermissionAnswer| answer.check().map_err(|it| it.code());
    assert_eq!(code(PermissionAnswer::allow().with_input("{}")), Ok(()));
    assert_eq!(code(PermissionAnswer::allow().with_input("[]")), Err("bad_input"));
    assert_eq!(code(PermissionAnswer::deny("no").with_input("{}")), Err("bad_input"));
    let both = PermissionAnswer { interrupt: true, ..PermissionAnswer::allow() };
    assert_eq!(code(both), Err("allows_and_interrupts"));
    let with = |rule: &str| PermissionAnswer::allow().with_rule(RuleUpdate::allow(rule));
    assert_eq!(code(with("Bash(make)")), Ok(()));
    assert_eq!(code(with("Bash(make")), Err("bad_rule"));
    assert_eq!(code(with("Bash(ma\u{1}ke)")), Err("bad_rule"));
    assert_eq!(code(with(&format!("Bash({})", "x".repeat(MAX_RULE_BYTES)))), Err("too_many_rules"));
    let many = (0..=MAX_RULES)
        .fold(PermissionAnswer::allow(), |it, _| it.with_rule(RuleUpdate::allow("Bash(a)")));
    assert_eq!(code(many), Err("too_many_rules"));
}

// REQ: PRM-4
#[test]
fn mode_that_asks_nobody_needs_leave_and_one_that_is_off_stays_off() {
    use PermissionMode::{AcceptEdits, Bubble, BypassPermissions, Plan};
    assert_eq!(may_change_to(Plan, false, &[]), Ok(()));
    assert_eq!(may_change_to(AcceptEdits, false, &[]), Ok(()));
    assert_eq!(may_change_to(BypassPermissions, false, &[]), Err(ModeError::NoLeave));
    assert_eq!(may_change_to(BypassPermissions, true, &[]), Ok(()));
    let off = [BypassPermissions];
    assert_eq!(may_change_to(BypassPermissions, true, &off), Err(ModeError::SwitchedOff));
    assert_eq!(may_change_to(Bubble, true, &[]), Err(ModeError::OnlyForAgents));
}
