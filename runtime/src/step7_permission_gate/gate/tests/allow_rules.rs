//! Which allow rules a denied call names.
//!
//! Built under `#[cfg(test)]` only.

use super::*;

/// Walks a call to its end; gives back whether it is allowed, and the rules that it names.
fn named(spec: &ToolSpec, mode: Mode, texts: &[&str], input: &str) -> (bool, Vec<String>) {
    let setup = setup(mode, Handler::None, texts);
    let (mut gate, mut step) = Gate::open(call(spec, input), spec, &setup);
    loop {
        step = match step {
            GateStep::ResolvePath { given } => {
                gate.path_resolved(resolve(&given, "/w", "/h", &mut look))
            }
            GateStep::Judge(order) => gate.command_judged(order.judge(EYES)),
            GateStep::RunHooks { .. } => gate.hooks_answered(&HookVerdict::default()),
            GateStep::Ask { reason, .. } => panic!("nobody can be asked: {reason}"),
            GateStep::Decided { decision, .. } => return (decision.allowed, gate.allow_rules()),
        };
    }
}

// REQ: PRM-5
#[test]
fn denied_call_names_rules_of_which_each_lets_it_pass() {
    for mode in [Mode::Default, Mode::DontAsk] {
        for (spec, input) in [
            (write(), file("new.txt")),
            (write(), file("/elsewhere/a")),
            (read(), file("/elsewhere/a")),
            (bash(), run("cargo test --all")),
            (spec("mcp__s__t", Access::Ask, ToolEffect::SideEffects), "{}".to_owned()),
        ] {
            let (allowed, rules) = named(&spec, mode, &[], &input);
            assert!(!allowed && !rules.is_empty(), "{input}: {rules:?}");
            for rule in rules {
                let rule = format!("allow cli {rule}");
                let (allowed, rules) = named(&spec, mode, &[&rule], &input);
                assert!(allowed && rules.is_empty(), "{rule}: {rules:?}");
            }
        }
    }
}

// REQ: PRM-5
#[test]
fn call_that_no_allow_rule_helps_names_none() {
    for (spec, mode, text, input) in [
        (write(), Mode::Default, "deny user Edit(new.txt)", file("new.txt")),
        (write(), Mode::Default, "ask user Edit(new.txt)", file("new.txt")),
        (write(), Mode::Default, "allow user Read", file(".git/config")),
        (write(), Mode::Plan, "allow user Read", file("new.txt")),
        (bash(), Mode::Default, "deny user Bash(rm *)", run("rm x")),
        (bash(), Mode::Default, "allow user Read", run("rm -rf /h")),
        (read(), Mode::Default, "allow user Read", file("zero")),
    ] {
        assert_eq!(named(&spec, mode, &[text], &input), (false, vec![]), "{text}: {input}");
    }
}
