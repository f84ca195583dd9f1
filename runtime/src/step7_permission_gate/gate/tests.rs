//! The gate from outside: what it asks for, what it decides.
//!
//! Built under `#[cfg(test)]` only.

use std::{collections::BTreeMap, sync::Arc};

use super::*;
use crate::{
    hook::{HookAction, HookDecision, HookEvent, HookHandler, HookWait, Matcher, OnFailure},
    permission::{PermissionMode as Mode, RuleKind, RuleText, Scope},
    step1_settings_resolution::Settings,
    step7_permission_gate::{
        Handler, Listing, Look, PathKind, Places, offered,
        path_resolution::{PathEntry, resolve},
    },
};

mod allow_rules;
mod attacks;
mod by_hooks;
mod by_way_of;
mod changed_below;
mod class_flow;
mod class_tables;
mod classes;
mod command_files;
mod confirmed;
mod evaluated;
mod everyday;
mod given_values;
mod hidden_options;
mod hostile;
mod invented;
mod led_elsewhere;
mod linked;
mod pages;
mod plan_file;
mod properties;
mod protected_writes;
mod rare_ways;
mod redirected;
mod sandboxed;
mod set_by_the_way;
mod unseen;

const FILE: &str = "file_path";

fn spec(name: &str, access: Access, effect: ToolEffect) -> ToolSpec {
    ToolSpec::new(name, "", "{}").with_effect(effect).with_access(access)
}

fn read() -> ToolSpec {
    spec("Read", Access::ReadPath { field: FILE.into() }, ToolEffect::ReadOnly)
}

fn write() -> ToolSpec {
    spec("Write", Access::WritePath { field: FILE.into() }, ToolEffect::SideEffects)
}

fn bash() -> ToolSpec {
    spec("Bash", Access::Command { field: "command".into() }, ToolEffect::Destructive)
}

/// Rules as `kind scope text`.
fn rules(texts: &[&str]) -> Vec<RuleText> {
    let rule = |text: &&str| {
        let mut parts = text.splitn(3, ' ');
        let kind = match parts.next() {
            Some("deny") => RuleKind::Deny,
            Some("ask") => RuleKind::Ask,
            _ => RuleKind::Allow,
        };
        let scope = match parts.next() {
            Some("cli") => Scope::CliArg,
            Some("local") => Scope::Local,
            Some("user") => Scope::User,
            _ => Scope::Project,
        };
        RuleText { kind, scope, text: parts.next().unwrap_or_default().into() }
    };
    texts.iter().map(rule).collect()
}

fn setup(mode: Mode, handler: Handler, texts: &[&str]) -> GateSetup {
    hooked_setup("Hooked", mode, handler, texts)
}

/// The same with a hook for the calls of one tool.
fn hooked_setup(tool: &str, mode: Mode, handler: Handler, texts: &[&str]) -> GateSetup {
    let mut settings = Settings::default();
    settings.permissions.rules = rules(texts);
    let handlers = vec![HookHandler {
        matcher: Matcher::Names(vec![tool.into()]),
        condition: None,
        action: HookAction::Command { command: "check".into(), args: None },
        timeout_ms: 1,
        on_failure: OnFailure::Ignore,
        wait: HookWait::Waited,
        scope: Scope::User,
        only_restricts: false,
    }];
    settings.hooks.insert(HookEvent::PreToolUse, handlers);
    let (workspace, home, real) = ("/w".into(), "/h".into(), BTreeMap::new());
    let places = Places { workspace, home, project_root: None, real };
    GateSetup::new(Arc::new(settings), mode, places, handler)
}

fn call(spec: &ToolSpec, input: &str) -> ToolCall {
    ToolCall { id: "t1".into(), name: spec.name.clone(), input: input.into() }
}

fn look(path: &str) -> PathEntry {
    match path {
        "/w" => PathEntry::Directory,
        "/w/zero" => PathEntry::Special,
        _ => PathEntry::Missing,
    }
}

const EYES: Look = Look { at: look, list: |_, _| Some(Listing::default()) };

/// Walks one call through, without hooks, and says what came out: `allow …`, `ask …`, `deny …`.
fn outcome(spec: &ToolSpec, setup: &GateSetup, input: &str) -> String {
    outcome_in(EYES, spec, setup, input)
}

