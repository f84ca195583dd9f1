//! What hooks decide, and what they do not.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::hook::{HookAnswer, merge};

// REQ: PRM-2
#[test]
fn hook_allow_does_not_override_deny_or_ask_rules() {
    let rules = GateStage::RuleEvaluation;
    assert_eq!(stage(&hooked(&[], &allowing(None)).1), Some((true, rules)));
    assert_eq!(stage(&hooked(&["ask user Hooked"], &allowing(None)).1), None);
    assert_eq!(
        stage(&hooked(&["deny user Hooked(first)"], &allowing(None)).1),
        Some((false, rules))
    );
    // What the hook made of the input is what rules see and what runs.
    let (gate, step) = hooked(&["deny user Hooked(ls *)"], &allowing(Some("ls")));
    assert_eq!(stage(&step), Some((false, rules)));
    assert_eq!(&*gate.call().input, run("ls"));
}

// REQ: PRM-1
#[test]
fn hook_can_deny_ask_and_stop() {
    let deny = |verdict| stage(&hooked(&["allow user Hooked"], &verdict).1);
    let decision = Some(HookDecision::Deny { reason: "no".into() });
    let denied = Some((false, GateStage::PreToolUseHooks));
    assert_eq!(deny(HookVerdict { decision, ..HookVerdict::default() }), denied);
    let stop = HookVerdict { stop: Some("s".into()), ..allowing(None) };
    assert_eq!(deny(stop), denied);
    let decision = Some(HookDecision::Ask { reason: "sure?".into() });
    assert_eq!(deny(HookVerdict { decision, ..HookVerdict::default() }), None);
    let broken = HookVerdict { updated_input: Some("[]".into()), ..HookVerdict::default() };
    assert_eq!(deny(broken), denied);
}

/// Whether a call is allowed unasked, where hooks answer so; `None`: a person is asked.
fn decided(tool: &str, mode: Mode, verdict: &HookVerdict) -> Option<bool> {
    let spec = spec(tool, Access::Person, ToolEffect::ReadOnly);
    let setup = hooked_setup(tool, mode, Handler::Approver, &["allow user *"]);
    let (mut gate, step) = Gate::open(call(&spec, "{}"), &spec, &setup);
    assert!(matches!(step, GateStep::RunHooks { .. }), "{tool}");
    stage(&gate.hooks_answered(verdict)).map(|it| it.0)
}

/// What hooks say together that allow the call, if so, or give an input, if any.
fn together(hooks: &[(bool, Option<&str>)]) -> HookVerdict {
    let answer = |(allows, input): &(bool, Option<&str>)| {
        let decision = allows.then(|| HookDecision::Allow { reason: String::new() });
        let updated_input = input.map(Into::into);
        let verdict = HookVerdict { decision, updated_input, ..HookVerdict::default() };
        HookAnswer { verdict }
    };
    merge(HookEvent::PreToolUse, hooks.iter().map(answer).collect())
}

// REQ: PRM-1, HKS-2
#[test]
fn hook_answers_for_a_person_only_with_what_a_person_would_give() {
    let plan = r#"{"plan": "first the bridge"}"#;
    let answers = r#"{"answers": {"Which?": "Wood"}}"#;
    let cases = [
        ("AskUserQuestion", answers, true),
        ("AskUserQuestion", r#"{"response": "neither"}"#, true),
        ("AskUserQuestion", r#"{"answers": {}, "response": ""}"#, false),
        ("AskUserQuestion", plan, false),
        ("EnterPlanMode", answers, false),
        ("ExitPlanMode", r#"{"plan": ""}"#, false),
        ("ExitPlanMode", "{}", false),
        ("Mine", answers, false),
    ];
    for (tool, input, is_answered) in cases {
        for mode in [Mode::Default, Mode::BypassPermissions, Mode::Plan] {
            let expected = is_answered.then_some(true);
            let verdict = together(&[(true, Some(input))]);
            assert_eq!(decided(tool, mode, &verdict), expected, "{tool} {input} {mode:?}");
            let before = HookVerdict { answers: false, ..verdict };
            assert_eq!(decided(tool, mode, &before), None, "as before revision 18");
        }
    }
    let approves = together(&[(true, Some(plan))]);
    assert_eq!(decided("ExitPlanMode", Mode::Plan, &approves), Some(true));
    assert_eq!(decided("ExitPlanMode", Mode::Default, &approves), None, "there is no plan");
    // It is one hook that allows and gives the input.
    for hooks in [
        &[(false, Some(answers)), (true, None)][..],
        &[(true, None), (false, Some(answers))],
        &[(true, Some(answers)), (false, Some(answers))],
    ] {
        assert_eq!(decided("AskUserQuestion", Mode::Default, &together(hooks)), None);
    }
    let hooks = [(true, None), (true, Some(answers))];
    assert_eq!(decided("AskUserQuestion", Mode::Default, &together(&hooks)), Some(true));
}
