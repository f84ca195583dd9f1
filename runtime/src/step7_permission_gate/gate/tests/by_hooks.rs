//! What hooks decide, and what they do not.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

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

/// Whether a call is allowed unasked, where a hook answers so; `None`: a person is asked.
fn decided(tool: &str, mode: Mode, verdict: &HookVerdict, may_answer: bool) -> Option<bool> {
    let spec = spec(tool, Access::Person, ToolEffect::ReadOnly);
    let setup = hooked_setup(tool, mode, Handler::Approver, &["allow user *"]);
    let (mut gate, step) = Gate::open(call(&spec, "{}"), &spec, &setup);
    assert!(matches!(step, GateStep::RunHooks { .. }), "{tool}");
    stage(&gate.hooks_answered(verdict, may_answer)).map(|it| it.0)
}

// REQ: PRM-1, HKS-2
#[test]
fn hook_answers_for_a_person_only_with_an_input_and_a_plan_only_in_its_mode() {
    let (with, without) = (allowing(Some("x")), allowing(None));
    for tool in ["AskUserQuestion", "EnterPlanMode", "Mine"] {
        for mode in [Mode::Default, Mode::BypassPermissions, Mode::Plan] {
            assert_eq!(decided(tool, mode, &with, true), Some(true), "{tool} {mode:?}");
            assert_eq!(decided(tool, mode, &without, true), None, "{tool} {mode:?}");
            assert_eq!(decided(tool, mode, &with, false), None, "as before revision 18: {tool}");
        }
    }
    assert_eq!(decided("ExitPlanMode", Mode::Plan, &with, true), Some(true));
    assert_eq!(decided("ExitPlanMode", Mode::Default, &with, true), None);
    let silent = HookVerdict { decision: None, ..with };
    assert_eq!(decided("AskUserQuestion", Mode::Default, &silent, true), None);
}