/// The same, where other things lie.
fn outcome_in(look: Look, spec: &ToolSpec, setup: &GateSetup, input: &str) -> String {
    let (mut gate, mut step) = Gate::open(call(spec, input), spec, setup);
    loop {
        step = match step {
            GateStep::ResolvePath { given } => {
                gate.path_resolved(resolve(&given, "/w", "/h", &mut |it| (look.at)(it)))
            }
            GateStep::Judge(order) => {
                let judged = order.judge(look);
                // As a replay has it.
                assert_eq!(order.judge_again(judged.links().clone()), judged, "{input}");
                gate.command_judged(judged)
            }
            GateStep::RunHooks { .. } => gate.hooks_answered(&HookVerdict::default()),
            GateStep::Ask { reason, .. } => return format!("ask {reason}"),
            GateStep::Decided { decision, permit } => {
                assert_eq!(decision.allowed, permit.is_some());
                let word = if decision.allowed { "allow" } else { "deny" };
                return format!("{word} {}", decision.reason);
            }
        };
    }
}

#[track_caller]
fn check(mode: Mode, texts: &[&str], spec: &ToolSpec, input: &str, expected: &str) {
    let found = outcome(spec, &setup(mode, Handler::Approver, texts), input);
    assert!(found.starts_with(expected), "{input}: {found}, not {expected}");
}

fn file(path: &str) -> String {
    format!(r#"{{"file_path":"{path}"}}"#)
}

fn run(command: &str) -> String {
    serde_json::json!({ "command": command }).to_string()
}

// REQ: PRM-2
#[test]
fn deny_wins_over_every_allow_in_every_mode() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions, Mode::Plan] {
        let texts = &["allow cli Bash(rm x)", "deny user Bash(rm *)"];
        check(mode, texts, &bash(), &run("rm x"), "deny denied by rule user:Bash(rm *)");
        check(mode, &["deny project Read(.env)"], &read(), &file("a/.env"), "deny");
        check(mode, &["deny project Read(.env)"], &write(), &file("a/.env"), "deny");
    }
}

// REQ: PRM-3
#[test]
fn reason_names_the_first_scope() {
    let texts = &["deny user Bash(ls)", "deny local Bash(l*)", "deny project Bash(ls)"];
    check(Mode::Default, texts, &bash(), &run("ls"), "deny denied by rule local:Bash(l*)");
}

// REQ: PRM-4
#[test]
fn modes_differ_where_no_rule_decides() {
    use Mode::*;
    let (outside, inside, guarded) = (file("/etc/x"), file("x"), file(".git/config"));
    for (mode, read_out, write_in, write_out, protected, command) in [
        (Default, "ask", "ask", "ask", "ask", "ask"),
        (Bubble, "ask", "ask", "ask", "ask", "ask"),
        (Plan, "ask", "ask", "ask", "ask", "ask"),
        (AcceptEdits, "ask", "allow", "ask", "ask", "ask"),
        (DontAsk, "deny", "deny", "deny", "deny", "deny"),
        (BypassPermissions, "allow", "allow", "allow", "ask", "allow"),
    ] {
        check(mode, &[], &read(), &inside, "allow");
        check(mode, &[], &read(), &outside, read_out);
        check(mode, &[], &write(), &inside, write_in);
        check(mode, &[], &write(), &outside, write_out);
        check(mode, &[], &write(), &guarded, protected);
        check(mode, &[], &bash(), &run("make"), command);
        check(mode, &[], &read(), &file("zero"), "deny");
        check(mode, &[], &spec("TodoWrite", Access::Free, ToolEffect::ReadOnly), "{}", "allow");
    }
}

#[test]
fn plan_mode_asks_about_changes_whatever_the_rules_allow() {
    let texts = &["allow user Edit(**)", "allow user Bash"];
    check(Mode::Plan, texts, &write(), &file("x"), "ask");
    check(Mode::Plan, texts, &bash(), &run("make"), "ask");
}
#[test]
fn bypass_keeps_ask_rules_and_critical_removals() {
    let mode = Mode::BypassPermissions;
    check(mode, &["ask user Bash(git push *)"], &bash(), &run("git push"), "ask");
    check(mode, &[], &bash(), &run("rm -rf ~"), "ask");
    check(mode, &[], &bash(), &run("x && sudo rm -rf /h"), "ask");
    check(mode, &[], &bash(), &run("echo x > .git/hooks/pre-commit"), "ask");
    check(mode, &["deny user Bash(curl *)"], &bash(), &run("curl x"), "deny");
    check(Mode::Default, &["allow user Bash(rm *)"], &bash(), &run("rm -rf /h"), "ask");
}
#[test]
fn edit_rules_govern_everything_that_changes_files() {
    let allow = &["allow project Edit(src/**)"];
    check(Mode::Default, allow, &write(), &file("src/a"), "allow");
    check(Mode::Default, allow, &write(), &file("vendor/p/src/a"), "ask");
    check(Mode::Default, &["allow project Write(docs/**)"], &write(), &file("docs/a"), "ask");
    let odd = setup(Mode::Default, Handler::Approver, &["allow project Write(docs/**)"]);
    assert_eq!(odd.warnings().len(), 1);
    let grep = spec("Grep", Access::ReadPath { field: "path".into() }, ToolEffect::ReadOnly);
    check(Mode::Default, &["deny user Read(//etc/**)"], &grep, r#"{"path":"/etc/ssl"}"#, "deny");
    check(Mode::Default, &[], &grep, "{}", "allow");
}
#[test]
fn specifier_that_is_not_understood_never_allows() {
    let agent = spec("Agent", Access::Free, ToolEffect::SideEffects);
    check(Mode::Default, &["ask user Agent(model:*)"], &agent, "{}", "allow");
    check(Mode::Default, &["ask user Agent(model:*)"], &agent, r#"{"model":"opus"}"#, "ask");
    check(
        Mode::Default,
        &["deny user Agent(Explore)"],
        &agent,
        r#"{"subagent_type":"Explore"}"#,
        "deny",
    );
    let search = spec("WebSearch", Access::Ask, ToolEffect::ReadOnly);
    check(Mode::Default, &["allow user WebSearch(rust)"], &search, r#"{"query":"rust"}"#, "ask");
    check(Mode::BypassPermissions, &["deny user WebSearch(rust)"], &search, "{}", "ask");
    check(Mode::Default, &["allow user WebSearch"], &search, "{}", "allow");
    let fetch = spec("WebFetch", Access::Ask, ToolEffect::ReadOnly);
    let url = r#"{"url":"https://API.example.com./x"}"#;
    check(Mode::Default, &["allow user WebFetch(domain:*.example.com)"], &fetch, url, "allow");
}

// REQ: PRM-1
#[test]
fn tools_denied_as_a_whole_are_not_offered_and_not_run() {
    let setup = setup(
        Mode::BypassPermissions,
        Handler::Approver,
        &["deny user mcp__*", "deny user Bash(rm *)", "deny user Write(*)"],
    );
    let specs = ["mcp__gh__get", "Bash", "Write", "Read"]
        .map(|name| Arc::new(spec(name, Access::Free, ToolEffect::ReadOnly)));
    assert_eq!(offered(&specs, &setup), [false, true, false, true]);
    let (_, step) = Gate::open(call(&specs[0], "{}"), &specs[0], &setup);
    let GateStep::Decided { decision, permit: None } = step else { panic!("{step:?}") };
    assert_eq!(decision.stage, GateStage::PreFilter);
}

// REQ: PRM-5
#[test]
fn nobody_to_ask_means_no_with_a_reason() {
    let found = outcome(&bash(), &setup(Mode::Default, Handler::None, &[]), &run("make"));
    assert_eq!(
        found,
        "deny permission was needed (no rule allows it: `make`; a rule that would: Bash(make) or \
         Bash(make *)) and nobody can be asked for it"
    );
}

/// What comes after the judgement of a command.
fn judged(gate: &mut Gate, step: GateStep) -> GateStep {
    match step {
        GateStep::Judge(order) => gate.command_judged(order.judge(EYES)),
        step => step,
    }
}

fn hooked(texts: &[&str], verdict: &HookVerdict) -> (Gate, GateStep) {
    let spec = spec("Hooked", Access::Command { field: "command".into() }, ToolEffect::SideEffects);
    let setup = setup(Mode::Default, Handler::Approver, texts);
    let (mut gate, step) = Gate::open(call(&spec, &run("first")), &spec, &setup);
    assert!(matches!(step, GateStep::RunHooks { .. }));
    let step = gate.hooks_answered(verdict);
    let step = judged(&mut gate, step);
    (gate, step)
}

fn allowing(input: Option<&str>) -> HookVerdict {
    HookVerdict {
        decision: Some(HookDecision::Allow { reason: String::new() }),
        updated_input: input.map(run),
        ..HookVerdict::default()
    }
}

fn stage(step: &GateStep) -> Option<(bool, GateStage)> {
    match step {
        GateStep::Decided { decision, .. } => Some((decision.allowed, decision.stage)),
        _ => None,
    }
}

// REQ: PRM-6
#[test]
fn one_answer_gives_at_most_one_permit() {
    let setup = setup(Mode::Default, Handler::Approver, &[]);
    let (mut gate, step) = Gate::open(call(&bash(), &run("npm test --all")), &bash(), &setup);
    let step = judged(&mut gate, step);
    let GateStep::Ask { suggestions, .. } = step else { panic!("{step:?}") };
    assert_eq!(suggestions, ["Bash(npm test --all)", "Bash(npm test *)"]);
    let yes = PermissionAnswer::allow;
    assert!(matches!(gate.permission_answered(yes()), GateStep::Decided { permit: Some(_), .. }));
    assert!(matches!(gate.permission_answered(yes()), GateStep::Decided { permit: None, .. }));
}

#[test]
fn permit_of_a_searching_tool_carries_what_is_hidden() {
    let setup = setup(Mode::Default, Handler::None, &["deny user Read(.env)", "deny user Edit(x)"]);
    let (mut gate, _) = Gate::open(call(&read(), &file("a")), &read(), &setup);
    let step = gate.path_resolved(resolve("a", "/w", "/h", &mut look));
    let GateStep::Decided { permit: Some(permit), .. } = step else { panic!("{step:?}") };
    assert_eq!(permit.hidden()[..], ["//w/**/.env".to_owned()]);
    assert_eq!(permit.path().map(|it| it.kind), Some(PathKind::Missing));
}

// REQ: AGT-9
#[test]
fn child_has_no_right_that_its_parent_has_not() {
    let parent =
        setup(Mode::Default, Handler::Approver, &["allow user Bash(make)", "deny user Bash(rm *)"]);
    let parent = Arc::new(parent);
    let cases: &[(Mode, &[&str], &str, &str)] = &[
        (Mode::Default, &["allow user Bash(make)"], "make", "allow"),
        (Mode::Default, &["allow project Bash"], "make", "allow"),
        (Mode::Default, &["allow project Bash"], "npm i", "ask"),
        (Mode::Default, &["allow project Bash(ls)"], "make", "ask"),
        (Mode::Default, &["allow project Bash(rm *)"], "rm x", "deny"),
        (Mode::BypassPermissions, &[], "npm i", "ask"),
        (Mode::BypassPermissions, &[], "rm x", "deny"),
        (Mode::DontAsk, &[], "npm i", "deny"),
        (Mode::Plan, &["allow user Bash(make)"], "make", "ask"),
        (Mode::Default, &["deny project Bash(make)"], "make", "deny"),
    ];
    for (mode, texts, command, expected) in cases {
        let child = setup(*mode, Handler::Approver, texts).with_parent(Some(Arc::clone(&parent)));
        let found = outcome(&bash(), &child, &run(command));
        assert!(found.starts_with(expected), "{mode:?} {texts:?} {command}: {found}");
        let bold = setup(Mode::BypassPermissions, Handler::Approver, &["allow user Bash"]);
        let grandchild = bold.with_parent(Some(Arc::new(child)));
        let found = outcome(&bash(), &grandchild, &run(command));
        assert!(found.starts_with(expected), "{mode:?} {texts:?} {command}: {found}");
    }
}
